// The rows of tasks: live ones first, then those that failed, wait and are done. A pure function.
//
// The figures stand right behind the name and the state, so that they stay beside their task on a wide terminal.
// The last column says what a task is doing, and gets the room that is left.

import type { AgentProgress } from '@drover/coordinator/view/agent-progress';
import type { RunState, TaskProgress, TaskState } from '@drover/coordinator/view/state';
import { isDone } from '@drover/protocol/run';
import { dollarsText, shortCountText, shortDurationText, totalTokens } from '../text/figures.ts';
import { type Appearance, looksOf, taskTextStyle } from '../text/style.ts';
import { textCell, cutText, widthOfText } from '../text/terminal-text.ts';
import type { Canvas } from './frame.ts';

export const COORDINATOR = 'coordinator';
const NAME_COLUMNS_MAX = 24;
const DOING_COLUMNS_MIN = 8;
const STATE_COLUMNS = Math.max(...Object.values(looksOf).map(({ word }) => word.length));
const COST_COLUMNS = '$0.0000'.length;
const TOKENS_COLUMNS = '999.9k'.length;
const TIME_COLUMNS = '59m59s'.length;
const GAP = '  ';

/** The ids of the rows in order: tasks, and the coordinator while it is alone. */
export function listDashboardTasks(state: RunState): readonly string[] {
  const tasks = [...state.tasks.values()];
  const sorted = tasks.toSorted((a, b) => dashboardRowGroup(b.state) - dashboardRowGroup(a.state)).map(({ id }) => id);
  return isCoordinatorAlone(state) ? [COORDINATOR, ...sorted] : sorted;
}

export type Listing = { readonly room: number; readonly selected: string | undefined };

/** At most `room` lines: rows, and one that counts what is left out. */
export function dashboardTaskLines(state: RunState, { room, selected }: Listing, canvas: Canvas): readonly string[] {
  const ids = listDashboardTasks(state);
  const fits = ids.length <= room;
  const seats = fits ? ids.length : Math.max(1, room - 1);
  const start = Math.max(0, ids.findIndex((id) => id === selected) - seats + 1);
  const shown = ids.slice(start, start + seats);
  const rows = shown.map((id) => dashboardRow(state, id, canvas.now));
  const widths = dashboardRowWidths(rows, canvas.columns - dashboardRowGutter(canvas).length);
  const lines = rows.map((row) => dashboardRowLine(row, widths, { ...canvas, isSelected: row.id === selected }));
  const out = ids.filter((id) => !shown.includes(id)).flatMap((id) => state.tasks.get(id) ?? []);
  return fits ? lines : [...lines, dashboardLeftOutLine(out, canvas)];
}

type Row = {
  readonly id: string;
  readonly state: TaskState;
  readonly looks: Appearance;
  readonly doing: string;
  readonly tokens: string;
  readonly cost: string;
  readonly time: string;
};

function dashboardRow(state: RunState, id: string, now: number): Row {
  const task = state.tasks.get(id);
  if (task === undefined) return dashboardCoordinatorRow(state);
  const { plan, startedMs, usage, cost } = task;
  const spent = totalTokens(usage);
  return {
    id,
    state: task.state,
    looks: taskTextStyle(task),
    doing: [...dashboardRowNote(task), dashboardRowActivity(task) || plan.title, ...dashboardRowHost(task)].join(' '),
    tokens: spent === 0 ? '' : shortCountText(spent),
    cost: cost === undefined || spent === 0 ? '' : dollarsText(cost),
    time: startedMs === undefined ? '' : shortDurationText(task.workedMs(state.elapsedMs(now), now)),
  };
}

function dashboardRowNote({ messages, attempts, endedMs }: TaskProgress): readonly string[] {
  if (endedMs !== undefined) return [];
  return [
    ...(attempts > 1 ? [`(attempt ${attempts})`] : []),
    ...(messages.length > 0 ? [`(${messages.length} of your messages waits)`] : []),
  ];
}

function dashboardRowHost({ isOpen, attempt }: TaskProgress): readonly string[] {
  return isOpen && attempt?.host !== undefined ? [`on ${attempt.host}`] : [];
}

function dashboardRowActivity({ state, doing, reason, isReady, plan }: TaskProgress): string {
  switch (state) {
    case 'waiting':
      return isReady || plan.dependsOn.length === 0 ? '' : `for ${plan.dependsOn.join(', ')}`;
    case 'failed':
    case 'skipped':
    case 'conflict':
    case 'gate_failed':
    case 'cancelled':
      return reason ?? '';
    case 'starting':
    case 'thinking':
    case 'running':
    case 'asking':
    case 'throttled':
    case 'retrying':
    case 'merging':
    case 'gate':
    case 'landed':
    case 'done':
      return doing;
  }
}

function dashboardRowGroup(state: TaskState): number {
  switch (state) {
    case 'asking':
    case 'starting':
    case 'thinking':
    case 'running':
    case 'throttled':
    case 'retrying':
    case 'merging':
    case 'gate':
      return 4;
    case 'failed':
    case 'conflict':
    case 'gate_failed':
    case 'cancelled':
      return 3;
    case 'waiting':
      return 2;
    case 'skipped':
    case 'landed':
    case 'done':
      return 1;
  }
}

/** The coordinator has a row while no worker runs: it plans, or writes its answer. */
function isCoordinatorAlone(state: RunState): boolean {
  const isOver = state.tasks.values().every(({ endedMs }) => endedMs !== undefined);
  return state.coordinator.activity !== 'waiting' && isOver;
}

function dashboardCoordinatorRow(state: RunState): Row {
  const { activity, doing, lastLine, usage, cost }: Pick<AgentProgress, Shown> = state.coordinator;
  const tokens = totalTokens(usage) === 0 ? '' : shortCountText(totalTokens(usage));
  const spent = { tokens, cost: cost === undefined ? '' : dollarsText(cost), time: '' };
  const what = doing || lastLine || (state.tasks.size === 0 ? 'makes a plan' : 'looks at what came of it');
  return { id: COORDINATOR, state: activity, looks: looksOf[activity], doing: what, ...spent };
}

type Shown = 'activity' | 'doing' | 'lastLine' | 'usage' | 'cost';

function dashboardLeftOutLine(out: readonly TaskProgress[], canvas: Canvas): string {
  const kinds = Map.groupBy(out, (task) => taskTextStyle(task).word);
  const words = [...kinds].map(([word, { length }]) => `${length} ${word}`).join(', ');
  const line = `${dashboardRowGutter(canvas)}… and ${out.length} more: ${words}`;
  return canvas.style('dim', cutText(line, canvas.columns));
}

/** `figures`: the columns that are shown. `name` and `doing` as wide as they may be. */
type Widths = {
  readonly name: number;
  readonly doing: number;
  readonly tokens: number;
  readonly cost: number;
  readonly isTimed: boolean;
};

/** Each column as wide as it must be; what a task is doing gets the rest. */
function dashboardRowWidths(rows: readonly Row[], columns: number): Widths {
  const longest = Math.max(1, ...rows.map(({ id }) => widthOfText(textCell(id, NAME_COLUMNS_MAX))));
  const fixed = '✓ '.length + GAP.length + STATE_COLUMNS + GAP.length + TIME_COLUMNS;
  const name = Math.max(1, Math.min(longest, columns - fixed));
  let room = columns - fixed - name;
  const take = (width: number): number => {
    if (width === 0 || room < GAP.length + width) return 0;
    room -= GAP.length + width;
    return width;
  };
  // Kept free from the beginning, so that nothing jumps; unless it is plain that there is no price.
  const isUnpriced = rows.some((row) => row.tokens !== '' && row.cost === '');
  const cost = take(isUnpriced ? 0 : Math.max(COST_COLUMNS, ...rows.map((row) => row.cost.length)));
  const tokens = take(TOKENS_COLUMNS);
  const doing = room - GAP.length;
  const isTimed = columns >= fixed + name;
  return { name, doing: doing >= DOING_COLUMNS_MIN ? doing : 0, tokens, cost, isTimed };
}

function dashboardRowLine(row: Row, widths: Widths, canvas: Canvas & { readonly isSelected: boolean }): string {
  const { style, ascii, isSelected } = canvas;
  const { word, sign, ascii: plain, format } = row.looks;
  const isCalm = row.state === 'waiting' || isDone(row.state);
  const figures = [
    ...(widths.isTimed ? [row.time.padStart(TIME_COLUMNS)] : []),
    ...(widths.tokens === 0 ? [] : [row.tokens.padStart(widths.tokens)]),
    ...(widths.cost === 0 ? [] : [row.cost.padStart(widths.cost)]),
  ].join(GAP);
  const doing = textCell(row.doing, widths.doing);
  const name = padDashboardCell(cutText(textCell(row.id, NAME_COLUMNS_MAX), widths.name), widths.name);
  const gutter = dashboardRowGutter(canvas);
  const mark = isSelected && gutter !== '' ? style('bold', '› ') : gutter;
  const isBare = figures.trim() === '' && (widths.doing === 0 || doing === '');
  const parts = [
    `${mark}${style(format, ascii ? plain : sign)} ${isSelected ? style(['bold', 'underline'], name) : name}`,
    style(format, isBare ? word : word.padEnd(STATE_COLUMNS)),
    ...(figures === '' || isBare ? [] : [figures.trim() === '' ? figures : style('dim', figures)]),
    ...(widths.doing === 0 || doing === '' ? [] : [isCalm ? style('dim', doing) : doing]),
  ];
  return parts.join(GAP);
}

function dashboardRowGutter({ isOperable }: Canvas): string {
  return isOperable ? '  ' : '';
}

function padDashboardCell(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOfText(text)));
}
