// Task wire: both ends of the connection between a task in its own thread and its run.
//
// Messages
//   The thread sends events, requests (events durable, admission, model answer, permission), and that it fell.
//   The run sends the answer as it streams, one reply to each request, and stop. Messages are plain data. An error is
//   sent as its Failure, because a thrown error would lose its name and fields.
//   The run talks to the provider for all threads. One warm SDK and fetch take a third of the time that eight would
//   spend. No thread knows the key.
//
// Guarantees
//   1. Messages of the thread arrive in order. Events are batched for a moment, and adjacent deltas of a block are
//      joined. A request flushes the batch, so `settled` covers every event before it.
//   2. A request whose signal aborts is withdrawn and still gets exactly one reply, from the run.
//
// Failure: when the port closes, requests fail, the task's signal aborts, and later messages are ignored.

import { NO_USAGE } from '../model/spending/usage.ts';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { Question } from '../agent/calls/calls.ts';
import { failureOf } from '../agent/limits.ts';
import type { Decision, Event, Place } from '@drover/protocol/events';
import { DroverError } from '../errors.ts';
import type { Failure } from '@drover/protocol/failures';
import type { Admitted, Seen, Wanted } from '../model/spending/admission.ts';
import type { ModelEvent, ModelRequest } from '@drover/protocol/model';
import type { Usage } from '@drover/protocol/messages';
import { inGroups, oneByOne } from '../one-by-one.ts';
import type { TaskLink } from './link.ts';
import type { Opening } from './order.ts';

// Not noticeable to a user, but long enough to batch most of a step. Each message wakes a thread.
const WAIT_MS = 5;

type Step = Pick<Place, 'turn' | 'step'>;

type Request =
  | { readonly type: 'settled' }
  | { readonly type: 'admit'; readonly wanted: Wanted }
  | {
      readonly type: 'stream';
      readonly model: string; // provider/name
      readonly request: ModelRequest;
      readonly ticket: number | undefined;
    }
  | { readonly type: 'question'; readonly question: Question };

type FromTask =
  | { readonly type: 'begin'; readonly thread: number }
  | { readonly type: 'fell' } // code of this task ends the thread
  | { readonly type: 'event'; readonly event: Event; readonly step: Step }
  | { readonly type: 'request'; readonly id: number; readonly request: Request }
  | { readonly type: 'withdraw'; readonly id: number; readonly failure: Failure }
  | { readonly type: 'settle'; readonly ticket: number; readonly usage: Usage; readonly seen: Seen };

type Reply =
  | { readonly type: 'stored' }
  | { readonly type: 'admitted'; readonly outputTokensMax: number } // the request id is the ticket
  | { readonly type: 'decision'; readonly decision: Decision }
  | { readonly type: 'finished'; readonly events: readonly ModelEvent[] } // the last events of an answer
  | { readonly type: 'failed'; readonly failure: Failure };

type FromRun =
  | { readonly type: 'events'; readonly id: number; readonly events: readonly ModelEvent[] } // part of an answer
  | { readonly type: 'reply'; readonly id: number; readonly reply: Reply }
  | { readonly type: 'stop'; readonly failure: Failure };

/** The thread's end of the wire. */
export type Line = {
  readonly link: TaskLink;
  /** Aborted when the run sends stop, or when the port closes. */
  readonly signal: AbortSignal;
  /** Tells the run that this task ends the thread. The last thing that it sends. */
  readonly fall: () => void;
  readonly close: () => void;
};

export function linkOver({ port }: Opening, thread: number): Line {
  const wire = new ThreadEnd(port);
  wire.send({ type: 'begin', thread });
  wire.flush();
  const admit = async (wanted: Wanted, signal: AbortSignal): Promise<Admitted> => {
    const { id, reply } = await wire.ask({ type: 'admit', wanted }, signal);
    if (reply.type !== 'admitted') throw unexpected(reply);
    const settle = (usage: Usage, seen: Seen) => wire.send({ type: 'settle', ticket: id, usage, seen });
    wire.ticket = id;
    // No `began` here: the run sees the start of the answer itself, before this thread does.
    return { outputTokensMax: reply.outputTokensMax, settle };
  };
  const question = async (asked: Question, signal: AbortSignal): Promise<Decision> => {
    const { reply } = await wire.ask({ type: 'question', question: asked }, signal);
    if (reply.type !== 'decision') throw unexpected(reply);
    return reply.decision;
  };
  return {
    link: {
      emit: (event, { turn, step }) => wire.send({ type: 'event', event, step: stepOf(turn, step) }),
      settled: async () => void (await wire.ask({ type: 'settled' }, NEVER)),
      admission: { admit },
      stream: (model, request, signal) => oneByOne(wire.stream({ model, request }, signal)),
      question,
    },
    signal: wire.signal,
    fall: () => {
      wire.send({ type: 'fell' });
      wire.flush();
    },
    close: () => wire.close(),
  };
}

const NEVER = new AbortController().signal;

function stepOf(turn: number | undefined, step: number | undefined): Step {
  return { ...(turn !== undefined && { turn }), ...(step !== undefined && { step }) };
}

function unexpected({ type }: Reply): Error {
  return new Error(`a reply of the wrong kind: ${type}`);
}

type Waiting = PromiseWithResolvers<Answered> & { readonly onEvents: (events: readonly ModelEvent[]) => void };

type Answered = { readonly id: number; readonly reply: Exclude<Reply, { type: 'failed' }> };

type Asked = { readonly model: string; readonly request: ModelRequest };

class ThreadEnd {
  readonly #port: MessagePort;
  readonly #stop = new AbortController();
  readonly #waiting = new Map<number, Waiting>();
  /** The admission ticket for the next model request. */
  ticket: number | undefined;
  #batch: FromTask[] = [];
  #due: NodeJS.Timeout | undefined;
  #isClosed = false;
  #lastId = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', (message: FromRun) => this.#hear(message));
    port.on('close', () => this.close());
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Queues a message, to be sent in one batch with others of the next few milliseconds. */
  send(message: FromTask): void {
    if (!joined(this.#batch, message)) this.#batch.push(message);
    this.#due ??= setTimeout(() => this.flush(), WAIT_MS);
  }

  flush(): void {
    clearTimeout(this.#due);
    this.#due = undefined;
    if (this.#batch.length === 0) return;
    this.#post(this.#batch);
    this.#batch = [];
  }

  async ask(request: Request, signal: AbortSignal, onEvents: Waiting['onEvents'] = () => {}): Promise<Answered> {
    if (this.#isClosed) throw gone();
    this.#lastId += 1;
    const id = this.#lastId;
    const waiting: Waiting = { ...Promise.withResolvers<Answered>(), onEvents };
    this.#waiting.set(id, waiting);
    const withdraw = () => this.#withdraw(id, failureOf(signal));
    this.send({ type: 'request', id, request });
    if (signal.aborted) withdraw();
    // Flush on the next tick, together with other requests of this tick.
    else process.nextTick(() => this.flush());
    signal.addEventListener('abort', withdraw, { once: true });
    try {
      return await waiting.promise;
    } finally {
      signal.removeEventListener('abort', withdraw);
    }
  }

  #withdraw(id: number, failure: Failure): void {
    if (!this.#waiting.has(id)) return;
    this.send({ type: 'withdraw', id, failure });
    this.flush();
  }

  /** Yields an answer in the batches in which it arrives. Withdraws the request if the caller stops reading. */
  async *stream(asked: Asked, signal: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
    const arrived: ModelEvent[] = [];
    let news = Promise.withResolvers<undefined>();
    const onEvents = (events: readonly ModelEvent[]) => {
      arrived.push(...events);
      news.resolve(undefined);
    };
    const { ticket } = this;
    const whole = this.ask({ type: 'stream', ...asked, ticket }, signal, onEvents);
    const id = this.#lastId;
    try {
      for (;;) {
        // Batches that arrived before the end, or before a failure, come first.
        const last = await Promise.race([news.promise, whole]);
        news = Promise.withResolvers<undefined>();
        if (last === undefined) yield arrived.splice(0);
        else if (last.reply.type === 'finished') return yield last.reply.events;
        else throw unexpected(last.reply);
      }
    } finally {
      this.#withdraw(id, GONE);
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.flush();
    this.#isClosed = true;
    this.#port.close();
    this.#stop.abort(gone());
    for (const { reject } of this.#waiting.values()) reject(gone());
    this.#waiting.clear();
  }

  #post(messages: readonly FromTask[]): void {
    if (!this.#isClosed) this.#port.postMessage(messages);
  }

  #hear(message: FromRun): void {
    if (message.type === 'stop') return this.#stop.abort(new DroverError(message.failure));
    const waiting = this.#waiting.get(message.id);
    if (message.type === 'events') return waiting?.onEvents(message.events);
    const { id, reply } = message;
    this.#waiting.delete(id);
    if (reply.type === 'failed') waiting?.reject(new DroverError(reply.failure));
    else waiting?.resolve({ id, reply });
  }
}

const GONE: Failure = { kind: 'aborted', by: 'shutdown' };

function gone(): DroverError {
  return new DroverError(GONE);
}

/** Appends a delta to the previous message if both belong to the same block. Returns whether it did. */
function joined(batch: FromTask[], message: FromTask): boolean {
  const last = batch.at(-1);
  if (last?.type !== 'event' || message.type !== 'event') return false;
  if (!('delta' in last.event) || !('delta' in message.event) || !sameBlock(last, message)) return false;
  batch[batch.length - 1] = { ...last, event: { ...last.event, delta: last.event.delta + message.event.delta } };
  return true;
}

type SentEvent = Extract<FromTask, { type: 'event' }>;

function sameBlock({ event: a, step: at }: SentEvent, { event: b, step }: SentEvent): boolean {
  if (a.type !== b.type || at.turn !== step.turn || at.step !== step.step) return false;
  if ('callId' in a && 'callId' in b) return a.callId === b.callId;
  return 'part' in a && 'part' in b && a.part === b.part;
}

/** The run's end of the wire. */
export type Served = {
  readonly stop: (failure: Failure) => void;
  /** Handles messages that have arrived but are unread. */
  readonly hear: () => void;
  /** Closes the wire. Messages that have arrived but are unread are handled first, or dropped. */
  readonly close: (last: 'heard' | 'ignored') => void;
};

export type Ear = {
  /** Called first, with the thread's id. */
  readonly onBegin: (thread: number) => void;
  /** Called with every message: the thread is alive. */
  readonly onSign: () => void;
  /** Code of this task has ended the thread. */
  readonly onFell: () => void;
};

export function serveTask(port: MessagePort, link: TaskLink, ear: Ear): Served {
  const end = new RunEnd(port, link, ear);
  return { stop: (failure) => end.stop(failure), hear: () => end.hear(), close: (last) => end.close(last) };
}

class RunEnd {
  readonly #port: MessagePort;
  readonly #link: TaskLink;
  readonly #ear: Ear;
  readonly #requests = new Map<number, AbortController>();
  readonly #tickets = new Map<number, Admitted>();
  #isClosed = false;

  constructor(port: MessagePort, link: TaskLink, ear: Ear) {
    this.#port = port;
    this.#link = link;
    this.#ear = ear;
    port.on('message', (messages: readonly FromTask[]) => this.#hear(messages));
  }

  stop(failure: Failure): void {
    this.#post({ type: 'stop', failure });
  }

  hear(): void {
    if (this.#isClosed) return;
    for (let next = receiveMessageOnPort(this.#port); next !== undefined; next = receiveMessageOnPort(this.#port))
      this.#hear(next.message as readonly FromTask[]);
  }

  close(last: 'heard' | 'ignored'): void {
    if (this.#isClosed) return;
    if (last === 'heard') this.hear();
    this.#isClosed = true;
    this.#port.close();
    for (const withdrawn of this.#requests.values()) withdrawn.abort(gone());
    this.#requests.clear();
    this.#tickets.clear();
  }

  #post(message: FromRun): void {
    if (!this.#isClosed) this.#port.postMessage(message);
  }

  #hear(messages: readonly FromTask[]): void {
    if (this.#isClosed) return;
    this.#ear.onSign();
    for (const message of messages) this.#take(message);
  }

  #take(message: FromTask): void {
    switch (message.type) {
      case 'begin':
        return this.#ear.onBegin(message.thread);
      case 'fell':
        return this.#ear.onFell();
      case 'event':
        return this.#link.emit(message.event, message.step);
      case 'request':
        return void this.#answer(message.id, message.request);
      case 'withdraw':
        return this.#requests.get(message.id)?.abort(new DroverError(message.failure));
      case 'settle': {
        this.#tickets.get(message.ticket)?.settle(message.usage, message.seen);
        this.#tickets.delete(message.ticket);
      }
    }
  }

  async #answer(id: number, request: Request): Promise<void> {
    const withdrawn = new AbortController();
    this.#requests.set(id, withdrawn);
    const reply = await this.#replyTo(id, request, withdrawn.signal).catch(failed);
    this.#requests.delete(id);
    this.#post({ type: 'reply', id, reply });
  }

  async #replyTo(id: number, request: Request, signal: AbortSignal): Promise<Reply> {
    switch (request.type) {
      case 'settled':
        await this.#link.settled();
        return { type: 'stored' };
      case 'admit': {
        const admitted = await this.#link.admission.admit(request.wanted, signal);
        // The task is gone and cannot return the admission, so return it here.
        if (this.#isClosed) admitted.settle(NO_USAGE, {});
        else this.#tickets.set(id, admitted);
        return { type: 'admitted', outputTokensMax: admitted.outputTokensMax };
      }
      case 'stream':
        return this.#stream(id, request, signal);
      case 'question':
        return { type: 'decision', decision: await this.#link.question(request.question, signal) };
    }
  }

  async #stream(
    id: number,
    { model, request, ticket = -1 }: Extract<Request, { type: 'stream' }>,
    signal: AbortSignal,
  ): Promise<Reply> {
    for await (const events of inGroups(this.#link.stream(model, request, signal))) {
      const [first] = events;
      if (first?.type === 'started') this.#tickets.get(ticket)?.began?.(first.headers ?? {});
      if (events.at(-1)?.type === 'finished') return { type: 'finished', events };
      if (events.length > 0) this.#post({ type: 'events', id, events });
    }
    throw new Error('a provider ended its stream without `finished`');
  }
}

// Bugs in the run are reported to the task too: without a reply it would wait forever.
function failed(error: unknown): Reply {
  if (error instanceof DroverError) return { type: 'failed', failure: error.failure };
  const message = error instanceof Error ? error.message : String(error);
  return { type: 'failed', failure: { kind: 'internal', message } };
}
