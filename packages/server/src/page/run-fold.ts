// All that the page shows of a run, as a fold over its events. It knows no page: what is drawn, and how often,
// is for others to say.
//
// The clock is the run's own: it stands still between a crash and the moment the run goes on. What a task's
// agent said is kept per task, and where that becomes too much, what was not touched for longest is let go;
// `conversationOf` then says undefined, and whoever wants it reads the events again.

import type { Recorded } from '@drover/core/events';
import type { Cap } from '@drover/core/model/budget';
import type { Usage } from '@drover/core/model/protocol';
import type { RunSettings } from '@drover/core/task/run';
import type { OpenQuestion } from '@drover/client/wire';
import { Conversation } from './conversation.ts';
import { type Bar, Lane } from './timeline.ts';
import { sum, TaskBoard, type TaskView } from './task-board.ts';

const CONVERSATIONS_MAX = 120;
const NO_USAGE: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const TRAIN = -1;

export type RunEnd = Of<'run_end'>;
export type Spent = { readonly spent: number; readonly reserved: number; readonly cap: Cap | undefined };

type Of<Type extends Recorded['type']> = Extract<Recorded, { readonly type: Type }>;

export class RunFold {
  readonly #board = new TaskBoard();
  readonly #lanes = new Map<number, Lane>();
  readonly #train = new Lane(TRAIN);
  readonly #conversations = new Map<string, Conversation>(); // by task; the coordinator's under ''
  readonly #questions = new Map<string, OpenQuestion>();
  readonly #merges = new Map<string, Bar & { toMs: number | undefined; state: Bar['state'] }>();
  #settings: RunSettings | undefined;
  #end: RunEnd | undefined;
  #told: { readonly usage: Usage; readonly cost?: number } | undefined;
  #coordinator: { readonly usage: Usage; readonly cost: number | undefined } = { usage: NO_USAGE, cost: undefined };
  #budget: Spent = { spent: 0, reserved: 0, cap: undefined };
  #startedMs: number | undefined;
  #lastMs = 0; // on the wall's clock
  #stoodStillMs = 0;
  #seq = 0;
  #version = 0;
  #waitMs = 0;

  /** It changes whenever something has. */
  get version(): number {
    return this.#version;
  }

  get seq(): number {
    return this.#seq;
  }

  get settings(): RunSettings | undefined {
    return this.#settings;
  }

  /** How the run ended, unless it has been gone on with since. */
  get end(): RunEnd | undefined {
    return this.#end;
  }

  /** In the order of the plans. */
  get tasks(): ReadonlyMap<string, TaskView> {
    return this.#board.tasks;
  }

  /** The coordinator's first, then the workers'. */
  get lanes(): readonly Lane[] {
    return [...this.#lanes.values()].toSorted((a, b) => a.worker - b.worker);
  }

  /** Merges and gates; without bars where nothing has come to it. */
  get train(): Lane {
    return this.#train;
  }

  get questions(): readonly OpenQuestion[] {
    return [...this.#questions.values()];
  }

  get usage(): Usage {
    return (
      this.#told?.usage ?? [...this.tasks.values()].reduce((all, { usage }) => sum(all, usage), this.#coordinator.usage)
    );
  }

  get cost(): number | undefined {
    if (this.#told !== undefined) return this.#told.cost;
    const costs = [this.#coordinator, ...this.tasks.values()].flatMap(({ cost }) => cost ?? []);
    return costs.length === 0 ? undefined : costs.reduce((all, cost) => all + cost);
  }

  get budget(): Spent {
    return { ...this.#budget, cap: this.#budget.cap ?? this.#settings?.cap };
  }

  /** All that was spent waiting for the throttle. */
  get waitMs(): number {
    return this.#waitMs;
  }

  /** Where the run's clock stands; `nowMs` is of the wall's. It does not count what was never heard of. */
  elapsedMs(nowMs: number): number {
    if (this.#startedMs === undefined) return 0;
    const until = this.#end === undefined ? Math.max(nowMs, this.#lastMs) : this.#lastMs;
    return Math.max(0, until - this.#startedMs - this.#stoodStillMs);
  }

  /** When the last event happened, on the wall's clock. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** What the agent of a task said, or with '' the coordinator; undefined where it is not kept any more. */
  conversationOf(task: string): Conversation | undefined {
    return this.#conversations.get(task);
  }

  take(event: Recorded): void {
    this.#seq = Math.max(this.#seq, event.seq);
    if (event.type === 'run_start') this.#begin(event);
    this.#lastMs = Math.max(this.#lastMs, Date.parse(event.at));
    this.#version += 1;
    const clock = this.#clockOf(event);
    this.#takeOwn(event, clock);
    this.#board.take(event, clock);
    if (event.worker !== undefined) this.#lane(event.worker).take(event, clock);
    this.#listen(event, clock);
  }

  #takeOwn(event: Recorded, clock: number): void {
    switch (event.type) {
      case 'plan_ready':
        // The call that brought it stays open while others work.
        if (event.callId !== undefined) this.#lane(event.worker ?? 0).hold(event.callId);
        return this.#board.plan(event.tasks);
      case 'budget':
        this.#told = event;
        this.#budget = { spent: event.spent, reserved: event.reserved, cap: event.cap };
        return;
      case 'usage':
        if (event.task === undefined) this.#coordinator = { usage: event.total, cost: event.cost };
        return;
      case 'throttle_wait':
        this.#waitMs += event.waitMs;
        return;
      case 'permission_request':
        this.#questions.set(event.requestId, event);
        return;
      case 'permission_decision':
        this.#questions.delete(event.requestId);
        return;
      case 'task_end':
        return this.#forgetQuestions(event.task);
      case 'merge_start':
      case 'gate_start':
        return this.#couple(event, clock);
      case 'merge_end':
        return this.#uncouple(`merge ${event.task}`, event.outcome === 'landed', clock);
      case 'gate_end':
        return this.#uncouple(`gate ${event.tree} ${event.command}`, event.passed, clock);
      case 'run_end':
        this.#end = event;
        this.#told = event;
        this.#questions.clear();
        return this.#stopAll(clock);
      default:
        return;
    }
  }

  #begin(event: Of<'run_start'>): void {
    const at = Date.parse(event.at);
    this.#settings = event;
    if (this.#startedMs === undefined) {
      this.#startedMs = at;
      return;
    }
    this.#stopAll(this.#lastMs - this.#startedMs - this.#stoodStillMs);
    this.#stoodStillMs += Math.max(0, at - this.#lastMs);
    this.#end = undefined;
    this.#questions.clear();
    this.#board.wake();
  }

  #couple(event: Of<'merge_start'> | Of<'gate_start'>, clock: number): void {
    const isMerge = event.type === 'merge_start';
    const task = isMerge ? (event.task ?? '') : (event.tasks.at(-1) ?? '');
    const key = isMerge ? `merge ${event.task}` : `gate ${event.tree} ${event.command}`;
    const label = isMerge ? `merges ${task}` : event.command;
    this.#merges.set(key, this.#train.add(isMerge ? 'merge' : 'gate', { label, task, fromMs: clock }));
  }

  #uncouple(key: string, ok: boolean, clock: number): void {
    const bar = this.#merges.get(key);
    if (bar === undefined) return;
    bar.toMs = clock;
    bar.state = ok ? 'ok' : 'bad';
    this.#merges.delete(key);
  }

  #stopAll(clock: number): void {
    for (const lane of [this.#train, ...this.#lanes.values()]) lane.stop(clock);
    this.#merges.clear();
  }

  #forgetQuestions(task: string | undefined): void {
    for (const [id, question] of this.#questions) if (question.task === task) this.#questions.delete(id);
  }

  #lane(worker: number): Lane {
    const known = this.#lanes.get(worker);
    if (known !== undefined) return known;
    const lane = new Lane(worker);
    this.#lanes.set(worker, lane);
    return lane;
  }

  #listen(event: Recorded, clock: number): void {
    if (event.worker === undefined) return;
    const key = event.task ?? '';
    const conversation = this.#conversations.get(key) ?? new Conversation();
    if (event.type === 'session_start' || !this.#conversations.has(key)) {
      this.#conversations.delete(key); // so that what was touched last stands last
      this.#conversations.set(key, conversation);
      this.#letGo();
    }
    conversation.take(event, clock);
  }

  #letGo(): void {
    if (this.#conversations.size <= CONVERSATIONS_MAX) return;
    for (const key of this.#conversations.keys()) {
      if (key === '') continue;
      this.#conversations.delete(key);
      return;
    }
  }

  #clockOf({ at }: Recorded): number {
    return Math.max(0, Date.parse(at) - (this.#startedMs ?? 0) - this.#stoodStillMs);
  }
}
