// The tasks of a run, each as a row that can be chosen.

import { isProgressEnded } from '@drover/coordinator/view/progress';
import { isUnchangedInView, type RunState, type TaskProgress, type TaskState } from '@drover/coordinator/view/state';
import { pageCount, pageDollars, pageDuration, pageTokensOf } from '../../../words.ts';
import { fillDomElement, h, markDomElement, setDomText, showDomElement, domStateMark } from '../../dom.ts';

const STATE_WORDS: Readonly<Record<TaskState, string>> = {
  waiting: 'waiting',
  starting: 'starting',
  thinking: 'thinking',
  running: 'running',
  asking: 'asks you',
  throttled: 'throttled',
  retrying: 'tries again',
  merging: 'merging',
  gate: 'in the gate',
  landed: 'landed',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
  conflict: 'conflict',
  gate_failed: 'gate failed',
  cancelled: 'cancelled',
};

/** A task that was to write and changed nothing says so. */
export function runPartStateWord(task: TaskProgress): string {
  return isUnchangedInView(task) ? 'no change' : STATE_WORDS[task.state];
}

type Row = {
  readonly element: HTMLElement;
  readonly update: (task: TaskProgress, elapsedMs: number, isChosen: boolean) => void;
};

/** `chosen`: the task that is looked at, or ''; `empty`: what to say if there is none. */
export type SeenTask = { readonly chosen: string; readonly empty: string };

export class TaskList {
  readonly element: HTMLElement;
  readonly #list = h('ul', { class: 'tasks' });
  readonly #empty = h('p', { class: 'empty' });
  readonly #tally = h('span', { class: 'quiet numbers' });
  readonly #rows = new Map<string, Row>();
  readonly #onTask: (task: string) => void;

  constructor(onTask: (task: string) => void) {
    this.#onTask = onTask;
    this.element = h(
      'section',
      { class: 'panel task-panel', is: { 'aria-labelledby': 'tasks-title' } },
      h('header', {}, h('h2', { is: { id: 'tasks-title' } }, 'Tasks'), this.#tally),
      h('div', { class: 'scroll' }, this.#list, this.#empty),
    );
  }

  update({ tasks: all }: RunState, elapsedMs: number, { chosen, empty }: SeenTask): void {
    const tasks = [...all.values()];
    const rows = tasks.map((task) => {
      const row = this.#rows.get(task.id) ?? newRunPartTaskRow(task, this.#onTask);
      this.#rows.set(task.id, row);
      row.update(task, elapsedMs, task.id === chosen);
      return row.element;
    });
    fillDomElement(this.#list, rows);
    showDomElement(this.#empty, tasks.length === 0);
    setDomText(this.#empty, empty);
    const over = tasks.filter(({ state }) => isProgressEnded(state)).length;
    setDomText(this.#tally, tasks.length === 0 ? '' : `${over} of ${tasks.length}`);
  }
}

function newRunPartTaskRow({ id }: TaskProgress, onTask: (task: string) => void): Row {
  const dot = domStateMark('waiting');
  const title = h('span', { class: 'task-title' });
  const doing = h('span', { class: 'task-doing' });
  const word = h('span', { class: 'task-state' });
  const figures = h('span', { class: 'task-figures numbers' });
  const press = h(
    'button',
    { class: 'task', on: { click: () => onTask(id) }, is: { type: 'button' } },
    dot,
    h('span', { class: 'task-words' }, title, doing),
    h('span', { class: 'task-end' }, word, figures),
  );
  return {
    element: h('li', {}, press),
    update: (task, elapsedMs, isChosen) => {
      markDomElement(dot, 'data-state', task.state);
      markDomElement(press, 'aria-current', isChosen ? 'true' : false);
      setDomText(title, task.plan.title);
      setDomText(doing, runPartTaskLine(task));
      markDomElement(word, 'data-state', task.state);
      setDomText(word, `${runPartStateWord(task)}${isRunPartTaskKnown(task) ? ' already' : ''}`);
      setDomText(figures, runPartTaskFigures(task, elapsedMs));
    },
  };
}

/** No worker had it: its result is known from an earlier run. */
function isRunPartTaskKnown({ attempts, state }: TaskProgress): boolean {
  return attempts === 0 && (state === 'landed' || state === 'done');
}

/** The fact about it that matters most now. */
function runPartTaskLine(task: TaskProgress): string {
  if (task.doing !== '') return task.doing;
  if (task.reason !== undefined) return task.reason;
  if (task.state === 'waiting' && task.plan.dependsOn.length > 0) return `after ${task.plan.dependsOn.join(', ')}`;
  if (isProgressEnded(task.state)) return task.summary ?? '';
  return task.worker === undefined ? '' : `worker ${task.worker}`;
}

function runPartTaskFigures(
  { startedMs, endedMs, usage, cost, attempts, waitMs }: TaskProgress,
  elapsedMs: number,
): string {
  if (startedMs === undefined) return '';
  const parts = [pageDuration((endedMs ?? elapsedMs) - startedMs), `${pageCount(pageTokensOf(usage))} tok`];
  if (cost !== undefined) parts.push(pageDollars(cost));
  if (attempts > 1) parts.push(`${attempts} attempts`);
  if (waitMs >= 1_000) parts.push(`waited ${pageDuration(waitMs)}`);
  return parts.join(' · ');
}
