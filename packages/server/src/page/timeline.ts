// When who did what, as lanes of bars: one lane a worker, one for the merge train. A fold over events.
//
// A step's bar goes from the message that was sent to the answer that is whole, with a mark where the answer
// began; a call's bar from its start to its end, below the step, in rows where calls overlap. Times are on
// the run's clock. A lane keeps its newest bars and says from when on it has them.

import type { Recorded } from '@drover/protocol/events';

const BARS_MAX = 2_500; // of a lane
const BARS_DROPPED = 500; // at once
const SPANS_MAX = 500;
const ROWS_MAX = 3; // of calls side by side that are drawn apart

export type BarKind = 'step' | 'call' | 'wait' | 'merge' | 'gate';
type BarState = 'open' | 'held' | 'ok' | 'bad';

export type Bar = {
  readonly id: number; // rises within its lane
  readonly kind: BarKind;
  readonly label: string;
  readonly task: string;
  readonly callId: string; // of a call; else another word that is its own
  readonly row: number; // among calls side by side
  readonly rows: number; // so many are
  readonly fromMs: number;
  readonly firstMs: number | undefined; // when the answer began
  readonly toMs: number | undefined; // still open
  readonly state: BarState;
};

/** A task's stay in a lane. */
export type Span = {
  readonly task: string;
  readonly attempt: number;
  readonly fromMs: number;
  readonly toMs: number | undefined;
};

type Begun = { readonly callId: string; readonly label: string; readonly task?: string | undefined };
type Growing<Type> = { -readonly [Key in keyof Type]: Type[Key] };

export class Lane {
  readonly worker: number;
  readonly bars: Growing<Bar>[] = [];
  readonly spans: Growing<Span>[] = [];
  /** Bars from before this time are gone. */
  cutMs = 0;
  #nextId = 1;
  #step: Growing<Bar> | undefined; // asked, and not answered
  #wait: Growing<Bar> | undefined;
  readonly #open = new Map<string, Growing<Bar>>();
  #stopped = new Map<string, Growing<Bar>>(); // calls that were open when the run stopped

  constructor(worker: number) {
    this.worker = worker;
  }

  get span(): Span | undefined {
    return this.spans.at(-1);
  }

  take(event: Recorded, clock: number): void {
    switch (event.type) {
      case 'task_start':
        return this.#enter(event, clock);
      case 'task_end':
        return this.#leave(clock);
      case 'message_end':
        if (event.message.role !== 'assistant') return this.#ask(event, clock);
        return this.#answered(clock, event.message.stop === 'error' || event.message.stop === 'aborted');
      case 'message_start':
        if (event.role === 'assistant') this.#hear(event, clock);
        return;
      case 'throttle_wait':
        return this.#throttle(event, clock);
      case 'retry':
        return this.#endWait(clock);
      case 'tool_execution_start':
        return this.#begin('call', { ...event, label: event.summary }, clock);
      case 'tool_execution_end':
        if (!this.#open.has(event.callId)) this.#begin('call', { ...event, label: event.summary }, clock);
        return this.#end(event.callId, !event.isError, clock);
      case 'awaiting_tool_execution':
        for (const call of event.calls) {
          this.#begin('call', { ...call, task: event.task, label: call.summary }, clock);
          this.hold(call.callId);
        }
        return;
      case 'permission_request':
        this.#begin('wait', { callId: event.requestId, label: `Asks: ${event.summary}`, task: event.task }, clock);
        return this.hold(event.requestId);
      case 'permission_decision':
        return this.#end(event.requestId, true, clock);
      case 'merge_start':
        return this.#begin(
          'merge',
          { label: `Merge ${event.task}`, task: event.task, callId: timelineMergeKey(event) },
          clock,
        );
      case 'merge_end':
        return this.#end(timelineMergeKey(event), event.outcome === 'landed', clock);
      case 'gate_start':
        return this.#begin(
          'gate',
          { label: event.command, task: event.tasks.at(-1), callId: timelineGateKey(event) },
          clock,
        );
      case 'gate_end':
        return this.#end(timelineGateKey(event), event.passed, clock);
      case 'done':
      case 'incomplete':
      case 'error':
      case 'cancelled':
        return this.rest(clock);
      default:
        return;
    }
  }

  /** A call waits for others. */
  hold(callId: string): void {
    this.#set(this.#open.get(callId), { state: 'held' });
  }

  /** Nothing is under way any more. */
  rest(clock: number): void {
    // A question that was never sent is not a step.
    if (this.#step !== undefined && this.#step.firstMs === undefined) {
      const at = this.bars.lastIndexOf(this.#step);
      if (at !== -1) this.bars.splice(at, 1);
      this.#step = undefined;
    }
    this.#answered(clock, true);
    for (const bar of this.#open.values()) this.#set(bar, { toMs: clock, state: 'bad' });
    this.#open.clear();
  }

  /** All that is open has come to nothing, as after a crash. */
  stop(clock: number): void {
    this.#stopped = new Map(this.#open);
    this.rest(clock);
    this.#leave(clock);
    for (const bar of this.bars) if (bar.toMs === undefined) this.#set(bar, { toMs: clock, state: 'bad' });
  }

  #enter({ task = '', attempt = 1 }: Recorded, clock: number): void {
    this.#leave(clock);
    this.spans.push({ task, attempt, fromMs: clock, toMs: undefined });
    if (this.spans.length > SPANS_MAX) this.spans.shift();
  }

  #leave(clock: number): void {
    this.rest(clock);
    const last = this.spans.at(-1);
    if (last !== undefined) last.toMs ??= clock;
  }

  #ask({ task = '' }: Recorded, clock: number): void {
    if (this.#step !== undefined) return;
    this.#step = this.#add('step', { label: 'Asks the model', task, fromMs: clock });
  }

  #hear({ task = '', step }: Recorded, clock: number): void {
    this.#endWait(clock);
    this.#step ??= this.#add('step', { label: '', task, fromMs: clock });
    this.#set(this.#step, { firstMs: clock, label: step === undefined ? 'Step' : `Step ${step}` });
  }

  #answered(clock: number, isBad: boolean): void {
    this.#endWait(clock);
    this.#set(this.#step, { toMs: clock, state: isBad ? 'bad' : 'ok' });
    this.#step = undefined;
  }

  // It is told when the wait begins, with what is expected, or when it is over, with what it was.
  #throttle({ task = '', waitMs, reason }: Extract<Recorded, { readonly type: 'throttle_wait' }>, clock: number): void {
    this.#endWait(clock);
    const askedMs = this.#step?.fromMs ?? clock;
    const isOver = clock - askedMs >= waitMs / 2;
    const fromMs = isOver ? Math.max(askedMs, clock - waitMs) : clock;
    this.#wait = this.#add('wait', { label: `Throttled: ${reason}`, task, fromMs, state: 'held' });
    if (isOver) this.#endWait(clock);
  }

  #endWait(clock: number): void {
    this.#set(this.#wait, { toMs: clock });
    this.#wait = undefined;
  }

  #begin(kind: BarKind, { callId, label, task = '' }: Begun, clock: number): void {
    // A resumed call has not failed: it waited while the run stood still.
    this.#set(this.#stopped.get(callId), { state: 'held' });
    const taken = new Set([...this.#open.values()].map(({ row }) => row));
    let row = 0;
    while (row < ROWS_MAX - 1 && taken.has(row)) row += 1;
    this.#open.set(callId, this.#add(kind, { label, task, callId, row, fromMs: clock }));
    const rows = Math.max(...this.#open.values().map((bar) => Math.max(bar.row + 1, bar.rows)));
    for (const bar of this.#open.values()) bar.rows = rows;
  }

  #end(callId: string, ok: boolean, clock: number): void {
    const bar = this.#open.get(callId);
    // A call that waited did nothing else.
    this.#set(bar, { toMs: clock, state: !ok ? 'bad' : bar?.state === 'held' ? 'held' : 'ok' });
    this.#open.delete(callId);
  }

  #add(kind: BarKind, fields: Pick<Bar, 'label' | 'task' | 'fromMs'> & Partial<Bar>): Growing<Bar> {
    const bar: Growing<Bar> = {
      id: this.#nextId++,
      kind,
      callId: '',
      row: 0,
      rows: 1,
      firstMs: undefined,
      toMs: undefined,
      state: 'open',
      ...fields,
    };
    this.bars.push(bar);
    if (this.bars.length > BARS_MAX) this.#drop();
    return bar;
  }

  #set(bar: Growing<Bar> | undefined, fields: Partial<Bar>): void {
    if (bar !== undefined) Object.assign(bar, fields);
  }

  #drop(): void {
    const gone = this.bars.splice(0, BARS_DROPPED);
    this.cutMs = Math.max(this.cutMs, ...gone.map(({ fromMs, toMs }) => toMs ?? fromMs));
  }
}

function timelineMergeKey({ task }: Recorded): string {
  return `merge ${task}`;
}

function timelineGateKey({ tree, command }: { readonly tree: string; readonly command: string }): string {
  return `gate ${tree} ${command}`;
}
