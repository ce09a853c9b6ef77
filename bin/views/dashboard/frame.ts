// One picture of a run, as lines that fit a terminal: what the dashboard paints. A pure function.
//
//   drover  Replace moment with date-fns everywhere
//   2 of 9 landed, 1 failed · $0.42 of $5.00 · 1m12s · about 3m left
//
//   ✓ api-client   landed    Replace moment in the API client     12.4k  $0.0312   1m02s
//   ▸ billing      running   shell: pnpm test billing              3.1k  $0.0101     14s
//   … and 4 more: 4 waiting
//
//   › billing: ok 12 - rounds half up
//
// Rows keep the order of the plan. Where there are more tasks than rows, those that are under way are
// shown first, then what wants attention, then what comes next. Columns that don't fit are left out.

import { dollars, shortCount, shortDuration, tokensOf } from '../text/figures.ts';
import { inAscii, type Appearance, looksOf, looksOfTask, type Style } from '../text/style.ts';
import { cell, cut, oneLine, widthOfText } from '../text/terminal-text.ts';
import { isDone } from '@drover/protocol/run';
import { isUnchanged, type RunState, type TaskProgress, type TaskState } from '@drover/coordinator/view/state';

const TASKS_MAX = 16;
const NAME_COLUMNS_MAX = 24;
const DOING_COLUMNS_MIN = 14;
const STATE_COLUMNS = Math.max(...Object.values(looksOf).map(({ word }) => word.length));
const COST_COLUMNS = '$0.0000'.length;
const TOKENS_COLUMNS = '999.9k'.length;
const TIME_COLUMNS = '59m59s'.length;
const GAP = '  ';
const SPACIOUS_ROWS = 16; // from this height on there is room for empty lines

export type Canvas = {
  readonly columns: number;
  readonly rows: number;
  readonly now: number;
  readonly style: Style;
  readonly ascii: boolean;
  /** Whose last line is shown: the one that says most. */
  readonly loudest: string | undefined;
};

/** At most as many lines as the terminal has rows, less one for the cursor. */
export function frameOf(state: RunState, canvas: Canvas): readonly string[] {
  const { columns, rows, style } = canvas;
  const gaps = rows >= SPACIOUS_ROWS ? 3 : 0;
  const heard = heardLine(state, canvas);
  // The head has two lines; one is for what is left out, one for the cursor.
  const room = Math.min(TASKS_MAX, Math.max(1, rows - 2 - 1 - 1 - gaps - heard.length));
  const tasks = [...state.tasks.values()];
  const coordinator = coordinatorRow(state);
  const seats = room - coordinator.length;
  const seen = chosen(tasks, tasks.length <= seats + 1 ? seats + 1 : seats);
  const shown = [...coordinator, ...seen.map((task) => rowOf(state, task, canvas))];
  const widths = widthsOf(shown, columns);
  const blank = gaps === 0 ? [] : [''];
  return [
    ...blank,
    style('bold', cut(`drover${GAP}${oneLine(state.settings?.goal ?? '', columns)}`, columns)),
    style('dim', figuresLine(state, canvas)),
    ...(shown.length === 0 ? [] : blank),
    ...shown.map((row) => lineOf(row, widths, canvas)),
    ...leftOut(tasks, seen).map((line) => style('dim', cut(line, columns))),
    ...(heard.length === 0 ? [] : [...blank, ...heard]),
  ].map((line) => (canvas.ascii ? inAscii(line) : line));
}

type Row = {
  readonly name: string;
  readonly state: TaskState;
  readonly looks: Appearance;
  readonly doing: string;
  readonly tokens: string;
  readonly cost: string;
  readonly time: string;
};

function rowOf(state: RunState, task: TaskProgress, { now }: Canvas): Row {
  const { id, plan, startedMs, endedMs, usage, cost } = task;
  const host = task.isOpen ? task.attempt?.host : undefined;
  const spentTokens = tokensOf(usage);
  return {
    name: cell(id, NAME_COLUMNS_MAX),
    state: task.state,
    looks: looksOfTask(task),
    doing: (doingOf(task) || plan.title) + (host === undefined ? '' : ` on ${host}`),
    tokens: spentTokens === 0 ? '' : shortCount(spentTokens),
    cost: cost === undefined || spentTokens === 0 ? '' : dollars(cost),
    time: startedMs === undefined ? '' : shortDuration((endedMs ?? state.elapsedMs(now)) - startedMs),
  };
}

function doingOf({ state, doing, reason, isReady, plan }: TaskProgress): string {
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

const ATTENTION = 3;

/** Order of rows: tasks that wait for an answer first, finished ones last. */
function urgencyOf({ state, isReady }: TaskProgress): number {
  switch (state) {
    case 'asking':
      return 6;
    case 'starting':
    case 'thinking':
    case 'running':
    case 'throttled':
    case 'retrying':
      return 5;
    case 'merging':
    case 'gate':
      return 4;
    case 'failed':
    case 'conflict':
    case 'gate_failed':
    case 'cancelled':
      return ATTENTION;
    case 'waiting':
      return isReady ? 2 : 1;
    case 'skipped':
      return 1;
    case 'landed':
    case 'done':
      return 0;
  }
}

/** The coordinator has a row while no worker runs: it plans, or writes its answer. */
function coordinatorRow(state: RunState): readonly Row[] {
  const { activity, doing, lastLine, usage, cost } = state.coordinator;
  const isAlone = state.tasks.values().every((task) => urgencyOf(task) === ATTENTION || task.endedMs !== undefined);
  if (activity === 'waiting' || !isAlone) return [];
  const tokens = tokensOf(usage) === 0 ? '' : shortCount(tokensOf(usage));
  const spent = { tokens, cost: cost === undefined ? '' : dollars(cost), time: '' };
  const what = doing || lastLine || (state.tasks.size === 0 ? 'makes a plan' : 'looks at what came of it');
  return [{ name: 'coordinator', state: activity, looks: looksOf[activity], doing: what, ...spent }];
}

function chosen(tasks: readonly TaskProgress[], room: number): readonly TaskProgress[] {
  if (tasks.length <= room) return tasks;
  const urgent = new Set(tasks.toSorted((a, b) => urgencyOf(b) - urgencyOf(a)).slice(0, Math.max(room, 1)));
  return tasks.filter((task) => urgent.has(task));
}

function leftOut(tasks: readonly TaskProgress[], seen: readonly TaskProgress[]): readonly string[] {
  const shown = new Set(seen);
  const out = tasks.filter((task) => !shown.has(task));
  if (out.length === 0) return [];
  const kinds = Map.groupBy(out, (task) => looksOfTask(task).word);
  return [`… and ${out.length} more: ${[...kinds].map(([word, { length }]) => `${length} ${word}`).join(', ')}`];
}

type Widths = { readonly name: number; readonly doing: number; readonly tokens: number; readonly cost: number };

/** Each column as wide as it must be; what a task is doing gets the rest. */
function widthsOf(rows: readonly Row[], columns: number): Widths {
  const longest = Math.max(1, ...rows.map(({ name }) => widthOfText(name)));
  const fixed = '✓ '.length + GAP.length + STATE_COLUMNS + GAP.length + TIME_COLUMNS;
  const name = Math.max(1, Math.min(longest, columns - fixed));
  const room = columns - fixed - name;
  const columnOf = (width: number, spare: number): number =>
    room - width - GAP.length >= spare && width > 0 ? width : 0;
  // Kept free from the beginning, so that nothing jumps; unless it is plain that there is no price.
  const isUnpriced = rows.some((row) => row.tokens !== '' && row.cost === '');
  const cost = columnOf(
    isUnpriced ? 0 : Math.max(COST_COLUMNS, ...rows.map((row) => row.cost.length)),
    DOING_COLUMNS_MIN,
  );
  const forCost = cost === 0 ? 0 : cost + GAP.length;
  const tokens = columnOf(TOKENS_COLUMNS, DOING_COLUMNS_MIN + forCost);
  const rest = room - GAP.length - forCost - (tokens === 0 ? 0 : tokens + GAP.length);
  return { name, doing: rest >= DOING_COLUMNS_MIN ? rest : 0, tokens, cost };
}

function lineOf(row: Row, widths: Widths, { style, ascii }: Canvas): string {
  const { word, sign, ascii: plain, format } = row.looks;
  const isCalm = row.state === 'waiting' || isDone(row.state);
  const figures = [
    ...(widths.tokens === 0 ? [] : [row.tokens.padStart(widths.tokens)]),
    ...(widths.cost === 0 ? [] : [row.cost.padStart(widths.cost)]),
    row.time.padStart(TIME_COLUMNS),
  ].join(GAP);
  // Spaces at the end would be wrapped by a terminal that becomes narrower.
  const isEmpty = figures.trim() === '';
  const doing = padded(cell(row.doing, widths.doing), isEmpty ? 0 : widths.doing);
  return [
    `${style(format, ascii ? plain : sign)} ${padded(cut(row.name, widths.name), widths.name)}`,
    style(format, isEmpty && widths.doing === 0 ? word : word.padEnd(STATE_COLUMNS)),
    ...(widths.doing === 0 ? [] : [isCalm ? style('dim', doing) : doing]),
    ...(isEmpty ? [] : [style('dim', figures)]),
  ].join(GAP);
}

/** As many figures as fit, the most important first; in fewer words where there is little room. */
function figuresLine(state: RunState, { columns, now }: Canvas): string {
  const eta = state.etaMs(now);
  const time = [
    shortDuration(state.elapsedMs(now)),
    ...(eta === undefined || eta < 1_000 ? [] : [`about ${shortDuration(eta)} left`]),
  ];
  const all = state.cap !== undefined && 'tokens' in state.cap ? [] : [`${shortCount(tokensOf(state.usage))} tokens`];
  const long = [countWords(state, ' of '), ...spentWords(state, ' of '), ...time];
  const short = [countWords(state, '/'), ...spentWords(state, '/'), ...time];
  const figures = widthOfText(long.join(DOT)) <= columns ? [...long, ...all] : short;
  while (figures.length > 1 && widthOfText(figures.join(DOT)) > columns) figures.pop();
  return cut(figures.join(DOT), columns);
}

const DOT = ' · ';

function countWords(state: RunState, of: string): string {
  const tasks = [...state.tasks.values()];
  if (tasks.length === 0) return emptyWords(state.end?.outcome);
  const unchanged = tasks.filter(isUnchanged).length;
  const good = tasks.filter(({ state: each }) => isDone(each)).length - unchanged;
  const cancelled = tasks.filter(({ state: each }) => each === 'cancelled').length;
  const failed = tasks.filter((task) => urgencyOf(task) === ATTENTION).length - cancelled;
  const word = tasks.some(({ plan }) => plan.mode === 'write') ? 'landed' : 'done';
  const others = `${unchanged === 0 ? '' : `, ${unchanged} without a change`}${failed === 0 ? '' : `, ${failed} failed`}${cancelled === 0 ? '' : `, ${cancelled} cancelled`}`;
  return `${good}${of}${tasks.length} ${word}${others}`;
}

function emptyWords(outcome: NonNullable<RunState['end']>['outcome'] | undefined): string {
  if (outcome === undefined) return 'planning';
  return outcome === 'done' ? 'nothing to do' : 'no task was begun';
}

/** Spent of the budget; without a price, tokens only. */
function spentWords({ cap, cost, spent }: RunState, of: string): readonly string[] {
  if (cap === undefined) return cost === undefined ? [] : [dollars(cost)];
  if ('usd' in cap) return [`${spent === 0 ? '$0' : dollars(spent)}${of}${dollars(cap.usd)}`];
  return [`${shortCount(spent)}${of}${shortCount(cap.tokens)} tokens`];
}

function heardLine(state: RunState, { columns, loudest, style }: Canvas): readonly string[] {
  if (loudest === undefined || state.end !== undefined) return [];
  const line = oneLine(state.tasks.get(loudest)?.lastLine ?? '', columns);
  if (line === '') return [];
  return [style('dim', cut(`› ${cell(loudest, NAME_COLUMNS_MAX)}: ${cell(line, columns)}`, columns))];
}

function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOfText(text)));
}
