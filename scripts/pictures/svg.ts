// Draws the screen of a terminal emulator as an SVG image.

import type { IBufferCell, Terminal } from '@xterm/headless';

const CELL = { width: 8.4, height: 18 };
const FONT_SIZE = 14;
const PADDING = 14;
const BACKGROUND = '#16181d';
const FOREGROUND = '#d6d9e0';
const DIM = '#868b98';
// The 16 colours of a terminal, the bright ones last.
const PALETTE = (
  '#3b4048 #e06c75 #8cc570 #d9a95c #61aeee #c678dd #56b6c2 #c8ccd4 ' +
  '#5c6370 #ef7b85 #a3d98a #e5c07b #7cc0ff #d896ea #6fcdd9 #ffffff'
).split(' ');

type Run = { readonly column: number; readonly text: string; readonly style: string };

/** The visible rows of the terminal, without blank ones at the end. */
export function terminalSvg(terminal: Terminal, label: string): string {
  const rows = visibleRows(terminal);
  const width = Math.ceil(terminal.cols * CELL.width + 2 * PADDING);
  const height = Math.ceil(rows.length * CELL.height + 2 * PADDING);
  const lines = rows.flatMap((runs, row) => runs.map((run) => drawRun(run, row)));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(label)}">`,
    `<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${FONT_SIZE}" fill="${FOREGROUND}" xml:space="preserve">`,
    ...lines,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

function visibleRows(terminal: Terminal): readonly (readonly Run[])[] {
  const { active } = terminal.buffer;
  const rows = Array.from({ length: terminal.rows }, (_, row) => runsOf(terminal, active.viewportY + row));
  const last = rows.findLastIndex((runs) => runs.length > 0);
  return rows.slice(0, last + 1);
}

/** Neighbouring cells of one style become one run. Blank cells end a run, so columns stay aligned in any font. */
function runsOf(terminal: Terminal, at: number): readonly Run[] {
  const line = terminal.buffer.active.getLine(at);
  const runs: Run[] = [];
  for (let column = 0; column < terminal.cols; column++) {
    const cell = line?.getCell(column);
    const text = cell?.getChars() ?? '';
    if (cell === undefined || text.trim() === '') continue;
    const style = styleOf(cell);
    const last = runs.at(-1);
    if (last !== undefined && last.style === style && last.column + last.text.length === column)
      runs[runs.length - 1] = { ...last, text: last.text + text };
    else runs.push({ column, text, style });
  }
  return runs;
}

function styleOf(cell: IBufferCell): string {
  const colour = cell.isFgDefault() ? (cell.isDim() ? DIM : undefined) : colourOf(cell);
  const parts = [
    ...(colour === undefined ? [] : [`fill="${colour}"`]),
    ...(cell.isBold() ? ['font-weight="bold"'] : []),
    ...(cell.isItalic() ? ['font-style="italic"'] : []),
  ];
  return parts.map((part) => ` ${part}`).join('');
}

function colourOf(cell: IBufferCell): string {
  const value = cell.getFgColor();
  if (cell.isFgRGB()) return `#${value.toString(16).padStart(6, '0')}`;
  return PALETTE[value] ?? FOREGROUND;
}

function drawRun({ column, text, style }: Run, row: number): string {
  const x = (PADDING + column * CELL.width).toFixed(1);
  const y = (PADDING + (row + 0.75) * CELL.height).toFixed(1);
  const length = (text.length * CELL.width).toFixed(1);
  return `<text x="${x}" y="${y}" textLength="${length}"${style}>${escaped(text)}</text>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
