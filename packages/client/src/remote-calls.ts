// The calls that the server awaits of this process: each is run once, however often it is heard of, and its
// result is delivered until the server has it.
//
// A tool that throws, or takes longer than it may, has an error as its result: the model hears of it and
// goes on. What a call came to is kept until it is delivered, so that a call that was begun before a
// connection broke is not run again after it.

import type { PendingCall } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import { DroverProblem } from './problem.ts';
import type { RemoteResult, RemoteTool } from './wire.ts';

const TIMEOUT_MS = 10 * 60_000;
const REMEMBERED_MAX = 10_000;

type Arguments = JsonObject;

export type ClientTool = {
  readonly description: string;
  readonly schema: JsonObject; // JSON Schema of its arguments
  /** What the model gets. The signal fires when nobody waits for it any more. */
  readonly run: (args: Arguments, signal: AbortSignal) => Promise<string> | string;
  readonly timeoutMs?: number;
};

export type ClientTools = Readonly<Record<string, ClientTool>>;

export function declared(tools: ClientTools): readonly RemoteTool[] {
  return Object.entries(tools).map(([name, { description, schema, timeoutMs }]) => ({
    name,
    description,
    schema,
    ...(timeoutMs !== undefined && { timeoutMs }),
  }));
}

/** The calls that this process has begun, whichever session they are of: their ids are unique for ever. */
export class RemoteCalls {
  readonly #results = new Map<string, Promise<RemoteResult> | undefined>(); // undefined: the server has it

  /** The result of a call, which is begun unless it was before; undefined where the server has it. */
  result(call: PendingCall, tool: ClientTool, signal: AbortSignal | undefined): Promise<RemoteResult> | undefined {
    if (this.#results.has(call.callId)) return this.#results.get(call.callId);
    const result = runTool(call, tool, signal);
    this.#results.set(call.callId, result);
    return result;
  }

  settle(callId: string): void {
    this.#results.set(callId, undefined);
    if (this.#results.size <= REMEMBERED_MAX) return;
    for (const [id, result] of this.#results) {
      if (result !== undefined) continue;
      this.#results.delete(id);
      return;
    }
  }
}

/** What to deliver instead of a result that the server has no room for. */
export function instead({ callId }: RemoteResult, { title, detail }: DroverProblem): RemoteResult {
  return { callId, output: `the result was not taken: ${detail ?? title}`, isError: true };
}

async function runTool(call: PendingCall, tool: ClientTool, stop: AbortSignal | undefined): Promise<RemoteResult> {
  const { callId, args } = call;
  const timeoutMs = timeoutOf(call, tool);
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = stop === undefined ? timeout : AbortSignal.any([stop, timeout]);
  try {
    const output = await orAborted(Promise.try(tool.run, args as Arguments, signal), signal);
    return { callId, output };
  } catch (error) {
    if (timeout.aborted) return { callId, output: `it took longer than ${timeoutMs / 1_000} s`, isError: true };
    if (stop?.aborted === true) return { callId, output: 'the client was stopped', isError: true };
    return { callId, output: error instanceof Error ? error.message : String(error), isError: true };
  }
}

// The server gives a call up at its deadline: whoever works longer works for nobody.
function timeoutOf(call: PendingCall, { timeoutMs = TIMEOUT_MS }: ClientTool): number {
  const leftMs = Date.parse(call.deadline) - Date.now();
  return Math.max(0, Math.min(timeoutMs, Number.isFinite(leftMs) ? leftMs : timeoutMs));
}

async function orAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason as Error);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
