// Refuses gates that can never pass before the run spends anything.
//
// Only certain cases count: a gate that bash can't parse, and a first command that is a plain name which bash doesn't
// find. A command with a path may exist once a task has made it.

import { literalShellText, loadShellParser } from '@drover/core/permission/shell/shell-parser';
import { UsageError } from '@drover/core/errors';
import { execFile } from 'node:child_process';

const CHECK_MS_MAX = 10_000;

export type GatePlace = { readonly cwd: string; readonly env: Readonly<Record<string, string>> };

/** Throws UsageError if a gate can never pass. */
export async function checkGates(gates: readonly string[], place: GatePlace): Promise<void> {
  for (const gate of gates) {
    const problem = await gateCommandProblem(gate, place);
    if (problem !== undefined) throw new UsageError(`--gate: '${gate}' can't be run: ${problem}`);
  }
}

/** Why a command can never succeed; undefined if that is not certain. */
export async function gateCommandProblem(command: string, place: GatePlace): Promise<string | undefined> {
  const complaint = await bashForGateCheck(['-n', '-c', command], place);
  if (complaint !== undefined) return `bash can't read it${complaint && `: ${complaint}`}`;
  const name = await firstCommandOfGate(command);
  if (name === undefined || (await bashForGateCheck(['-c', 'command -v -- "$0"', name], place)) === undefined)
    return undefined;
  return `there is no command ${name}; install it, or correct the command`;
}

/** The plain name that the gate begins with; undefined if it begins with anything else. */
async function firstCommandOfGate(gate: string): Promise<string | undefined> {
  const { parse } = await loadShellParser();
  let node = parse(gate).commands[0]?.command;
  while (node?.type === 'AndOr' || node?.type === 'Pipeline') node = node.commands[0];
  if (node?.type !== 'Command' || node.prefix.some((part) => part.type === 'Assignment' && part.name === 'PATH'))
    return;
  const word = node.name;
  const name = word && literalShellText(word);
  return name !== undefined && /^[\w.+-]+$/.test(name) ? name : undefined;
}

/** The first line of bash's complaint; undefined if bash succeeds or is missing. */
function bashForGateCheck(args: readonly string[], { cwd, env }: GatePlace): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile('bash', args, { cwd, env: { ...env }, timeout: CHECK_MS_MAX }, (error, _, stderr) => {
      const isFound = error !== null && typeof error.code === 'number';
      resolve(isFound ? (stderr.split('\n')[0] ?? '').replace(/^bash: (-c: )?(line \d+: )?/, '') : undefined);
    });
  });
}
