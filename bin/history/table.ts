// The table of runs and sessions: as many columns as fit, each as wide as needed, and the title in the rest.

import { agoText, countText, dollarsText } from '../views/text/figures.ts';
import type { Style } from '../views/text/style.ts';
import { textCell, widthOfText } from '../views/text/terminal-text.ts';
import type { KeptRow } from './rows.ts';
import { looksOf, type State } from './state.ts';

const GAP = '  ';
const TITLE_COLUMNS_MIN = 14;
const ID_COLUMNS_MAX = 24;
const ID_SHARE_MAX = 0.3;
const MODEL_COLUMNS_MAX = 36;

/** `shown` is the displayed state: a process may be working on it. */
export type TableRow = { readonly row: KeptRow; readonly shown: State; readonly short: string };

type Column = {
  readonly head: string;
  readonly cell: (of: TableRow, at: Situation) => string;
  readonly align?: 'right';
};
type Situation = { readonly columns: number; readonly now: number };

const COLUMNS: readonly Column[] = [
  { head: 'kind', cell: ({ row }) => row.kind },
  {
    head: 'id',
    cell: ({ short }, { columns }) => textCell(short, Math.floor(Math.min(ID_COLUMNS_MAX, columns * ID_SHARE_MAX))),
  },
  { head: 'when', cell: ({ row }, { now }) => agoText(row.updatedAt, now) },
  { head: 'state', cell: ({ shown }) => looksOf[shown].word },
  { head: 'work', cell: ({ row }) => historyRowExtent(row), align: 'right' },
  { head: 'cost', cell: ({ row: { cost } }) => (cost === undefined ? '' : dollarsText(cost)), align: 'right' },
  { head: 'model', cell: ({ row }) => textCell(row.model, MODEL_COLUMNS_MAX) },
];
/** On a narrow terminal these columns are left out one by one; the mark shows the state, too. */
const DISPENSABLE = ['model', 'state', 'cost', 'kind', 'work', 'when'];

/** `columns` is the width of a line; Infinity without a terminal. */
export function historyTable(rows: readonly TableRow[], at: Situation, style: Style): string {
  let shown = COLUMNS.map((column) => {
    const cells = rows.map((row) => column.cell(row, at));
    return { ...column, cells, width: Math.max(...[column.head, ...cells].map(widthOfText)) };
  }).filter(({ cells }) => cells.some((text) => text !== ''));
  const room = (): number => at.columns - '✓ '.length - shown.reduce((sum, { width }) => sum + width + GAP.length, 0);
  for (const name of DISPENSABLE) if (room() < TITLE_COLUMNS_MIN) shown = shown.filter(({ head }) => head !== name);
  const titleColumns = Math.max(room(), 1);
  const line = (cells: readonly string[], title: string): string =>
    [...cells.map((text, column) => padHistoryCell(text, shown[column])), textCell(title, titleColumns)]
      .join(GAP)
      .trimEnd();
  const heads = shown.map(({ head }) => head);
  const lines = rows.map(({ row, shown: state }, number) => {
    const { sign, format } = looksOf[state];
    const cells = shown.map((column) => column.cells[number] ?? '');
    return `${style(format, sign)} ${line(cells, row.title)}`;
  });
  return [style('dim', `  ${line(heads, 'title')}`), ...lines, ''].join('\n');
}

function historyRowExtent(row: KeptRow): string {
  if (row.kind === 'session') return historyRowAmount(row.turns, 'turn');
  if (row.tasks === 0 && row.awaitsApproval) return 'plan waits for approval';
  return row.tasks === 0 ? 'no plan' : `${countText(row.landed)}/${historyRowAmount(row.tasks, 'task')}`;
}

function historyRowAmount(number: number, noun: string): string {
  return `${countText(number)} ${noun}${number === 1 ? '' : 's'}`;
}

function padHistoryCell(
  text: string,
  column: { readonly width: number; readonly align?: 'right' } | undefined,
): string {
  const space = ' '.repeat(Math.max(0, (column?.width ?? 0) - widthOfText(text)));
  return column?.align === 'right' ? space + text : text + space;
}
