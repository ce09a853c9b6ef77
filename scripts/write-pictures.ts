// pnpm pictures: draws the pictures of the README anew, from a real run of the demo.

import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { photographPage } from './pictures/page.ts';
import { record } from './pictures/recording.ts';
import { terminalSvg } from './pictures/svg.ts';

const ROOT = join(import.meta.dirname, '..');
const DROVER = join(ROOT, 'bin/drover.cjs');
const PICTURES = join(ROOT, 'docs/pictures');
const SIZE = { columns: 96, rows: 30 };
const STATES = ['landed', 'thinking', 'running', 'merging', 'gate', 'waiting', 'retrying'];

let dashboard = { states: 0, svg: '' };
const { output, code } = await record(`'${process.execPath}' '${DROVER}' demo --keep`, SIZE, (terminal) => {
  const { active } = terminal.buffer;
  const rows = Array.from({ length: terminal.rows }, (_, row) =>
    active.getLine(active.viewportY + row)?.translateToString(true),
  );
  // The liveliest moment: tasks are done, running and waiting.
  const text = rows.join('\n');
  const states = STATES.filter((state) => new RegExp(`\\S \\S+ +${state}\\b`).test(text)).length;
  if (states > dashboard.states) dashboard = { states, svg: terminalSvg(terminal, 'The dashboard of a drover run') };
});
const project = /The project is in (\S+)/.exec(output)?.[1];
const home = /DROVER_HOME=(\S+)/.exec(output)?.[1];
if (code !== 0 || project === undefined || home === undefined || dashboard.svg === '')
  throw new Error(`The demo did not end as expected (exit code ${code}).`);
await mkdir(PICTURES, { recursive: true });
await writeFile(join(PICTURES, 'run.svg'), dashboard.svg);
await photographPage({ drover: DROVER, project, home, file: join(PICTURES, 'page.png') });
await rm(dirname(project), { recursive: true, force: true });
