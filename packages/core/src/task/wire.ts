// Task wire: both ends of the connection between a task in its own thread and its run.
//
// Messages
//   The thread sends events, requests (events durable, an answer of a model, a decision, the call of a served
//   tool), and that it fell.
//   The run sends one reply to each request, news of the answer that is under way, messages of the user, and stop.
//   Messages are plain data. An error is sent as its Failure, because a thrown error would lose its name and fields.
//   The run talks to the provider for all threads: one warm SDK and fetch, and no thread knows the key. An answer
//   passes the wire once, whole: the run has shown it, journaled it and told its cost by then.
//
// Guarantees
//   1. Messages of the thread arrive in order. Events are batched for a moment, and adjacent deltas of a block are
//      joined. A request flushes the batch, so `settled` covers every event before it.
//   2. A request whose signal aborts is withdrawn and still gets exactly one reply, from the run.
//
// Failure: when the port closes, requests fail, the task's signal aborts, and later messages are ignored. At the run's
// end, questions are withdrawn; an answer under way is left to the owner of the link, which moves or ends the attempt.

import { MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { Question } from '../agent/calls/calls.ts';
import { turnFailureOfSignal } from '../agent/limits.ts';
import type { Decision } from '@drover/protocol/events';
import { DroverError } from '../errors.ts';
import type { Failure } from '@drover/protocol/failures';
import type { AskHooks, AskOrder, AskResult } from './asking.ts';
import type { CallServed } from '../tools/served/served.ts';
import type { TaskLink, TaskMessage } from './link.ts';
import type { FromRun, FromTask, News, Reply, Request, Step } from './wire-messages.ts';
import type { WirePort } from './wire-port.ts';

// Not noticeable to a user, but long enough to batch most of a step. Each message wakes a thread.
const WAIT_MS = 5;
// News of progress is told so often in an idle limit.
const PROGRESS_PART = 1 / 10;

/** The thread's end of the wire. */
export type Line = {
  readonly link: TaskLink;
  /** Aborted when the run sends stop, or when the port closes. */
  readonly signal: AbortSignal;
  /** Tells the run that this task ends the thread. The last thing that it sends. */
  readonly fall: () => void;
  readonly close: () => void;
};

export function taskLinkOverWire({ port }: { readonly port: WirePort }, thread: number): Line {
  const wire = new ThreadEnd(port);
  wire.send({ type: 'begin', thread });
  wire.flush();
  const ask = async (order: AskOrder, hooks: AskHooks, signal: AbortSignal): Promise<AskResult> => {
    const reply = await wire.ask({ type: 'ask', order }, signal, {
      onNews: (news) => tellNewsOverTaskWire(news, hooks),
    });
    if (reply.type !== 'answered') throw unexpectedTaskReply(reply);
    return reply.result;
  };
  const question = async (asked: Question, signal: AbortSignal): Promise<Decision> => {
    const reply = await wire.ask({ type: 'question', question: asked }, signal);
    if (reply.type !== 'decision') throw unexpectedTaskReply(reply);
    return reply.decision;
  };
  const callServed: CallServed = async (call, { onDelta }, signal) => {
    const reply = await wire.ask({ type: 'served', call }, signal, { onDelta });
    if (reply.type !== 'output') throw unexpectedTaskReply(reply);
    return reply.output;
  };
  return {
    link: {
      emit: (event, { turn, step }) => wire.send({ type: 'event', event, step: stepOnTaskWire(turn, step) }),
      settled: async () => void (await wire.ask({ type: 'settled' }, NEVER)),
      ask,
      question,
      callServed,
      mail: {
        onMessage: (hear) => wire.onMessage(hear),
        delivered: (id) => wire.send({ type: 'delivered', id }),
      },
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

function stepOnTaskWire(turn: number | undefined, step: number | undefined): Step {
  return { ...(turn !== undefined && { turn }), ...(step !== undefined && { step }) };
}

function unexpectedTaskReply({ type }: Reply): Error {
  return new Error(`a reply of the wrong kind: ${type}`);
}

function tellNewsOverTaskWire(news: News, hooks: AskHooks): void {
  if (typeof news === 'object') hooks.calling(news.calling);
  else hooks[news]();
}

/** Readers of messages that arrive for a request before its reply. */
type Meanwhile = { readonly onNews?: (news: News) => void; readonly onDelta?: (delta: string) => void };

type Waiting = PromiseWithResolvers<Answered> & Meanwhile;

type Answered = Exclude<Reply, { type: 'failed' }>;

class ThreadEnd {
  readonly #port: WirePort;
  readonly #stop = new AbortController();
  readonly #waiting = new Map<number, Waiting>();
  #hearMessage: ((message: TaskMessage) => void) | undefined;
  readonly #unheard: TaskMessage[] = [];
  #batch: FromTask[] = [];
  #due: NodeJS.Timeout | undefined;
  #isClosed = false;
  #lastId = 0;

  constructor(port: WirePort) {
    this.#port = port;
    port.on('message', (message) => this.#hear(message as FromRun));
    port.on('close', () => this.close());
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  onMessage(hear: (message: TaskMessage) => void): void {
    this.#hearMessage = hear;
    for (const message of this.#unheard.splice(0)) hear(message);
  }

  /** Queues a message, to be sent in one batch with others of the next few milliseconds. */
  send(message: FromTask): void {
    if (!joinTaskWireDeltas(this.#batch, message)) this.#batch.push(message);
    this.#due ??= setTimeout(() => this.flush(), WAIT_MS);
  }

  flush(): void {
    clearTimeout(this.#due);
    this.#due = undefined;
    if (this.#batch.length === 0) return;
    this.#post(this.#batch);
    this.#batch = [];
  }

  async ask(request: Request, signal: AbortSignal, meanwhile: Meanwhile = {}): Promise<Answered> {
    if (this.#isClosed) throw taskWireGone();
    this.#lastId += 1;
    const id = this.#lastId;
    const waiting: Waiting = { ...Promise.withResolvers<Answered>(), ...meanwhile };
    this.#waiting.set(id, waiting);
    const withdraw = () => this.#withdraw(id, turnFailureOfSignal(signal));
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

  close(): void {
    if (this.#isClosed) return;
    this.flush();
    this.#isClosed = true;
    this.#port.close();
    this.#stop.abort(taskWireGone());
    for (const { reject } of this.#waiting.values()) reject(taskWireGone());
    this.#waiting.clear();
  }

  #post(messages: readonly FromTask[]): void {
    if (!this.#isClosed) this.#port.postMessage(messages);
  }

  #hear(message: FromRun): void {
    if (message.type === 'stop') return this.#stop.abort(new DroverError(message.failure));
    if (message.type === 'message') {
      if (this.#hearMessage === undefined) this.#unheard.push(message.message);
      else this.#hearMessage(message.message);
      return;
    }
    const waiting = this.#waiting.get(message.id);
    if (message.type === 'news') return waiting?.onNews?.(message.news);
    if (message.type === 'delta') return waiting?.onDelta?.(message.delta);
    const { id, reply } = message;
    this.#waiting.delete(id);
    if (reply.type === 'failed') waiting?.reject(new DroverError(reply.failure));
    else waiting?.resolve(reply);
  }
}

const GONE: Failure = { kind: 'aborted', by: 'shutdown' };

function taskWireGone(): DroverError {
  return new DroverError(GONE);
}

/** Appends a delta to the previous message if both belong to the same block. Returns whether it did. */
function joinTaskWireDeltas(batch: FromTask[], message: FromTask): boolean {
  const last = batch.at(-1);
  if (last?.type !== 'event' || message.type !== 'event') return false;
  if (!('delta' in last.event) || !('delta' in message.event) || !isSameBlockOnTaskWire(last, message)) return false;
  batch[batch.length - 1] = { ...last, event: { ...last.event, delta: last.event.delta + message.event.delta } };
  return true;
}

type SentEvent = Extract<FromTask, { type: 'event' }>;

function isSameBlockOnTaskWire({ event: a, step: at }: SentEvent, { event: b, step }: SentEvent): boolean {
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

export function serveTaskWire(port: WirePort, link: TaskLink, ear: Ear): Served {
  const end = new RunEnd(port, link, ear);
  return { stop: (failure) => end.stop(failure), hear: () => end.hear(), close: (last) => end.close(last) };
}

class RunEnd {
  readonly #port: WirePort;
  readonly #link: TaskLink;
  readonly #ear: Ear;
  readonly #requests = new Map<number, AbortController>();
  readonly #ending = new Map<number, AbortController>(); // those that end with the wire
  #isClosed = false;

  constructor(port: WirePort, link: TaskLink, ear: Ear) {
    this.#port = port;
    this.#link = link;
    this.#ear = ear;
    port.on('message', (messages) => this.#hear(messages as readonly FromTask[]));
    link.mail.onMessage((message) => this.#post({ type: 'message', message }));
  }

  stop(failure: Failure): void {
    this.#post({ type: 'stop', failure });
  }

  hear(): void {
    // Messages of a network line are heard as they come.
    if (this.#isClosed || !(this.#port instanceof MessagePort)) return;
    for (let next = receiveMessageOnPort(this.#port); next !== undefined; next = receiveMessageOnPort(this.#port))
      this.#hear(next.message as readonly FromTask[]);
  }

  close(last: 'heard' | 'ignored'): void {
    if (this.#isClosed) return;
    if (last === 'heard') this.hear();
    this.#isClosed = true;
    this.#port.close();
    for (const withdrawn of this.#ending.values()) withdrawn.abort(taskWireGone());
    this.#requests.clear();
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
      case 'delivered':
        return this.#link.mail.delivered(message.id);
    }
  }

  async #answer(id: number, request: Request): Promise<void> {
    const withdrawn = new AbortController();
    this.#requests.set(id, withdrawn);
    if (request.type !== 'ask') this.#ending.set(id, withdrawn);
    const reply = await this.#replyTo(id, request, withdrawn.signal).catch(failedTaskReply);
    this.#requests.delete(id);
    this.#ending.delete(id);
    this.#post({ type: 'reply', id, reply });
  }

  async #replyTo(id: number, request: Request, signal: AbortSignal): Promise<Reply> {
    switch (request.type) {
      case 'settled':
        await this.#link.settled();
        return { type: 'stored' };
      case 'ask': {
        const { order } = request;
        return { type: 'answered', result: await this.#link.ask(order, this.#hooks(id, order), signal) };
      }
      case 'question':
        return { type: 'decision', decision: await this.#link.question(request.question, signal) };
      case 'served': {
        const onDelta = (delta: string) => this.#post({ type: 'delta', id, delta });
        return { type: 'output', output: await this.#link.callServed(request.call, { onDelta }, signal) };
      }
    }
  }

  #hooks(id: number, { place, idleMs }: AskOrder): AskHooks {
    const tell = (news: News) => this.#post({ type: 'news', id, news });
    let toldAt = -Infinity;
    return {
      emit: (event) => this.#link.emit(event, place),
      admitted: () => tell('admitted'),
      calling: (name) => tell({ calling: name }),
      progress: () => {
        // Only a task with an idle limit wants to know, and not of each delta.
        if (idleMs === undefined || performance.now() - toldAt < idleMs * PROGRESS_PART) return;
        toldAt = performance.now();
        tell('progress');
      },
    };
  }
}

// Bugs in the run are reported to the task too: without a reply it would wait forever.
function failedTaskReply(error: unknown): Reply {
  if (error instanceof DroverError) return { type: 'failed', failure: error.failure };
  const message = error instanceof Error ? error.message : String(error);
  return { type: 'failed', failure: { kind: 'internal', message } };
}
