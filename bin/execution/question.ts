// Asks the person at the terminal whether a call may run.
//
// Only where there is one: standard input and standard error are both a terminal. The terminal stays
// in its normal mode, so Ctrl-C is a signal as ever and nothing has to be restored.

import { createInterface } from 'node:readline/promises';
import type { Decision } from '@drover/core/events';
import type { Io } from '../io.ts';
import { oneLine } from '../views/terminal-text.ts';

export function isSomeoneThere(io: Io): boolean {
  return io.stdin.isTTY === true && io.stderr.isTTY === true;
}

const ANSWERS: ReadonlyMap<string, Decision> = new Map([
  ['y', { allowed: true, by: 'user', always: false }],
  ['yes', { allowed: true, by: 'user', always: false }],
  ['a', { allowed: true, by: 'user', always: true }],
  ['always', { allowed: true, by: 'user', always: true }],
  ['n', { allowed: false, by: 'user', always: false }],
  ['no', { allowed: false, by: 'user', always: false }],
]);

/** One question; the caller asks one at a time. End of input is a no. */
export async function askPerson(io: Io, summary: string, signal: AbortSignal): Promise<Decision> {
  const lines = createInterface({ input: io.stdin, output: io.stderr, terminal: false });
  const gone = new Promise<string>((resolve) => lines.once('close', () => resolve('n')));
  const columns = io.stderr.columns ?? 80;
  try {
    while (true) {
      const question = `  Allow ${oneLine(summary, columns - 34)}? [y]es [n]o [a]lways: `;
      const answer = await Promise.race([lines.question(question, { signal }), gone]);
      const decision = ANSWERS.get(answer.trim().toLowerCase());
      if (decision !== undefined) return decision;
    }
  } catch (error) {
    if (signal.aborted) return { allowed: false, by: 'cancel', always: false, reason: 'interrupted' };
    throw error;
  } finally {
    lines.close();
  }
}
