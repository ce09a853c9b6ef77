// Resumable event stream of a session or a run: reconnects and continues as one stream.
//
// Guarantees
//   1. Every durable event comes exactly once and in order. A lost connection resumes after the last event received,
//      deltas included, and repeated events are dropped.
//   2. The deltas of a block sum to the text of its `_end`, if its `_start` was received. If the server cannot repeat
//      missed deltas, the rest of the text comes as one more delta before the `_end`.
//   3. A stream that begins after an event which never existed resumes after the server's last event.
//
// Reconnecting
//   1. At once after `resync` or the end of an execution.
//   2. Otherwise after the server's retry time, doubled with each failed try, with jitter.
//   3. A final refusal ends the stream with DroverProblem. Failures for longer than `patienceMs` end it with the last
//      error.
//   4. A silent connection counts as lost: a working server sends a comment every fifteen seconds.

import type { EventType, Recorded } from '@drover/protocol/events';
import { DroverProblem } from './problem.ts';
import { SseParser, SseTooLarge } from './sse.ts';
import type { Resync } from './wire.ts';

const RETRY_MS = 1_000;
const RETRY_MS_MAX = 30_000;
const SILENCE_MS_MAX = 45_000;
const PATIENCE_MS = 5 * 60_000;

/** State of the connection, for display. */
export type Connection =
  | { readonly state: 'open' }
  | { readonly state: 'lost'; readonly retryInMs: number; readonly reason: string };

export type FollowOptions = {
  /** Only events after this one (default: 0, all events). */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** How long the server may be silent before the stream fails. */
  readonly patienceMs?: number;
  readonly onConnection?: (connection: Connection) => void;
};

export type Follow = FollowOptions & {
  readonly connect: (after: number, signal: AbortSignal) => Promise<Response>;
  /** An already open response to read first. */
  readonly first?: Response;
  /** Returns true if no more events can come. Asked when the server closes a stream that brought none. */
  readonly isOver?: (signal: AbortSignal) => Promise<boolean>;
};

export async function* followServerEvents(options: Follow): AsyncGenerator<Recorded> {
  const stream = new Following(options);
  while (!stream.isOver) {
    try {
      yield* stream.read();
    } catch (error) {
      stream.fail(error);
    }
    if (!stream.isOver) await stream.pause();
  }
}

class Following {
  readonly #options: Follow;
  #first: Response | undefined;
  #after: number;
  #retryMs = RETRY_MS;
  #failures = 0; // consecutive tries without an event
  #failingSinceMs: number | undefined; // monotonic time; undefined once bytes have arrived
  #reason = '';
  #lastType: EventType | undefined;
  #waitMs: number | undefined; // the delay that the server asked for
  #isOver = false;
  readonly #texts = new HeardTexts();

  constructor(options: Follow) {
    this.#options = options;
    this.#first = options.first;
    this.#after = options.after ?? 0;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Reads one connection to its end. */
  async *read(): AsyncGenerator<Recorded> {
    const { connect, onConnection, signal } = this.#options;
    signal?.throwIfAborted();
    this.#waitMs = undefined;
    const leaving = new AbortController();
    const both = signal === undefined ? leaving.signal : AbortSignal.any([signal, leaving.signal]);
    const response = this.#first ?? (await connect(this.#after, both));
    this.#first = undefined;
    // 204 means that the server has no more events.
    if (response.status === 204 || response.body === null) {
      this.#isOver = true;
      return;
    }
    onConnection?.({ state: 'open' });
    const parser = new SseParser();
    const before = this.#after;
    try {
      for await (const bytes of readStreamChunks(response.body)) {
        const heard = parser.push(bytes);
        this.#retryMs = parser.retryMs ?? this.#retryMs;
        this.#failingSinceMs = undefined;
        for (const { type, data } of heard) {
          if (type === 'resync') return this.#resync(parseStreamedEvent<Resync>(data));
          const event = parseStreamedEvent<Recorded>(data);
          if (!this.#isNew(event)) continue;
          this.#failures = 0;
          yield* this.#texts.missing(event);
          yield event;
        }
      }
      await this.#end(this.#after > before, both);
    } finally {
      leaving.abort(); // closes the connection when the caller stops reading
    }
  }

  fail(error: unknown): void {
    const { signal, patienceMs = PATIENCE_MS } = this.#options;
    if (signal?.aborted === true) throw signal.reason;
    if (error instanceof DroverProblem && error.isFinal) throw error;
    // A retry would be too large again.
    if (error instanceof SseTooLarge) throw error;
    const now = performance.now();
    this.#failingSinceMs ??= now;
    if (now - this.#failingSinceMs > patienceMs) throw error;
    this.#failures += 1;
    this.#reason = error instanceof Error ? error.message : String(error);
    if (error instanceof DroverProblem) this.#waitMs = error.retryAfterMs;
  }

  async pause(): Promise<void> {
    const { signal, onConnection } = this.#options;
    const grown = Math.min(this.#retryMs * 2 ** Math.max(0, this.#failures - 1), RETRY_MS_MAX);
    const spread = grown * (0.5 + Math.random() / 2);
    const retryInMs = Math.min(this.#waitMs ?? spread, Math.max(RETRY_MS_MAX, this.#retryMs));
    onConnection?.({ state: 'lost', retryInMs, reason: this.#reason });
    await sleepBeforeReconnect(retryInMs, signal);
  }

  /** Handles a stream that the server closed: final after the end of a run, otherwise it reconnects. */
  async #end(hasBrought: boolean, signal: AbortSignal): Promise<void> {
    const { isOver } = this.#options;
    const isLast = this.#lastType === 'run_end' || (!hasBrought && (await isOver?.(signal)));
    if (isLast === true) this.#isOver = true;
    // An execution's stream ends with it. Later events come on another stream, so reconnect without a wait.
    this.#waitMs = hasBrought && this.#lastType === 'session_end' ? 0 : undefined;
    this.#failures += 1;
    this.#reason = 'the server closed the connection';
  }

  /** Continues from `seq`: this reader was too slow, or named an event that the server does not know. */
  #resync({ reason, seq }: Resync): void {
    this.#after = Math.min(this.#after, seq);
    this.#reason = reason;
    this.#waitMs = this.#failures === 0 ? 0 : undefined;
    this.#failures += 1;
  }

  #isNew(event: Recorded): boolean {
    if (event.seq <= this.#after) return false;
    this.#after = event.seq;
    if (!isStreamedLiveOnly(event.type) && event.type !== 'delivered') this.#lastType = event.type;
    return true;
  }
}

/** Counts the characters received of each block. */
class HeardTexts {
  readonly #chars = new Map<string, number>(); // keys: worker and part

  /** Yields the missed text of the block that ends with this event, as a delta. */
  *missing(event: Recorded): Generator<Recorded> {
    switch (event.type) {
      case 'text_start':
      case 'thinking_start':
        this.#chars.set(streamBlockKey(event), 0);
        return;
      case 'text_delta':
      case 'thinking_delta': {
        const heard = this.#chars.get(streamBlockKey(event));
        if (heard !== undefined) this.#chars.set(streamBlockKey(event), heard + event.delta.length);
        return;
      }
      case 'text_end':
      case 'thinking_end': {
        const { text, type, ...rest } = event;
        const heard = this.#chars.get(streamBlockKey(event)) ?? text.length;
        this.#chars.delete(streamBlockKey(event));
        if (heard < text.length)
          yield { ...rest, type: type === 'text_end' ? 'text_delta' : 'thinking_delta', delta: text.slice(heard) };
      }
    }
  }
}

function streamBlockKey({ worker, part }: { readonly worker?: number; readonly part: number }): string {
  return `${worker} ${part}`;
}

/** True for events that are sent live and never written to the journal. */
export function isStreamedLiveOnly(type: EventType): boolean {
  return type === 'heartbeat' || type.endsWith('_delta');
}

export async function sleepBeforeReconnect(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stop = () => reject(signal?.reason as Error);
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener('abort', stop, { once: true });
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

async function* readStreamChunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  let hasEnded = false;
  try {
    while (true) {
      const read = await streamChunkInTime(reader.read());
      if (read.done) break;
      yield read.value;
    }
    hasEnded = true;
  } finally {
    // Cancelling a failed stream repeats its error, which was already handled.
    if (!hasEnded) reader.cancel().catch(() => undefined);
  }
}

async function streamChunkInTime<Value>(reading: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('nothing was heard of the server')), SILENCE_MS_MAX);
  try {
    return await Promise.race([reading, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Parses an event. The server's types are trusted; text that is not JSON throws. */
function parseStreamedEvent<Told>(data: string): Told {
  try {
    const told: Told = JSON.parse(data);
    return told;
  } catch (cause) {
    const title = 'the server sent an event that is not JSON';
    throw new DroverProblem({ type: 'garbled', title, status: 400, detail: String(cause) });
  }
}
