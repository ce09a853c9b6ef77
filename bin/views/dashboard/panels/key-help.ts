// The keys of the dashboard, for the panel that lists them and for the line at the bottom.

import { cutText } from '../../text/terminal-text.ts';

const KEYS: readonly (readonly [keys: string, meaning: string])[] = [
  ['↑ ↓  j k', 'select a task; in an open panel: scroll'],
  ['Enter', 'open the conversation of the task, live'],
  ['d', 'show what the task has changed so far'],
  ['l', 'show the log of the task'],
  ['s', 'send a message to the worker; it is delivered at its next step'],
  ['r', 'retry a task that failed or was cancelled'],
  ['x', 'cancel the task'],
  ['p', 'pause: no task starts until you press p again'],
  ['q', 'stop the run, after a question; drover resume continues it'],
  ['Tab', 'in an open panel: the next task (Shift-Tab: the one before)'],
  ['PgUp PgDn g G', 'scroll by pages, to the start, to the end'],
  ['Esc', 'close the panel'],
  ['y a n w', 'answer a question: once, always for this run, no, no with words'],
  ['Ctrl-C', 'stop the run; Ctrl-Z suspends drover'],
];

const KEY_COLUMNS = Math.max(...KEYS.map(([keys]) => keys.length));

export function dashboardKeyRows(columns: number): readonly string[] {
  return KEYS.map(([keys, meaning]) => cutText(`${keys.padEnd(KEY_COLUMNS)}  ${meaning}`, columns));
}

const LIST_HINT =
  '↑↓ select · Enter open · d diff · l log · s message · r retry · x cancel · p pause · q stop · ? keys';
const PANEL_HINT = '↑↓ scroll · Tab next task · Esc close · d diff · l log · s message · ? keys';
// For terminals on which the others do not fit.
const SHORTER = [
  '↑↓ select · Enter open · d diff · s message · r retry · x cancel · ? keys',
  'Enter open · d diff · s message · ? keys',
  'Enter open · s message · ? keys',
];
const SHORTER_IN_PANEL = ['↑↓ scroll · Esc close · s message · ? keys', '↑↓ scroll · Esc close · ? keys'];

const ANSWERS = [
  'y once · a always for this run · n no · w no, with words for the worker · PgDn reads on · ? keys',
  'y once · a always for this run · n no · w no, with words · ? keys',
  'y once · a always · n no · w no, with words',
  'y once · a always · n no',
];

const FIELD = [
  'w write the answer; Enter alone takes the default · n decline · ? keys',
  'w write the answer · n decline',
];

const HINTS = {
  list: [LIST_HINT, ...SHORTER],
  panel: [PANEL_HINT, ...SHORTER_IN_PANEL],
  question: ANSWERS,
  field: FIELD,
};

/** As many keys as fit into a line. */
export function dashboardKeyHint(where: keyof typeof HINTS, columns: number): string {
  const hints = HINTS[where];
  return hints.find((hint) => hint.length <= columns) ?? '? keys';
}
