// The table of sessions: as many columns as fit, each as wide as it must be, and the title in what is left.

import type { SessionRow } from '@drover/core/journal/sessions';
import { ago, count } from '../views/figures.ts';
import type { Style } from '../views/style.ts';
import { oneLine, widthOfText } from '../views/terminal-text.ts';
import { looksOf, type State } from './state.ts';

const GAP = '  ';
const TITLE_COLUMNS_MIN = 14;
const ID_COLUMNS_MAX = 24;
const ID_SHARE_MAX = 0.3;
const MODEL_COLUMNS_MAX = 36;

export type TableRow = Omit<SessionRow, 'state'> & { readonly state: State; readonly short: string };

type Column = {
  readonly head: string;
  readonly cell: (row: TableRow, at: Situation) => string;
  readonly align?: 'right';
};
type Situation = { readonly columns: number; readonly now: number };

const COLUMNS: readonly Column[] = [
  {
    head: 'id',
    cell: ({ short }, { columns }) => oneLine(short, Math.floor(Math.min(ID_COLUMNS_MAX, columns * ID_SHARE_MAX))),
  },
  { head: 'when', cell: ({ updatedAt }, { now }) => ago(updatedAt, now) },
  { head: 'state', cell: ({ state }) => looksOf[state].word },
  { head: 'turns', cell: ({ turns }) => count(turns), align: 'right' },
  { head: 'model', cell: ({ model }) => oneLine(model, MODEL_COLUMNS_MAX) },
];
/** Where the terminal is narrow, these are left out one by one; the mark tells the state, too. */
const DISPENSABLE = ['turns', 'model', 'state', 'when'];

/** `columns` is what a line may take; endless where nobody's screen is. */
export function tableOf(rows: readonly TableRow[], at: Situation, style: Style): string {
  let shown = COLUMNS.map((column) => {
    const cells = rows.map((row) => column.cell(row, at));
    return { ...column, cells, width: Math.max(...[column.head, ...cells].map(widthOfText)) };
  });
  const room = (): number => at.columns - '✓ '.length - shown.reduce((sum, { width }) => sum + width + GAP.length, 0);
  for (const name of DISPENSABLE) if (room() < TITLE_COLUMNS_MIN) shown = shown.filter(({ head }) => head !== name);
  const titleColumns = Math.max(room(), 1);
  const line = (cells: readonly string[], title: string): string =>
    [...cells.map((cell, column) => padded(cell, shown[column])), oneLine(title, titleColumns)].join(GAP).trimEnd();
  const heads = shown.map(({ head }) => head);
  const lines = rows.map(({ state, title }, row) => {
    const { sign, format } = looksOf[state];
    const cells = shown.map((column) => column.cells[row] ?? '');
    return `${style(format, sign)} ${line(cells, title)}`;
  });
  return [style('dim', `  ${line(heads, 'title')}`), ...lines, ''].join('\n');
}

function padded(text: string, column: { readonly width: number; readonly align?: 'right' } | undefined): string {
  const space = ' '.repeat(Math.max(0, (column?.width ?? 0) - widthOfText(text)));
  return column?.align === 'right' ? space + text : text + space;
}
