// The plan screen as lines: a pure function of the plan, what is known about it, and the size of the terminal.
//
// Every line fits into the columns, and there are at most as many as rows. A long plan scrolls.

import type { Cap } from '@drover/protocol/limits';
import type { PlannedTask } from '@drover/protocol/plan';
import type { RunSettings } from '@drover/protocol/run';
import { countText, dollarsText, durationText } from '../../views/text/figures.ts';
import type { Style } from '../../views/text/style.ts';
import { textCell, cleanText, cutText, widthOfText } from '../../views/text/terminal-text.ts';
import { wrapText } from '../../views/text/word-wrap.ts';
import type { Estimate } from './estimate.ts';

const ID_COLUMNS_MAX = 24;
const INDENT = '    ';
const BODY_ROWS_MIN = 3;

export type PlanFacts = {
  readonly settings: Pick<RunSettings, 'workers' | 'gates' | 'cap'>;
  readonly estimate: Estimate | undefined;
};

export type PlanSight = PlanFacts & {
  readonly tasks: readonly PlannedTask[];
  readonly chosen: number;
  readonly expanded: ReadonlySet<string>;
  readonly top: number; // the first line of the tasks that is shown
  readonly mayComment: boolean;
  readonly note?: string;
};

export type PlanPaper = { readonly columns: number; readonly rows: number; readonly style: Style };

export type PlanFrame = {
  readonly lines: readonly string[];
  readonly top: number; // as asked for, but so that the chosen task can be seen
  readonly isCut: boolean; // the end of the chosen task is below
};

export function planFrame(sight: PlanSight, paper: PlanPaper): PlanFrame {
  const head = planTotals(sight, paper);
  const foot = planFootLines(sight, paper);
  const blocks = sight.tasks.map((task, at) => planTaskBlock(task, { sight, paper, isChosen: at === sight.chosen }));
  const body = blocks.flat();
  const room = Math.max(BODY_ROWS_MIN, paper.rows - head.length - foot.length - 3);
  const start = blocks.slice(0, sight.chosen).flat().length;
  const end = start + (blocks[sight.chosen]?.length ?? 0);
  const lowest = Math.max(0, body.length - room);
  const wanted = Math.min(Math.max(sight.top, Math.min(start, end - room)), Math.max(start, end - room));
  const top = Math.max(0, Math.min(lowest, wanted));
  const shown = body.slice(top, top + room);
  const place = body.length <= room ? '' : `lines ${top + 1} to ${top + shown.length} of ${body.length}`;
  const lines = [...head, '', ...shown, paper.style('dim', textCell(place, paper.columns)), ...foot];
  return { lines, top, isCut: end > top + room };
}

/** How large the plan is, and what it may cost. */
export function planTotals(
  { tasks, settings, estimate }: Pick<PlanSight, 'tasks' | 'settings' | 'estimate'>,
  paper: PlanPaper,
): readonly string[] {
  const { workers, gates, cap } = settings;
  const many = `${tasks.length} ${tasks.length === 1 ? 'task' : 'tasks'}`;
  const sizes = [
    `Plan: ${many}`,
    workers === 0 ? 'one worker, in this thread' : `${workers} ${workers === 1 ? 'worker' : 'workers'}`,
    `budget ${cap === undefined ? 'none' : planCapWords(cap)}`,
  ];
  const tests = gates.length === 0 ? 'Gates: none, so the result is not tested' : `Gates: ${gates.join('; ')}`;
  return [
    paper.style('bold', textCell(sizes.join(' · '), paper.columns)),
    textCell(tests, paper.columns),
    textCell(planEstimateWords(estimate), paper.columns),
  ];
}

function planCapWords(cap: Cap): string {
  return 'usd' in cap ? dollarsText(cap.usd) : `${countText(cap.tokens)} tokens`;
}

export function planEstimateWords(estimate: Estimate | undefined): string {
  if (estimate === undefined) return 'Estimate: none, since no earlier run with this model finished a task';
  const { ms, cost, tasks, runs, isHere } = estimate;
  const price = cost === undefined ? '' : `${dollarsText(cost)} and `;
  const basis = `${tasks} ${tasks === 1 ? 'task' : 'tasks'} in ${runs} ${runs === 1 ? 'run' : 'runs'}`;
  return `Estimate: about ${price}${durationText(ms)} (this model: ${basis} ${isHere ? 'here' : 'elsewhere'})`;
}

type Block = { readonly sight: PlanSight; readonly paper: PlanPaper; readonly isChosen: boolean };

function planTaskBlock(task: PlannedTask, { sight, paper, isChosen }: Block): readonly string[] {
  const { columns, style } = paper;
  const ids = Math.min(
    ID_COLUMNS_MAX,
    Math.max(...sight.tasks.map(({ id }) => widthOfText(textCell(id, ID_COLUMNS_MAX)))),
  );
  const id = textCell(task.id, ids);
  const mark = isChosen ? '› ' : '  ';
  const title = textCell(task.title, columns - ids - 4);
  const name = `${mark}${id}${' '.repeat(ids - widthOfText(id))}`;
  const facts = [
    task.mode === 'read' ? 'reads only' : 'writes',
    task.files.length === 0 ? 'files not named' : `files ${task.files.join(', ')}`,
    task.dependsOn.length === 0 ? 'waits for nothing' : `waits for ${task.dependsOn.join(', ')}`,
    ...((task.gates ?? []).length === 0 ? [] : [`gates ${task.gates?.join('; ')}`]),
  ];
  return [
    `${style(isChosen ? ['bold', 'cyan'] : 'bold', name)}  ${title}`,
    style('dim', cutText(`${INDENT}${textCell(facts.join(' · '), columns - INDENT.length)}`, columns)),
    ...planPromptLines(task, sight.expanded.has(task.id), columns),
  ];
}

function planPromptLines({ prompt }: PlannedTask, isWhole: boolean, columns: number): readonly string[] {
  const room = columns - INDENT.length;
  const text = cleanText(prompt).replaceAll('\t', '  ').trim();
  if (!isWhole) return [`${INDENT}${textCell(text.split('\n', 1)[0] ?? '', room)}`];
  return wrapText(text, room)
    .split('\n')
    .map((line) => `${INDENT}${cutText(line, room)}`);
}

function planFootLines(
  { mayComment, note, expanded, tasks, chosen }: PlanSight,
  { columns, style }: PlanPaper,
): readonly string[] {
  const isOpen = expanded.has(tasks[chosen]?.id ?? '');
  const keys = [
    '[y] run',
    '[n/q] stop',
    `[enter] ${isOpen ? 'fold' : 'expand'}`,
    '[e] edit',
    ...(mayComment ? ['[c] comment'] : []),
    '[↑↓/jk/page] move',
  ];
  return [...(note === undefined ? [] : [style('yellow', textCell(note, columns))]), ...planKeyLines(keys, columns)];
}

/** As many lines as the keys need: none is ever cut. */
function planKeyLines(keys: readonly string[], columns: number): readonly string[] {
  const lines: string[] = [];
  for (const key of keys) {
    const last = lines.pop();
    if (last === undefined) lines.push(key);
    else if (widthOfText(last) + 2 + widthOfText(key) <= columns) lines.push(`${last}  ${key}`);
    else lines.push(last, key);
  }
  return lines;
}
