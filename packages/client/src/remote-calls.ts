// Remote calls: runs each call that the server awaits once, and keeps its result until the server has it.
//
// A tool that throws or exceeds its time limit has an error as its result, so the model can continue. A call that
// began before a lost connection is not run again after it.

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
  /** Returns the text for the model. The signal fires when the server no longer waits for it. */
  readonly run: (args: Arguments, signal: AbortSignal) => Promise<string> | string;
  readonly timeoutMs?: number;
};

export type ClientTools = Readonly<Record<string, ClientTool>>;

export function declareClientTools(tools: ClientTools): readonly RemoteTool[] {
  return Object.entries(tools).map(([name, { description, schema, timeoutMs }]) => ({
    name,
    description,
    schema,
    ...(timeoutMs !== undefined && { timeoutMs }),
  }));
}

/** Calls that this process has begun, of all sessions. Call ids are globally unique. */
export class RemoteCalls {
  readonly #results = new Map<string, Promise<RemoteResult> | undefined>(); // undefined: the server has it

  /** Returns the result of a call and begins it at most once; undefined if the server has the result. */
  result(call: PendingCall, tool: ClientTool, signal: AbortSignal | undefined): Promise<RemoteResult> | undefined {
    if (this.#results.has(call.callId)) return this.#results.get(call.callId);
    const result = runClientTool(call, tool, signal);
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

/** Returns an error to deliver in place of a result that the server refused as too large. */
export function clientErrorResult({ callId }: RemoteResult, { title, detail }: DroverProblem): RemoteResult {
  return { callId, output: `the result was not taken: ${detail ?? title}`, isError: true };
}

async function runClientTool(
  call: PendingCall,
  tool: ClientTool,
  stop: AbortSignal | undefined,
): Promise<RemoteResult> {
  const { callId, args } = call;
  const timeoutMs = clientToolTimeout(call, tool);
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = stop === undefined ? timeout : AbortSignal.any([stop, timeout]);
  try {
    const output = await orClientAborted(Promise.try(tool.run, args as Arguments, signal), signal);
    return { callId, output };
  } catch (error) {
    if (timeout.aborted) return { callId, output: `it took longer than ${timeoutMs / 1_000} s`, isError: true };
    if (stop?.aborted === true) return { callId, output: 'the client was stopped', isError: true };
    return { callId, output: error instanceof Error ? error.message : String(error), isError: true };
  }
}

// The server drops a call at its deadline, so the tool gets no more time than that.
function clientToolTimeout(call: PendingCall, { timeoutMs = TIMEOUT_MS }: ClientTool): number {
  const leftMs = Date.parse(call.deadline) - Date.now();
  return Math.max(0, Math.min(timeoutMs, Number.isFinite(leftMs) ? leftMs : timeoutMs));
}

async function orClientAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
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
