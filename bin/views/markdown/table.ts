// Tables on a terminal: columns as wide as their cells, narrowed until the table fits, with cells that wrap. Without
// room for columns, each row is a list of its cells.

import type { Tokens } from '@drover/markdown/block-stream';
import { inlineMarkdownSpans } from './inline.ts';
import { type Looks, type Row, type Span, markdownSpan, widthOfMarkdownRow, wrapMarkdownSpans } from './spans.ts';

const CELL_COLUMNS_MIN = 6;
const GAP = 3; // " │ "

export function markdownTableRows(
  { header, rows, align }: Tokens.Table,
  columns: number,
  looks: Looks,
): readonly Row[] {
  const heads = header.map(({ tokens }) => inlineMarkdownSpans(tokens, looks, ['bold']));
  const cells = rows.map((row) => heads.map((_, at) => inlineMarkdownSpans(row[at]?.tokens ?? [], looks)));
  const widths = fitMarkdownColumns(
    heads.map((head, at) => Math.max(...[head, ...cells.map((row) => row[at] ?? [])].map(widthOfMarkdownRow), 1)),
    columns,
  );
  if (widths === undefined) return markdownTableRecords(heads, cells, columns);
  const line = (row: readonly (readonly Span[])[]): readonly Row[] => markdownTableRow(row, { widths, align, looks });
  const rule = looks.isAscii ? ['-', '-+-'] : ['─', '─┼─'];
  const under = widths.map((width) => rule[0]?.repeat(width)).join(rule[1]);
  return [...line(heads), [markdownSpan(under, ['dim'])], ...cells.flatMap(line)];
}

/** Widths that fit together, the widest narrowed first; undefined if there is no room. */
function fitMarkdownColumns(natural: readonly number[], columns: number): readonly number[] | undefined {
  const room = columns - GAP * (natural.length - 1);
  const sum = (widths: readonly number[]): number => widths.reduce((total, each) => total + each, 0);
  if (sum(natural.map((each) => Math.min(each, CELL_COLUMNS_MIN))) > room) return undefined;
  const widths = [...natural];
  while (sum(widths) > room) {
    const widest = widths.indexOf(Math.max(...widths));
    widths[widest] = (widths[widest] ?? 1) - 1;
  }
  return widths;
}

type Columns = { readonly widths: readonly number[]; readonly align: Tokens.Table['align']; readonly looks: Looks };

function markdownTableRow(cells: readonly (readonly Span[])[], { widths, align, looks }: Columns): readonly Row[] {
  const wrapped = cells.map((cell, at) => wrapMarkdownSpans(cell, widths[at] ?? 1));
  const height = Math.max(...wrapped.map((rows) => rows.length));
  const bar = markdownSpan(looks.isAscii ? ' | ' : ' │ ', ['dim']);
  return Array.from({ length: height }, (_, line) =>
    wrapped.flatMap((rows, at): Row => {
      const row = rows[line] ?? [];
      const free = Math.max((widths[at] ?? 0) - widthOfMarkdownRow(row), 0);
      const left = align[at] === 'right' ? free : align[at] === 'center' ? Math.floor(free / 2) : 0;
      const isLast = at === wrapped.length - 1;
      const right = isLast ? 0 : free - left;
      return [
        ...(left > 0 ? [markdownSpan(' '.repeat(left))] : []),
        ...row,
        markdownSpan(' '.repeat(right)),
        ...(isLast ? [] : [bar]),
      ];
    }),
  );
}

function markdownTableRecords(
  heads: readonly (readonly Span[])[],
  cells: readonly (readonly (readonly Span[])[])[],
  columns: number,
): readonly Row[] {
  return cells.flatMap((row, at) => [
    ...(at === 0 ? [] : [[]]),
    ...row.flatMap((cell, head) => wrapMarkdownSpans([...(heads[head] ?? []), markdownSpan(': '), ...cell], columns)),
  ]);
}
