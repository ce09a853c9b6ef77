// The state of a run or a session for the user: a mark, a word, and the next step.

import type { Style } from '../views/text/style.ts';
import { wrapText } from '../views/text/word-wrap.ts';
import type { KeptRow } from './rows.ts';

export type State = KeptRow['state'] | 'live';

type Looks = { readonly sign: string; readonly format: Parameters<Style>[0]; readonly word: string };

export const looksOf: Readonly<Record<State, Looks>> = {
  live: { sign: '●', format: 'cyan', word: 'live' },
  done: { sign: '✓', format: 'green', word: 'done' },
  open: { sign: '◐', format: 'yellow', word: 'interrupted' },
  incomplete: { sign: '✗', format: 'red', word: 'incomplete' },
  error: { sign: '✗', format: 'red', word: 'error' },
  cancelled: { sign: '✗', format: 'yellow', word: 'cancelled' },
  suspended: { sign: '?', format: 'yellow', word: 'suspended' },
  empty: { sign: '·', format: 'dim', word: 'empty' },
  damaged: { sign: '!', format: 'red', word: 'damaged' },
  newer: { sign: '!', format: 'yellow', word: 'newer' },
};

/** Formats advice. If it does not fit, the command gets a line of its own. */
export function stateAdviceLine(advice: string, columns: number): string {
  const command = advice.indexOf(': ');
  if (advice.length <= columns || command < 0) return `${wrapText(advice, columns)}\n`;
  return `${wrapText(advice.slice(0, command + 1), columns)}\n  ${advice.slice(command + 2)}\n`;
}

/** The next step for the user of a session, as a sentence without its full stop. `short` is the id to type. */
export function nextStepOfSession(state: State, short: string): string {
  switch (state) {
    case 'live':
      return `watch it with: drover logs ${short} --follow`;
    case 'done':
    case 'empty':
      return `say more with: drover exec --session ${short} "…"`;
    case 'open':
    case 'incomplete':
    case 'error':
    case 'cancelled':
      return `resume with: drover resume ${short}`;
    case 'suspended':
      return 'the program that began it has to send the results it waits for';
    case 'damaged':
      return 'it cannot be resumed; its readable part stays';
    case 'newer':
      return `its records can be read with: drover logs ${short} --json`;
  }
}

export type RunStanding = { readonly state: State; readonly canGoOn: boolean };

/** The same for a run. */
export function nextStepOfRun({ state, canGoOn }: RunStanding, short: string): string {
  if (state === 'live' || state === 'damaged' || state === 'newer') return nextStepOfSession(state, short);
  if (canGoOn) return nextStepOfSession('open', short);
  return state === 'done' ? `look at it with: drover show ${short}` : `see why with: drover show ${short}`;
}
