// Gates that can't ever pass are refused before anything is spent on work that they would refuse.
//
// Only what is certain: what bash can't read, and a first command that is a plain name which bash doesn't find. What has a
// path may be there once a task has made it.

import { loadParser } from '@drover/core/permission/shell-parser';
import { understand } from '@drover/core/permission/shell-grammar';
import { UsageError } from '@drover/core/failure';
import { execFile } from 'node:child_process';

const CHECK_MS_MAX = 10_000;

export type GatePlace = { readonly cwd: string; readonly env: Readonly<Record<string, string>> };

/** Throws UsageError. */
export async function checkGates(gates: readonly string[], place: GatePlace): Promise<void> {
  for (const gate of gates) {
    const complaint = await bash(['-n', '-c', gate], place);
    if (complaint !== undefined)
      throw new UsageError(`--gate: bash can't read '${gate}'${complaint && `: ${complaint}`}`);
    const name = await firstCommand(gate);
    if (name === undefined || (await bash(['-c', 'command -v -- "$0"', name], place)) === undefined) continue;
    throw new UsageError(
      `--gate: '${gate}' can't be run: there is no command ${name}; install it, or correct the gate`,
    );
  }
}

async function firstCommand(gate: string): Promise<string | undefined> {
  const understood = understand(gate, await loadParser());
  const [first] = understood.understood ? understood.commands : [];
  const isPlain = first?.words[0]?.kind === 'literal' && /^[\w.+-]+$/.test(first.name);
  return isPlain ? first.name : undefined;
}

/** What it complains of where it fails; undefined where it does not, or is not there at all. */
function bash(args: readonly string[], { cwd, env }: GatePlace): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile('bash', args, { cwd, env: { ...env }, timeout: CHECK_MS_MAX }, (error, _, stderr) => {
      const isFound = error !== null && typeof error.code === 'number';
      resolve(isFound ? (stderr.split('\n')[0] ?? '').replace(/^bash: (-c: )?(line \d+: )?/, '') : undefined);
    });
  });
}
