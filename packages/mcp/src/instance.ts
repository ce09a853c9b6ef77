// One instance of a server: connected when it is first needed, connected again when it died.
//
// Guarantees
//   1. A server that dies or does not start is started again twice, after a pause. Then every call of its tools gets an
//      error that says so.
//   2. A call is sent once. One that was cut off is not sent again: it may have taken effect. Only a call that surely
//      reached no tool, since the session of the server had ended, is sent again in a new session.
//   3. A call ends by its result, by a cancel or by a time limit, whatever the server does.

import { setTimeout as delay } from 'node:timers/promises';
import { ToolError } from '@drover/core/errors';
import { bestEffort } from '@drover/core/promises';
import type { ToolOutput } from '@drover/core/tools/tool';
import type { ServedCall } from '@drover/core/tools/served/served';
import { CallClock, OverdueError } from './call-clock.ts';
import { ChangeWatch } from './change-watch.ts';
import type { Asked, Answered, Connection, Prior } from './sdk/connect.ts';
import type { Listed } from './hostile/listed-tool.ts';
import { cleanVisibleText } from './hostile/listed-tool.ts';
import type { ServerSpec } from './server-spec.ts';
import { NotDeliveredError, type Wire } from './wire.ts';

// Servers that register tools once they are connected do it within this time.
const SETTLE_MS = 150;
const LISTS_MAX = 3;
const NOTHING_LISTED: Listed = { tools: [], leftOut: [] };
const RESTARTS_MAX = 2;
const PAUSES_MS = [1_000, 4_000];
const TOTAL_FACTOR = 10;
const DELTA_CHARS_MAX = 500;
const DELTAS_PER_CALL_MAX = 200;
const ASKED_PER_CALL_MAX = 10;
const DECLINED: Answered = { action: 'decline' };

/** A wire that is open, and what can be said when it is not any more. */
export type OpenWire = {
  readonly wire: Wire;
  /** Why it ended, if it did. */
  readonly why: () => string | undefined;
  /** The complaints of the server, for the user. */
  readonly complaints: () => string;
};

export type InstanceOptions = {
  readonly spec: ServerSpec;
  readonly version: string;
  /** Throws an error whose message is for the user. */
  readonly openWire: () => Promise<OpenWire>;
  readonly priors: { readonly get: () => Prior | undefined; readonly set: (prior: Prior | undefined) => void };
  readonly onToolsChanged: () => void;
  readonly onDiagnostic: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  /** Default: waits. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>;
};

/** Answers the questions of a server during a call. */
export type Caller = {
  readonly call: ServedCall;
  readonly onDelta: (delta: string) => void;
  readonly onAsked: (asked: Asked, signal: AbortSignal) => Promise<Answered>;
  /** The trace that the call belongs to. */
  readonly traceparent?: string | undefined;
};

type Running = Caller & { readonly clock: CallClock; asked: number };

type Open = OpenWire & { readonly connection: Connection };

export class Instance {
  readonly #options: InstanceOptions;
  readonly #calls = new Set<Running>();
  readonly #closed = new AbortController();
  readonly #changes = new ChangeWatch(() => this.#compare().catch((error: unknown) => this.#notCompared(error)));
  #open: Open | undefined;
  #opening: Promise<Open> | undefined;
  #starts = 0;
  #hasRun = false;
  #listed: Listed | undefined;
  #hasChanged = false;
  #lastWords = '';

  constructor(options: InstanceOptions) {
    this.#options = options;
  }

  /** How the server calls itself and what it speaks; undefined while it is not connected. */
  get about(): Pick<Connection, 'server' | 'protocol'> | undefined {
    return this.#open?.connection;
  }

  /** Whether it is not started again any more. */
  get isGivenUp(): boolean {
    const isOpen = this.#open !== undefined && this.#open.why() === undefined;
    return this.#starts > RESTARTS_MAX && !isOpen && this.#opening === undefined;
  }

  /** The last output of the server on stderr. */
  get complaints(): string {
    return this.#open?.complaints() ?? this.#lastWords;
  }

  /** Lists the tools of the server, and starts it if it does not run. Throws an error with a sentence for the user. */
  async list(): Promise<Listed> {
    const { startMs } = this.#options.spec;
    const { connection } = await this.#connected(this.#closed.signal);
    const limit = AbortSignal.any([AbortSignal.timeout(startMs), this.#closed.signal]);
    try {
      // Some servers register tools once they are connected, and say so.
      for (let times = 0; times < LISTS_MAX; times++) {
        this.#hasChanged = false;
        this.#listed = await connection.listTools(limit);
        if (connection.announces) await waitToRestartMcpServer(SETTLE_MS, limit);
        if (!this.#hasChanged) break;
      }
      return this.#listed ?? NOTHING_LISTED;
    } catch (error) {
      throw new Error(`it did not list its tools: ${this.#reason(error, `nothing came for ${startMs} ms`)}`, {
        cause: error,
      });
    }
  }

  /** Throws ToolError if there is no result. */
  async call(caller: Caller, signal: AbortSignal): Promise<ToolOutput> {
    try {
      return await this.#callOnce(caller, signal);
    } catch (error) {
      if (!(error instanceof ToolError && error.cause instanceof NotDeliveredError)) throw error;
      return this.#callOnce(caller, signal);
    }
  }

  async #callOnce(caller: Caller, signal: AbortSignal): Promise<ToolOutput> {
    const { spec } = this.#options;
    const { call, onDelta, traceparent } = caller;
    const open = await this.#connected(signal).catch((error: unknown) => {
      throw new ToolError(`The MCP server ${spec.name} is not available: ${messageOfMcpError(error)}`, {
        cause: error,
      });
    });
    using clock = new CallClock({ silentMs: spec.timeoutMs, totalMs: spec.timeoutMs * TOTAL_FACTOR });
    const running: Running = { ...caller, clock, asked: 0 };
    this.#calls.add(running);
    let deltas = 0;
    const onProgress = (progress: Parameters<Parameters<Connection['callTool']>[1]['onProgress']>[0]) => {
      clock.progress();
      if (deltas++ < DELTAS_PER_CALL_MAX) onDelta(mcpProgressLine(progress));
    };
    const stop = AbortSignal.any([signal, clock.signal, this.#closed.signal]);
    try {
      return await open.connection.callTool(
        call,
        { onProgress, meta: traceparent === undefined ? undefined : { traceparent } },
        stop,
      );
    } catch (error) {
      throw new ToolError(this.#failed(open, error, { signal, clock }), { cause: error });
    } finally {
      this.#calls.delete(running);
    }
  }

  /** Ends the server. Calls that wait for it fail. */
  async close(): Promise<void> {
    this.#closed.abort(new Error('it was closed'));
    this.#changes[Symbol.dispose]();
    const opening = this.#opening && bestEffort(this.#opening);
    const open = this.#open ?? (await opening);
    this.#open = undefined;
    await open?.wire.close();
  }

  #failed(open: Open, error: unknown, { signal, clock }: { signal: AbortSignal; clock: CallClock }): string {
    const { name } = this.#options.spec;
    if (signal.aborted) return 'Interrupted. The server was told to cancel; it may have taken effect all the same.';
    if (clock.signal.reason instanceof OverdueError)
      return `The MCP server ${name} did not answer: ${clock.signal.reason.message}. It was told to cancel; it may have taken effect all the same.`;
    const why = open.why();
    if (error instanceof NotDeliveredError) return `The MCP server ${name} is not available: ${error.message}`;
    if (why !== undefined)
      return `The MCP server ${name} is gone: ${why}. The call may have taken effect.${inMcpProgressLines(open.complaints())}`;
    return `The MCP server ${name} could not do it: ${messageOfMcpError(error)}`;
  }

  async #connected(signal: AbortSignal): Promise<Open> {
    if (this.#closed.signal.aborted) throw new Error('it was closed');
    if (this.#open?.why() === undefined && this.#open !== undefined) return this.#open;
    const ended = this.#open;
    this.#open = undefined;
    if (ended !== undefined) void bestEffort(ended.wire.close());
    // One start serves all callers, so a single one cannot cancel it.
    this.#opening ??= this.#start().finally(() => (this.#opening = undefined));
    return unlessMcpCallAborted(this.#opening, signal);
  }

  async #start(): Promise<Open> {
    const { spec, onDiagnostic, pause = waitToRestartMcpServer } = this.#options;
    for (;;) {
      if (this.#starts > RESTARTS_MAX)
        throw new Error(
          `it ended or did not start ${this.#starts} times, and is not started again. ${this.#lastWords}`,
        );
      if (this.#starts > 0) await pause(PAUSES_MS[this.#starts - 1] ?? 0, this.#closed.signal);
      this.#starts += 1;
      try {
        return await this.#startOnce();
      } catch (error) {
        this.#lastWords = messageOfMcpError(error);
        onDiagnostic('an MCP server did not start', { server: spec.name, start: this.#starts, why: this.#lastWords });
        if (this.#closed.signal.aborted) throw error;
        // A server that has never run is not tried again: the mistake is in its entry.
        if (!this.#hasRun) {
          this.#starts = RESTARTS_MAX + 1;
          throw error;
        }
      }
    }
  }

  async #startOnce(): Promise<Open> {
    const { priors } = this.#options;
    const prior = priors.get();
    const first = await this.#startAs(prior).catch((error: unknown) => error);
    if (!(first instanceof Error)) return first as Open;
    // It may speak another revision now, or have ended at the question which one it speaks.
    if (this.#closed.signal.aborted || first instanceof StartError === false) throw first;
    const second = await bestEffort(this.#startAs(prior === undefined ? { kind: 'legacy' } : undefined));
    if (second === undefined) throw first;
    return second;
  }

  async #startAs(prior: Prior | undefined): Promise<Open> {
    const { spec, version, openWire, priors } = this.#options;
    const onToolsChanged = () => {
      this.#hasChanged = true;
      this.#changes.notice();
    };
    const { connectSdkClient: connect } = await import('./sdk/connect.ts');
    const opened = await openWire();
    const limit = AbortSignal.any([AbortSignal.timeout(spec.startMs), this.#closed.signal]);
    try {
      const onAsked = (asked: Asked, signal: AbortSignal) => this.#asked(asked, signal);
      const connection = await connect(opened.wire, { version, prior, onAsked, onToolsChanged }, limit);
      priors.set(connection.prior);
      const open = { ...opened, connection };
      const { onclose } = opened.wire;
      opened.wire.onclose = () => {
        this.#lastWords = `Last: ${open.why() ?? 'the connection ended'}.${inMcpProgressLines(opened.complaints())}`;
        onclose?.();
      };
      this.#open = open;
      this.#hasRun = true;
      // A connection to an address costs nothing: only attempts in a row count.
      if (spec.reach.type === 'http') this.#starts = 0;
      return open;
    } catch (error) {
      const late = `it did not answer within ${spec.startMs} ms`;
      const why = limit.aborted ? this.#reason(limit.reason, late) : (opened.why() ?? this.#reason(error, late));
      throw new StartError(`${why}${inMcpProgressLines(opened.complaints())}`, { cause: error });
    }
  }

  /** Tells of a change only if there is one: servers announce what they had before, too. */
  async #compare(): Promise<void> {
    const before = this.#listed;
    const open = this.#open;
    if (before === undefined || open === undefined) return;
    const limit = AbortSignal.any([AbortSignal.timeout(this.#options.spec.startMs), this.#closed.signal]);
    const now = await open.connection.listTools(limit);
    if (this.#listed !== before || JSON.stringify(now) === JSON.stringify(before)) return;
    this.#changes[Symbol.dispose]();
    this.#options.onToolsChanged();
  }

  #notCompared(error: unknown): void {
    if (this.#closed.signal.aborted) return;
    const { spec, onDiagnostic } = this.#options;
    onDiagnostic('an MCP server did not list its changed tools', { server: spec.name, why: messageOfMcpError(error) });
  }

  /** A server's question belongs to the call that it works on; of several, to the last one. */
  async #asked(asked: Asked, signal: AbortSignal): Promise<Answered> {
    const running = [...this.#calls].at(-1);
    if (running === undefined || (running.asked += 1) > ASKED_PER_CALL_MAX) return DECLINED;
    return running.clock.hold(() => running.onAsked(asked, signal));
  }

  #reason(error: unknown, late: string): string {
    if (this.#closed.signal.aborted) return 'it was closed';
    return error instanceof DOMException && error.name === 'TimeoutError' ? late : messageOfMcpError(error);
  }
}

class StartError extends Error {
  override readonly name = 'StartError';
}

function mcpProgressLine({
  progress,
  total,
  message,
}: {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}): string {
  const share = total === undefined ? String(progress) : `${progress}/${total}`;
  return `${share} ${cleanVisibleText(message ?? '', DELTA_CHARS_MAX)}`.trim().concat('\n');
}

function inMcpProgressLines(complaints: string): string {
  return complaints === '' ? '' : `\n${complaints}`;
}

function messageOfMcpError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return cleanVisibleText(text, 1_000);
}

async function waitToRestartMcpServer(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal, ref: false }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

async function unlessMcpCallAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(new Error('interrupted before it was started'));
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
