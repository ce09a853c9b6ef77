// The head of a run: the goal, how it stands, and its figures.

import type { RunFold } from '../../run-fold.ts';
import { isOver } from '../../task-board.ts';
import { cacheShare, clockTime, count, dollars, duration, tokensOf } from '../../words.ts';
import { button, h, mark, say, show, stateMark } from '../dom.ts';

export type Standing = 'live' | 'stopped' | 'ended';

export class RunHead {
  readonly element: HTMLElement;
  readonly #title = h('h1', {});
  readonly #about = h('p', { class: 'about' });
  readonly #dot = stateMark('running');
  readonly #word = h('span', {});
  readonly #cancel: HTMLButtonElement;
  readonly #ending = h('p', { class: 'ending', is: { hidden: true } });
  readonly #figures = new Figures(['Elapsed', 'Tasks', 'Tokens', 'From cache', 'Cost', 'Throttled']);
  readonly #meter = h('div', { class: 'meter', is: { role: 'img', hidden: true } }, h('i', {}), h('b', {}));

  constructor(onCancel: () => void) {
    this.#cancel = button('Cancel run', onCancel, { class: 'danger' });
    const pill = h('p', { class: 'pill', is: { role: 'status' } }, this.#dot, this.#word);
    this.element = h(
      'header',
      { class: 'head' },
      h('div', { class: 'head-line' }, this.#title, h('div', { class: 'head-side' }, pill, this.#cancel)),
      this.#about,
      this.#ending,
      this.#figures.element,
      this.#meter,
    );
  }

  update(fold: RunFold, elapsedMs: number, standing: Standing): void {
    const { settings, end } = fold;
    say(this.#title, settings?.goal ?? 'Loading…');
    say(this.#about, settings === undefined ? '' : aboutOf(settings));
    const state = end?.outcome ?? (standing === 'live' ? 'running' : 'stopped');
    mark(this.#dot, 'data-state', MARKS[state]);
    say(this.#word, WORDS[state]);
    show(this.#cancel, standing === 'live');
    say(this.#ending, endingOf(fold));
    show(this.#ending, this.#ending.textContent !== '');
    this.#count(fold, elapsedMs);
  }

  isCancelling(): void {
    this.#cancel.disabled = true;
    say(this.#cancel, 'Cancelling…');
  }

  #count(fold: RunFold, elapsedMs: number): void {
    const tasks = [...fold.tasks.values()];
    const bad = tasks.filter(({ state }) => ['failed', 'conflict', 'gate_failed'].includes(state)).length;
    const over = tasks.filter(({ state }) => isOver(state)).length;
    const share = cacheShare(fold.usage);
    const { cap, spent, reserved } = fold.budget;
    this.#figures.set('Elapsed', clockTime(elapsedMs), '');
    this.#figures.set('Tasks', `${over} / ${tasks.length}`, bad > 0 ? `${bad} failed` : '');
    this.#figures.set('Tokens', count(tokensOf(fold.usage)), `${count(fold.usage.output)} out`);
    this.#figures.set('From cache', share === undefined ? '–' : `${share} %`, '');
    this.#figures.set('Cost', dollars(fold.cost), cap === undefined ? '' : `of ${capWords(cap)}`);
    this.#figures.set('Throttled', duration(fold.waitMs), '');
    show(this.#meter, cap !== undefined);
    if (cap === undefined) return;
    const whole = 'usd' in cap ? cap.usd : cap.tokens;
    const [used, held] = this.#meter.children as unknown as readonly [HTMLElement, HTMLElement];
    used.style.width = `${Math.min(100, (100 * spent) / whole)}%`;
    held.style.width = `${Math.min(100, (100 * reserved) / whole)}%`;
    mark(this.#meter, 'aria-label', `${Math.round((100 * spent) / whole)} per cent of the budget are spent`);
  }
}

/** Figures with their names. */
export class Figures {
  readonly element: HTMLElement;
  readonly #cells = new Map<string, readonly [HTMLElement, HTMLElement]>();

  constructor(names: readonly string[]) {
    this.element = h('dl', { class: 'figures' });
    for (const name of names) {
      const value = h('span', { class: 'numbers' });
      const more = h('small', { class: 'numbers' });
      this.#cells.set(name, [value, more]);
      this.element.append(h('div', {}, h('dt', {}, name), h('dd', {}, value, more)));
    }
  }

  set(name: string, value: string, more: string): void {
    const [big, small] = this.#cells.get(name) ?? [];
    if (big !== undefined) say(big, value);
    if (small !== undefined) say(small, more);
  }
}

const WORDS = {
  running: 'Running',
  stopped: 'Stopped in the middle',
  done: 'Done',
  incomplete: 'Incomplete',
  error: 'Failed',
  cancelled: 'Cancelled',
} as const;

const MARKS = {
  running: 'running',
  stopped: 'throttled',
  done: 'landed',
  incomplete: 'throttled',
  error: 'failed',
  cancelled: 'cancelled',
} as const;

function aboutOf({ model, repository, branch, workers, gates }: NonNullable<RunFold['settings']>): string {
  const folder = repository.split('/').at(-1) ?? repository;
  const parts = [`${folder}${branch === undefined ? '' : ` on ${branch}`}`, model, `${workers} workers`];
  if (gates.length > 0) parts.push(`gate: ${gates.join(', ')}`);
  return parts.join('  ·  ');
}

function endingOf({ end }: RunFold): string {
  if (end === undefined) return '';
  const { delivered, answer, reason } = end;
  return [reason, answer, delivered?.next === undefined ? undefined : `Next: ${delivered.next}`]
    .filter((part) => part !== undefined && part !== '')
    .join('\n');
}

function capWords(cap: NonNullable<RunFold['budget']['cap']>): string {
  return 'usd' in cap ? dollars(cap.usd) : `${count(cap.tokens)} tok`;
}
