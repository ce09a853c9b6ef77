// The head of a run: the goal, how it stands, its figures, and what became of it.

import { isProgressEnded } from '@drover/coordinator/view/progress';
import type { RecordedRunEnd, RunState, TaskState } from '@drover/coordinator/view/state';
import type { RunFold } from '../../../run-fold.ts';
import {
  pageCacheShare,
  pageClockTime,
  pageCount,
  pageDollars,
  pageDuration,
  timeLeft,
  pageTokensOf,
} from '../../../words.ts';
import { domButton, h, markDomElement, setDomText, showDomElement, domStateMark } from '../../dom.ts';
import { copyButton } from '../copy.ts';
import { markdown } from '../markdown/markdown-body.ts';

/** `stopped`: it has no end, and no process is at work on it. */
export type RunStanding = 'loading' | 'live' | 'stopped' | 'ended';

const NAMES = ['Elapsed', 'Tasks', 'Tokens', 'From cache', 'Cost', 'Throttled'] as const;

export class RunHead {
  readonly element: HTMLElement;
  readonly #title = h('h1', {});
  readonly #about = h('p', { class: 'about' });
  readonly #dot = domStateMark('idle');
  readonly #word = h('span', {});
  readonly #cancel: HTMLButtonElement;
  readonly #ending = h('section', { class: 'ending', is: { 'aria-label': 'What became of it', hidden: true } });
  readonly #figures = new Map(NAMES.map((name) => [name, new Figure(name)]));
  #endShown: RecordedRunEnd | 'stopped' | undefined;

  constructor(onCancel: () => void) {
    this.#cancel = domButton('Cancel run', onCancel, { class: 'danger', is: { hidden: true } });
    const pill = h('p', { class: 'pill', is: { role: 'status' } }, this.#dot, this.#word);
    this.element = h(
      'header',
      { class: 'head' },
      h('div', { class: 'head-line' }, this.#title, h('div', { class: 'head-side' }, pill, this.#cancel)),
      this.#about,
      h('dl', { class: 'figures' }, ...[...this.#figures.values()].map(({ element }) => element)),
      this.#ending,
    );
  }

  update(fold: RunFold, nowMs: number, standing: RunStanding): void {
    const { settings, end, id } = fold.state;
    setDomText(this.#title, settings?.goal ?? (standing === 'loading' ? 'Loading…' : 'A run without a beginning'));
    setDomText(this.#about, settings === undefined ? '' : runHeadAbout(settings));
    const state = end?.outcome ?? standing;
    markDomElement(this.#dot, 'data-state', STANDINGS[state][0]);
    setDomText(this.#word, STANDINGS[state][1]);
    showDomElement(this.#cancel, standing === 'live');
    const ending = standing === 'stopped' ? 'stopped' : end;
    if (ending !== this.#endShown) this.#ended(ending, id);
    this.#count(fold, nowMs, standing);
  }

  isCancelling(isAsked: boolean): void {
    this.#cancel.disabled = isAsked;
    setDomText(this.#cancel, isAsked ? 'Cancelling…' : 'Cancel run');
  }

  #ended(ending: RecordedRunEnd | 'stopped' | undefined, id: string): void {
    this.#endShown = ending;
    const { reason, answer, delivered, outcome } = ending === 'stopped' ? {} : (ending ?? {});
    const canResume = ending === 'stopped' || outcome === 'cancelled';
    this.#ending.replaceChildren(
      ...(reason === undefined ? [] : [h('p', { class: outcome === 'cancelled' ? 'quiet' : 'problem' }, reason)]),
      ...(answer === undefined ? [] : [answerOf(answer)]),
      ...(delivered?.next === undefined ? [] : [runHeadNextPart('Next', delivered.next)]),
      ...(canResume ? [runHeadNextPart('In a terminal', `drover resume ${id}`)] : []),
    );
    showDomElement(this.#ending, this.#ending.childElementCount > 0);
  }

  #count({ state, waitMs }: RunFold, nowMs: number, standing: RunStanding): void {
    const { usage, cost, cap, spent, reserved } = state;
    const leftMs = standing === 'live' ? state.etaMs(nowMs) : undefined;
    const { all, good, bad, parts } = runHeadTally(state);
    const share = pageCacheShare(usage);
    const whole = cap === undefined ? 0 : 'usd' in cap ? cap.usd : cap.tokens;
    const more =
      cap === undefined
        ? ''
        : `of ${'usd' in cap ? pageDollars(cap.usd) : `${pageCount(cap.tokens).replace(/\.0+ /, ' ')} tokens`}`;
    this.#figure('Elapsed').set(pageClockTime(state.elapsedMs(nowMs)), timeLeft(leftMs));
    this.#figure('Tasks').set(`${good}/${all}`, bad > 0 ? `${bad} failed` : '', parts);
    this.#figure('Tokens').set(pageCount(pageTokensOf(usage)), `${pageCount(usage.output)} out`);
    this.#figure('From cache').set(
      share === undefined ? '–' : `${share} %`,
      '',
      share === undefined ? [] : [['good', share]],
    );
    this.#figure('Cost').set(
      pageDollars(cost),
      more,
      cap === undefined ? [] : runHeadSpentParts(spent, reserved, whole),
    );
    this.#figure('Throttled').set(pageDuration(waitMs), '');
  }

  #figure(name: (typeof NAMES)[number]): Figure {
    const figure = this.#figures.get(name);
    if (figure === undefined) throw new Error(`there is no figure ${name}`);
    return figure;
  }
}

function answerOf(answer: string): HTMLElement {
  const who = h(
    'div',
    { class: 'who' },
    h('span', {}, 'Result'),
    copyButton('the answer', () => answer),
  );
  return h('div', {}, who, markdown(answer));
}

/** The command to type next. */
function runHeadNextPart(words: string, command: string): HTMLElement {
  return h(
    'p',
    { class: 'next' },
    `${words} `,
    h('code', {}, command),
    copyButton('the command', () => command),
  );
}

/** A part of a whole, in per cent, in a colour. */
type Part = readonly ['good' | 'bad' | 'busy' | 'held', number];

/** A number with its name, and below it how much of a whole it is. */
class Figure {
  readonly element: HTMLElement;
  readonly #value = h('span', { class: 'numbers' });
  readonly #more = h('small', { class: 'numbers' });
  readonly #share = h('span', { class: 'share', is: { 'aria-hidden': 'true' } });

  constructor(name: string) {
    this.element = h('div', {}, h('dt', {}, name), h('dd', {}, this.#value, this.#more, this.#share));
  }

  set(value: string, more: string, parts: readonly Part[] = []): void {
    setDomText(this.#value, value);
    setDomText(this.#more, more);
    while (this.#share.childElementCount < parts.length) this.#share.append(h('i', {}));
    parts.forEach(([kind, percent], at) => {
      const part = this.#share.children[at] as HTMLElement;
      markDomElement(part, 'data-kind', kind);
      const width = `${Math.min(100, percent).toFixed(1)}%`;
      if (part.style.width !== width) part.style.width = width;
    });
    showDomElement(this.#share, parts.length > 0);
  }
}

const STANDINGS = {
  loading: ['idle', 'Loading'],
  live: ['running', 'Running'],
  stopped: ['throttled', 'Stopped in the middle'],
  ended: ['idle', 'Ended'],
  done: ['landed', 'Done'],
  incomplete: ['conflict', 'Incomplete'],
  error: ['failed', 'Failed'],
  cancelled: ['cancelled', 'Cancelled'],
} as const;

function runHeadTally({ tasks }: RunState): {
  readonly all: number;
  readonly good: number;
  readonly bad: number;
  readonly parts: readonly Part[];
} {
  const states = [...tasks.values()].map(({ state }) => state);
  const all = states.length;
  const of = (holds: (state: TaskState) => boolean) => states.filter(holds).length;
  const good = of((state) => state === 'landed' || state === 'done');
  const bad = of((state) => state === 'failed' || state === 'conflict' || state === 'gate_failed');
  const busy = of((state) => !isProgressEnded(state) && state !== 'waiting');
  const share = (count: number) => (100 * count) / Math.max(1, all);
  return {
    all,
    good,
    bad,
    parts: [
      ['good', share(good)],
      ['bad', share(bad)],
      ['busy', share(busy)],
    ],
  };
}

function runHeadSpentParts(spent: number, reserved: number, whole: number): readonly Part[] {
  return [
    ['good', (100 * spent) / whole],
    ['held', (100 * reserved) / whole],
  ];
}

function runHeadAbout({ model, repository, branch, workers, gates }: NonNullable<RunState['settings']>): string {
  const parts = [`${repository}${branch === undefined ? '' : ` on ${branch}`}`, model, `${workers} workers`];
  if (gates.length > 0) parts.push(`gate: ${gates.join(', ')}`);
  return parts.join('  ·  ');
}
