// One picture of a run, as lines that fit a terminal: what the dashboard paints. A pure function.
//
//   drover  Replace moment with date-fns everywhere
//   2 of 9 landed, 1 failed · $0.42 of $5.00 · 1m12s · about 3m left
//
//   › ▸ billing      running          14s    3.1k  $0.0101  shell: pnpm test billing
//     ✗ calendar     failed         1m02s   12.4k  $0.0312  the time limit of 60 s is reached
//     … and 7 more: 4 waiting, 3 landed
//
//   ── billing · conversation ─────────────────────────────────
//   I'll run the tests of billing first.
//   ▸ shell: pnpm test billing
//
//   ↑↓ select · Enter open · d diff · s message · ? keys
//
// The rows stay while a panel or a question is open below them, so that a user sees what the run does meanwhile.

import type { RunState } from '@drover/coordinator/view/state';
import { textInAscii, type Style } from '../text/style.ts';
import { textCell, cutText, textOnOneLine, widthOfText } from '../text/terminal-text.ts';
import { dashboardFiguresLine } from './head.ts';
import { listDashboardTasks, dashboardTaskLines } from './rows.ts';

const GAP = '  ';
const SPACIOUS_ROWS = 20; // from this height on there is room for empty lines
const TASK_ROWS_MIN = 3; // while a panel is open
const TASK_SHARE = 0.4; // of the height, at most, while a panel is open
const PANEL_ROWS_MIN = 4;
const NOTES_MAX = 3;

export type Canvas = {
  readonly columns: number;
  readonly rows: number;
  readonly now: number;
  readonly style: Style;
  readonly ascii: boolean;
  /** Whose last line is shown: the one that says most. */
  readonly loudest: string | undefined;
  /** The user can select a task. */
  readonly isOperable: boolean;
};

/** Rows under a title. `top`: the first one that is shown; undefined follows the end. */
export type Panel = { readonly title: string; readonly rows: readonly string[]; readonly top: number | undefined };

/** The line at the bottom: a hint, a question, or what the user types, with the column of the cursor. */
export type BottomLine = {
  readonly text: string;
  readonly format: 'dim' | 'yellow' | 'bold';
  readonly cursor?: number | undefined;
};

/** The parts of the picture that the user opens and types. */
export type Desk = {
  readonly selected: string | undefined;
  readonly panel: Panel | undefined;
  readonly question: Panel | undefined;
  readonly notes: readonly string[];
  readonly bottom: BottomLine | undefined;
};

export const EMPTY_DESK: Desk = {
  selected: undefined,
  panel: undefined,
  question: undefined,
  notes: [],
  bottom: undefined,
};

/** `heights`: the rows of each panel that are on the screen. */
export type Frame = {
  readonly lines: readonly string[];
  readonly cursor: { readonly row: number; readonly column: number } | undefined;
  readonly heights: { readonly panel: number; readonly question: number };
};

/** At most as many lines as the terminal has rows. */
export function dashboardFrame(state: RunState, desk: Desk, canvas: Canvas): Frame {
  const { columns, rows, style } = canvas;
  const isSpacious = rows >= SPACIOUS_ROWS;
  const blank = isSpacious ? [''] : [];
  const head = [
    style('bold', cutText(`drover${GAP}${textOnOneLine(state.settings?.goal ?? '', columns)}`, columns)),
    style(state.isPaused ? 'yellow' : 'dim', dashboardFiguresLine(state, canvas)),
    ...blank,
  ];
  const { bottom } = desk;
  const foot = bottom === undefined ? [] : [...blank, style(bottom.format, cutText(bottom.text, columns))];
  const extra = desk.panel === undefined && desk.question === undefined ? lowerDashboardLines(state, desk, canvas) : [];
  const room = Math.max(1, rows - head.length - foot.length - (extra.length > 0 ? extra.length + blank.length : 0));
  const heights = shareDashboardRows(state, desk, room);
  const panels = [
    ...dashboardPanelLines(desk.panel, heights.panel, canvas),
    ...dashboardPanelLines(desk.question, heights.question, canvas),
  ];
  const tasks = dashboardTaskLines(state, { room: heights.tasks, selected: desk.selected }, canvas);
  const lines = [...head, ...tasks, ...(extra.length > 0 ? [...blank, ...extra] : []), ...panels, ...foot];
  const cursor = bottom?.cursor === undefined ? undefined : { row: lines.length - 1, column: bottom.cursor };
  return {
    lines: lines.slice(0, rows).map((line) => (canvas.ascii ? textInAscii(line) : line)),
    cursor,
    heights: { panel: Math.max(0, heights.panel - 1), question: Math.max(0, heights.question - 1) },
  };
}

type Shares = { readonly tasks: number; readonly panel: number; readonly question: number };

/** A question is shown whole as far as it fits; an open panel gets what is left. */
function shareDashboardRows(state: RunState, { panel, question }: Desk, room: number): Shares {
  if (panel === undefined && question === undefined) return { tasks: room, panel: 0, question: 0 };
  const wanted = Math.max(1, listDashboardTasks(state).length);
  const least = Math.min(wanted, TASK_ROWS_MIN, Math.max(1, room - PANEL_ROWS_MIN));
  const asked = question === undefined ? 0 : Math.min(question.rows.length + 1, room - least);
  if (panel === undefined) return { tasks: Math.max(least, room - asked), panel: 0, question: asked };
  const tasks = Math.min(wanted, Math.max(least, Math.floor(room * TASK_SHARE)));
  const left = room - asked - tasks;
  if (left >= PANEL_ROWS_MIN) return { tasks, panel: left, question: asked };
  const rest = room - asked - least;
  return rest >= PANEL_ROWS_MIN
    ? { tasks: least, panel: rest, question: asked }
    : { tasks: room - asked, panel: 0, question: asked };
}

function dashboardPanelLines(panel: Panel | undefined, height: number, canvas: Canvas): readonly string[] {
  if (panel === undefined || height < 1) return [];
  const { columns, style } = canvas;
  const seats = height - 1;
  const top = topOfPanel(panel, seats);
  const more = panel.rows.length - top - seats;
  const place = panel.rows.length <= seats ? '' : more > 0 ? `${more} more below` : 'end';
  const title = `── ${textCell(panel.title, columns)} `;
  const room = Math.max(0, columns - widthOfText(title) - (place === '' ? 0 : place.length + 4));
  const line = `${title}${'─'.repeat(room)}${place === '' ? '' : ` ${place} ──`}`;
  const shown = panel.rows.slice(top, top + seats);
  return [style('dim', cutText(line, columns)), ...shown, ...Array.from({ length: seats - shown.length }, () => '')];
}

/** The first row that is shown in a panel of this height. */
function topOfPanel({ rows, top }: Panel, height: number): number {
  const last = Math.max(0, rows.length - height);
  return Math.min(top ?? last, last);
}

/** Notes, and the last line of the task that says most. */
function lowerDashboardLines(state: RunState, { notes }: Desk, canvas: Canvas): readonly string[] {
  const { columns, loudest, style, rows } = canvas;
  const recent = notes.slice(rows >= SPACIOUS_ROWS ? -NOTES_MAX : -1);
  const line = loudest === undefined ? '' : textOnOneLine(state.tasks.get(loudest)?.lastLine ?? '', columns);
  const isHeard = loudest !== undefined && line !== '' && state.end === undefined;
  const heard = isHeard
    ? [style('dim', cutText(`› ${textCell(loudest, columns)}: ${textCell(line, columns)}`, columns))]
    : [];
  return [...recent.map((note) => style('yellow', cutText(note, columns))), ...heard];
}
