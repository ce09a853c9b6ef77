// The timeline: names of lanes, a canvas beside them, and navigation through the bars by pointer or keys.
//
// The canvas only shows. Elements make it accessible: each lane has a name that selects its worker, and a track that
// takes the arrow keys and has one option for the current bar. Tab reaches one name and one track; the up and down
// keys reach the others.

import type { RunFold } from '../../../run-fold.ts';
import type { Bar, Lane } from '../../../timeline.ts';
import { visiblePageText } from '../../../visible.ts';
import { pageDuration } from '../../../words.ts';
import { domButton, fillDomElement, h, markDomElement, setDomText, showDomElement, domStateMark } from '../../dom.ts';
import { timelineLaneName, timelineLaneState, timelineLegend, timelineTone } from './lane-words.ts';
import {
  AXIS_PX,
  drawTimeline,
  timelineHeight,
  LANE_PX,
  timelineMs,
  type Palette,
  timelinePalette,
  type Window,
  timelineX,
} from './timeline-canvas.ts';

const REACH_PX = 6; // how far beside a bar one may point
const SPAN_MS_MIN = 1_000;
const ZOOMS = [
  ['All', undefined],
  ['5 min', 300_000],
  ['1 min', 60_000],
] as const;

export type PanelOptions = {
  readonly onWorker: (worker: number) => void;
  readonly onBar: (worker: number, bar: Bar) => void;
  readonly onChange: () => void;
};

/** `worker`: whose conversation is looked at. */
export type Seen = { readonly isLive: boolean; readonly worker: number | undefined };

type Row = {
  readonly element: HTMLElement;
  readonly name: HTMLButtonElement;
  readonly mark: HTMLElement;
  readonly doing: HTMLElement;
  readonly track: HTMLElement;
  readonly option: HTMLElement;
};

export class TimelinePanel {
  readonly element: HTMLElement;
  readonly #options: PanelOptions;
  readonly #canvas = h('canvas', { is: { 'aria-hidden': 'true' } });
  readonly #rows = h('div', { class: 'lanes' });
  readonly #stage: HTMLElement;
  readonly #tip = h('div', { class: 'tip', is: { hidden: true } });
  readonly #known = new Map<number, Row>();
  readonly #zooms: readonly HTMLButtonElement[];
  #fold: RunFold | undefined;
  #lanes: readonly Lane[] = [];
  #palette: Palette | undefined;
  #lastMs: number | undefined; // so much of it is shown; undefined: all
  #heldMs: number | undefined; // the right edge, once the user has moved away from now
  #chosen: { readonly worker: number; readonly bar: number } | undefined;
  #window: Window = { fromMs: 0, toMs: SPAN_MS_MIN };
  #widthPx = 0;
  #reached = 0; // the lane that Tab leads to

  constructor(options: PanelOptions) {
    this.#options = options;
    this.#zooms = ZOOMS.map(([label, ms]) =>
      domButton(label, () => this.#zoom(ms), { is: { 'aria-pressed': ms === undefined ? 'true' : 'false' } }),
    );
    this.#stage = h('div', { class: 'stage' }, this.#canvas, this.#rows, this.#tip);
    this.element = h(
      'section',
      { class: 'panel timeline', is: { 'aria-labelledby': 'timeline-title' } },
      h(
        'header',
        {},
        h('h2', { is: { id: 'timeline-title' } }, 'Timeline'),
        timelineLegend(),
        h('div', { class: 'choice', is: { role: 'group', 'aria-label': 'How much of it' } }, ...this.#zooms),
      ),
      this.#stage,
    );
    this.#listen();
  }

  /** Another colour scheme, or another size. */
  restyle(): void {
    this.#palette = undefined;
    this.#widthPx = 0;
  }

  update(fold: RunFold, elapsedMs: number, { isLive, worker }: Seen): void {
    this.#fold = fold;
    this.#lanes = fold.train.bars.length > 0 ? [...fold.lanes, fold.train] : fold.lanes;
    fillDomElement(
      this.#rows,
      this.#lanes.map((lane) => this.#row(lane, worker)),
    );
    this.#window = this.#windowAt(elapsedMs);
    this.#palette ??= timelinePalette(this.#stage);
    const context = this.#fit();
    if (context === null) return;
    drawTimeline(context, {
      lanes: this.#lanes,
      window: this.#window,
      nowMs: elapsedMs,
      isLive,
      widthPx: this.#widthPx,
      palette: this.#palette,
      chosen: this.#chosen,
      toneOf: (task) => timelineTone(fold.state.tasks.get(task)?.state),
      titleOf: (task) => visiblePageText(fold.state.tasks.get(task)?.plan.title ?? task),
    });
  }

  #windowAt(elapsedMs: number): Window {
    const toMs = Math.max(this.#heldMs ?? elapsedMs, SPAN_MS_MIN);
    const spanMs = this.#lastMs ?? toMs;
    // A little air, so that what happens now is not at the very edge.
    return { fromMs: Math.max(0, toMs - spanMs), toMs: toMs + spanMs * 0.015 };
  }

  /** The canvas in the pixels of the screen. */
  #fit(): CanvasRenderingContext2D | null {
    const heightPx = timelineHeight(this.#lanes.length);
    const widthPx = this.#widthPx === 0 ? this.#canvas.clientWidth : this.#widthPx;
    const scale = devicePixelRatio;
    const context = this.#canvas.getContext('2d');
    if (this.#canvas.width !== Math.round(widthPx * scale) || this.#canvas.height !== Math.round(heightPx * scale)) {
      this.#canvas.width = Math.round(widthPx * scale);
      this.#canvas.height = Math.round(heightPx * scale);
      this.#canvas.style.height = `${heightPx}px`;
    }
    this.#widthPx = widthPx;
    context?.setTransform(scale, 0, 0, scale, 0, 0);
    return context;
  }

  #row(lane: Lane, worker: number | undefined): HTMLElement {
    const row = this.#known.get(lane.worker) ?? this.#newRow(lane);
    this.#known.set(lane.worker, row);
    const task = lane.span?.toMs === undefined ? this.#fold?.state.tasks.get(lane.span?.task ?? '') : undefined;
    const state = lane.worker > 0 ? (task?.state ?? 'idle') : timelineLaneState(lane);
    markDomElement(row.mark, 'data-state', state);
    markDomElement(row.name, 'aria-pressed', worker === lane.worker ? 'true' : 'false');
    setDomText(row.doing, lane.worker > 0 ? (task?.plan.title ?? 'idle') : '');
    return row.element;
  }

  #newRow(lane: Lane): Row {
    const name = timelineLaneName(lane);
    const doing = h('small', {});
    const dot = domStateMark('idle');
    const press = () => lane.worker >= 0 && this.#options.onWorker(lane.worker);
    const head = h(
      'button',
      {
        class: 'lane-name',
        on: { click: press, keydown: (event) => this.#move(event, lane, 'name') },
        is: { type: 'button' },
      },
      dot,
      h('span', {}, name, doing),
    );
    const option = h('div', { is: { role: 'option', id: `bar-of-${lane.worker}`, 'aria-selected': 'false' } });
    const label = `${name}: steps and calls, arrow keys to go through them`;
    const track = h(
      'div',
      {
        class: 'track',
        on: { keydown: (event) => this.#key(event, lane) },
        is: { role: 'listbox', 'aria-label': label, 'aria-activedescendant': option.id },
      },
      option,
    );
    const element = h('div', { class: 'lane' }, head, track);
    element.style.height = `${LANE_PX}px`;
    const row = { element, name: head, mark: dot, doing, track, option };
    this.#reach(lane.worker, row);
    return row;
  }

  #listen(): void {
    this.#stage.addEventListener('pointermove', (event) => this.#hover(event));
    this.#stage.addEventListener('pointerleave', () => showDomElement(this.#tip, false));
    this.#stage.addEventListener('click', (event) => {
      const found = this.#at(event);
      if (found !== undefined) this.#choose(found.lane, found.bar);
    });
    this.#stage.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
  }

  #zoom(ms: number | undefined): void {
    this.#lastMs = ms;
    this.#heldMs = undefined;
    this.#zooms.forEach((each, at) => markDomElement(each, 'aria-pressed', ZOOMS[at]?.[1] === ms ? 'true' : 'false'));
    this.#options.onChange();
  }

  // Sideways moves in time; with the control key, as a pinch does, it zooms.
  #wheel(event: WheelEvent): void {
    const { fromMs, toMs } = this.#window;
    const spanMs = toMs - fromMs;
    if (event.ctrlKey) {
      event.preventDefault();
      const wanted = spanMs * Math.exp(event.deltaY / 200);
      this.#lastMs = Math.max(SPAN_MS_MIN, wanted);
      this.#zooms.forEach((each) => markDomElement(each, 'aria-pressed', 'false'));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && this.#lastMs !== undefined) {
      event.preventDefault();
      this.#heldMs = Math.max(spanMs, toMs + (event.deltaX / Math.max(1, this.#widthPx)) * spanMs);
    } else return;
    this.#options.onChange();
  }

  #hover(event: PointerEvent): void {
    const found = this.#at(event);
    showDomElement(this.#tip, found !== undefined);
    if (found === undefined) return;
    this.#tip.replaceChildren(h('b', {}, found.bar.label), h('span', {}, this.#told(found.bar)));
    const box = this.#stage.getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 12, box.width - this.#tip.offsetWidth - 8);
    this.#tip.style.transform = `translate(${Math.max(0, left)}px, ${event.clientY - box.top + 16}px)`;
  }

  /** The bar under the pointer, or the nearest in its lane. */
  #at({ clientX, clientY }: MouseEvent): { readonly lane: Lane; readonly bar: Bar } | undefined {
    const box = this.#canvas.getBoundingClientRect();
    const lane = this.#lanes[Math.floor((clientY - box.top - AXIS_PX) / LANE_PX)];
    const x = clientX - box.left;
    if (lane === undefined || x < 0) return undefined;
    const ms = timelineMs(x, this.#window, this.#widthPx);
    const reachMs = timelineMs(x + REACH_PX, this.#window, this.#widthPx) - ms;
    const near = lane.bars
      .map((bar) => ({ bar, off: Math.max(0, bar.fromMs - ms, ms - (bar.toMs ?? this.#window.toMs)) }))
      .filter(({ off }) => off <= reachMs);
    const [best] = near.toSorted((a, b) => a.off - b.off || spanOfTimelineBar(a.bar) - spanOfTimelineBar(b.bar));
    return best && { lane, bar: best.bar };
  }

  #key(event: KeyboardEvent, lane: Lane): void {
    const now = lane.bars.findIndex(({ id }) => this.#chosen?.worker === lane.worker && id === this.#chosen.bar);
    const last = lane.bars.length - 1;
    const to: Readonly<Record<string, number>> = {
      ArrowLeft: now === -1 ? last : Math.max(0, now - 1),
      ArrowRight: now === -1 ? last : Math.min(last, now + 1),
      Home: 0,
      End: last,
      Enter: now,
      ' ': now,
    };
    const bar = lane.bars[to[event.key] ?? -1];
    if (bar === undefined) return this.#move(event, lane, 'track');
    event.preventDefault();
    if (event.key === 'Enter' || event.key === ' ') this.#choose(lane, bar);
    else this.#point(lane, bar);
  }

  /** To the same place in the lane above or below. */
  #move(event: KeyboardEvent, lane: Lane, place: 'name' | 'track'): void {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    const next = step === 0 ? undefined : this.#lanes[this.#lanes.indexOf(lane) + step];
    if (next === undefined) return;
    event.preventDefault();
    this.#reached = next.worker;
    for (const [worker, row] of this.#known) this.#reach(worker, row);
    this.#known.get(next.worker)?.[place].focus();
  }

  #reach(worker: number, { name, track }: Row): void {
    for (const element of [name, track]) markDomElement(element, 'tabindex', worker === this.#reached ? 0 : -1);
  }

  #choose(lane: Lane, bar: Bar): void {
    this.#point(lane, bar);
    this.#options.onBar(lane.worker, bar);
  }

  #point(lane: Lane, bar: Bar): void {
    this.#chosen = { worker: lane.worker, bar: bar.id };
    const option = this.#known.get(lane.worker)?.option;
    if (option !== undefined) {
      markDomElement(option, 'aria-label', `${bar.label}, ${this.#told(bar)}`);
      markDomElement(option, 'aria-selected', 'true');
      option.style.left = `${Math.max(0, timelineX(bar.fromMs, this.#window, this.#widthPx))}px`;
    }
    this.#options.onChange();
  }

  #told({ kind, state, fromMs, toMs, task }: Bar): string {
    const spent = pageDuration((toMs ?? this.#window.toMs) - fromMs);
    const words = {
      open: 'under way',
      held: kind === 'wait' || toMs !== undefined ? '' : 'waits for others',
      ok: '',
      bad: 'failed',
    }[state];
    const whose = this.#fold?.state.tasks.get(task)?.plan.title ?? task;
    return [spent, words, whose].filter((word) => word !== '').join(' · ');
  }
}

function spanOfTimelineBar({ fromMs, toMs }: Bar): number {
  return (toMs ?? Number.MAX_SAFE_INTEGER) - fromMs;
}
