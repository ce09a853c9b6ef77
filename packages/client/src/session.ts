// A session whose tools run in this process: sends messages, runs the calls that the server awaits, and delivers
// their results until the turn ends.
//
//   const session = await client.session({ tools: { now: { description, schema, run: () => Date() } } });
//   const turn = await session.execute('What time is it?');
//   for await (const event of turn) show(event);
//   const { outcome, text } = await turn.result();
//
// Reading the events is optional: `result` also completes if the caller ignores them or stops reading.

import type { PendingCall, Recorded } from '@drover/protocol/events';
import type { Message, Usage } from '@drover/protocol/messages';
import type { DroverClient } from './client.ts';
import { DroverProblem } from './problem.ts';
import { type ClientTools, clientErrorResult, type RemoteCalls } from './remote-calls.ts';
import { sleepBeforeReconnect } from './stream.ts';
import type { ExecuteRequest, RemoteResult, SessionSnapshot } from './wire.ts';

const DELIVERY_TRIES_MAX = 8;
const DELIVERY_RETRY_MS = 500;

export type TurnResult = {
  readonly outcome: 'done' | 'incomplete' | 'error' | 'cancelled';
  readonly reason?: string;
  readonly messages: readonly Message[]; // the new messages only
  readonly usage: Usage; // of this turn, as far as it was received
  readonly cost?: number;
  /** The last text of the model. */
  readonly text: string;
};

export type ExecuteOptions = Omit<ExecuteRequest, 'content'> & { readonly signal?: AbortSignal };

export type SessionOptions = {
  readonly client: DroverClient;
  readonly id: string;
  readonly tools: ClientTools;
  readonly calls: RemoteCalls;
};

export class ClientSession {
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get id(): string {
    return this.#options.id;
  }

  snapshot(signal?: AbortSignal): Promise<SessionSnapshot> {
    return this.#options.client.snapshot(this.id, signal);
  }

  /** Sends a message and resolves as soon as the server has accepted it. */
  async execute(content: string, { signal, ...wishes }: ExecuteOptions = {}): Promise<Turn> {
    const { client, id } = this.#options;
    const { seq } = await client.snapshot(id, signal, { messages: 0 });
    const first = await client.openExecution(id, { content, ...wishes }, signal);
    const events = client.follow(id, { after: seq, first, ...(signal && { signal }) });
    return new Turn({ ...this.#options, events, pending: [], signal });
  }

  /** Resumes a turn that runs or waits for tools of this process; undefined if there is none. */
  async resume({ signal }: Pick<ExecuteOptions, 'signal'> = {}): Promise<Turn | undefined> {
    const { client, id } = this.#options;
    const { seq, status, pending } = await client.snapshot(id, signal, { messages: 0 });
    if (status === 'idle') return undefined;
    const events = client.follow(id, { after: seq, ...(signal && { signal }) });
    return new Turn({ ...this.#options, events, pending, signal });
  }
}

type TurnOptions = SessionOptions & {
  readonly events: AsyncIterable<Recorded>;
  readonly pending: readonly PendingCall[]; // known before the first event
  readonly signal: AbortSignal | undefined;
};

/** One turn. The iterating caller reads its events, otherwise `result` does. */
export class Turn implements AsyncIterable<Recorded> {
  readonly #source: AsyncGenerator<Recorded, TurnResult>;
  readonly #ended = Promise.withResolvers<TurnResult>();
  #isRead = false;
  #isWanted = false;

  constructor(options: TurnOptions) {
    this.#source = takeClientTurn(options);
    // A failure reaches the caller through the iteration or through `result`.
    this.#ended.promise.catch(() => undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Recorded> {
    if (this.#isRead) throw new Error('a turn is read by one reader at a time');
    this.#isRead = true;
    try {
      for (let event = await this.#next(); event !== undefined; event = await this.#next()) yield event;
    } finally {
      this.#isRead = false;
      if (this.#isWanted) void this.#drain();
    }
  }

  result(): Promise<TurnResult> {
    this.#isWanted = true;
    if (!this.#isRead) void this.#drain();
    return this.#ended.promise;
  }

  async #drain(): Promise<void> {
    this.#isRead = true;
    try {
      while ((await this.#next()) !== undefined);
    } catch (error) {
      this.#ended.reject(error); // no effect: #next has already rejected it
    }
  }

  async #next(): Promise<Recorded | undefined> {
    try {
      const step = await this.#source.next();
      if (step.done !== true) return step.value;
      this.#ended.resolve(step.value);
      return undefined;
    } catch (error) {
      this.#ended.reject(error);
      throw error;
    }
  }
}

async function* takeClientTurn(options: TurnOptions): AsyncGenerator<Recorded, TurnResult> {
  const { events, pending, signal } = options;
  const over = new AbortController();
  const both = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
  const deliveries = new Deliveries({ ...options, signal: both });
  deliveries.begin(pending);
  const told: Extract<Recorded, { readonly type: 'session_end' }>[] = [];
  try {
    for await (const event of deliveries.watch(events)) {
      if (event.type === 'awaiting_tool_execution') deliveries.begin(event.calls);
      yield event;
      if (event.type !== 'session_end') continue;
      told.push(event);
      if (event.outcome !== 'suspended') break;
    }
  } finally {
    over.abort(); // no caller needs the tools that still run
  }
  return clientTurnResult(told);
}

type DeliveryOptions = SessionOptions & { readonly signal: AbortSignal };

/** Runs awaited calls concurrently and delivers their results. */
class Deliveries {
  readonly #options: DeliveryOptions;
  readonly #failed = Promise.withResolvers<never>();

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#failed.promise.catch(() => undefined); // `watch` races this promise
  }

  begin(pending: readonly PendingCall[]): void {
    for (const call of pending)
      this.#settle(call).catch((error: unknown) => {
        if (!this.#options.signal.aborted) this.#failed.reject(error);
      });
  }

  /** Passes events on. Throws if a result cannot be delivered, since the turn would never end. */
  async *watch(events: AsyncIterable<Recorded>): AsyncGenerator<Recorded> {
    const iterator = events[Symbol.asyncIterator]();
    try {
      while (true) {
        const step = await Promise.race([iterator.next(), this.#failed.promise]);
        if (step.done === true) return;
        yield step.value;
      }
    } finally {
      void iterator.return?.();
    }
  }

  async #settle(call: PendingCall): Promise<void> {
    const { tools, calls, signal } = this.#options;
    const tool = Object.hasOwn(tools, call.name) ? tools[call.name] : undefined;
    if (tool === undefined) return; // another client runs this tool
    const result = await calls.result(call, tool, signal);
    if (result === undefined || signal.aborted) return;
    await this.#deliver(result);
    calls.settle(call.callId);
  }

  async #deliver(result: RemoteResult): Promise<void> {
    const { client, id, signal } = this.#options;
    for (let tries = 1; ; tries++) {
      try {
        await client.deliver(id, [result], signal);
        return;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof DroverProblem && error.status === 413 && result.isError !== true)
          return this.#deliver(clientErrorResult(result, error));
        // The server already has this result, or no longer waits for it.
        if (error instanceof DroverProblem && (error.status === 409 || error.status === 404)) return;
        const isFinal = error instanceof DroverProblem && error.isFinal;
        if (isFinal || tries === DELIVERY_TRIES_MAX) throw error;
        await sleepBeforeReconnect(DELIVERY_RETRY_MS * 2 ** (tries - 1), signal);
      }
    }
  }
}

function clientTurnResult(told: readonly Extract<Recorded, { readonly type: 'session_end' }>[]): TurnResult {
  const last = told.at(-1);
  if (last === undefined || last.outcome === 'suspended') throw new Error('the events ended before the turn did');
  const messages = told.flatMap((end) => end.messages);
  const costs = told.flatMap(({ cost }) => cost ?? []);
  return {
    outcome: last.outcome,
    ...(last.reason !== undefined && { reason: last.reason }),
    messages,
    usage: told.map(({ usage }) => usage).reduce(sumClientUsage),
    ...(costs.length > 0 && { cost: costs.reduce((a, b) => a + b) }),
    text: clientMessageText(messages.findLast(({ role }) => role === 'assistant')),
  };
}

function sumClientUsage(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
  };
}

function clientMessageText(message: Message | undefined): string {
  if (message?.role !== 'assistant') return '';
  return message.content.flatMap((part) => (part.type === 'text' ? part.text : [])).join('');
}
