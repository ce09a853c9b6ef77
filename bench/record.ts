// Writes figures into RESULTS.md, with date, machine and command; each line holds its floor.

import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg, release, type as system } from 'node:os';
import { join } from 'node:path';

const FILE = join(import.meta.dirname, 'RESULTS.md');
const FIRST = /\n(?=## )/;

export type Figures = { readonly command: string; readonly lines: readonly string[] };

/** Adds a section at the top. */
export function record(parts: readonly Figures[]): void {
  const [load = 0] = loadavg();
  const date = new Date().toISOString().slice(0, 10);
  const machine = `${system()} ${release()}, ${availableParallelism()} cores, Node ${process.versions.node}, load ${load.toFixed(1)}`;
  const told = parts.map(({ command, lines }) => `\`${command}\`\n\n\`\`\`text\n${lines.join('\n')}\n\`\`\`\n`);
  const section = `## ${date}, ${machine}\n\n${told.join('\n')}`;
  const before = readFileSync(FILE, 'utf8');
  writeFileSync(FILE, before.replace(FIRST, `\n${section}\n`));
}
