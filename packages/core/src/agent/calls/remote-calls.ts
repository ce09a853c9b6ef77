// Remote calls: calls of tools that a client runs. Checks delivered results and makes results for overdue calls.
//
// Guarantees
//   1. A delivery is atomic: if one result is invalid, none of them is accepted.
//   2. Every remote call gets one result: from the client, or from drover on timeout or cancel.

import type { Event, PendingCall, RemoteTool } from '@drover/protocol/events';
import { UsageError } from '../../errors.ts';
import type { Past } from '../../journal/history.ts';
import { boundOutputText } from '../../tools/output/capture.ts';
import { toolOutputFile, type Tool, type ToolContext, type ToolOutput } from '../../tools/tool.ts';
import { resultOfCall, type OpenCalls } from './calls.ts';
import type { SessionOptions } from '../../session/session-options.ts';

export const REMOTE_TIMEOUT_MS_DEFAULT = 600_000;
/** Maximum size of one result. The model sees a truncated form, as with every tool. */
export const REMOTE_RESULT_BYTES_MAX = 1024 * 1024;
const REMOTE_TIMEOUT_MS_MAX = 7 * 24 * 3_600_000;

export type RemoteResult = { readonly callId: string; readonly output: string; readonly isError?: boolean };

/** Says why a delivered result was rejected. */
export class RemoteCallProblem extends UsageError {
  readonly kind: 'unknown' | 'answered' | 'too-large';
  readonly callId: string;

  constructor(kind: RemoteCallProblem['kind'], callId: string, message: string) {
    super(message);
    this.kind = kind;
    this.callId = callId;
  }
}

/** A remote call and its output. */
export type Answered = { readonly call: PendingCall; readonly output: ToolOutput };

export type Handed = {
  readonly session: string;
  readonly pending: readonly PendingCall[];
  /** Ids of all remote calls of the session so far. */
  readonly known: ReadonlySet<string>;
};

/** Returns each result with its call; throws RemoteCallProblem if one is invalid. */
export function matchRemoteResults(
  results: readonly RemoteResult[],
  { session, pending, known }: Handed,
): readonly Answered[] {
  const open = new Map(pending.map((call) => [call.callId, call]));
  return results.map(({ callId, output, isError = false }) => {
    const call = open.get(callId);
    if (call === undefined) {
      if (known.has(callId)) throw new RemoteCallProblem('answered', callId, `call ${callId} has its result already`);
      throw new RemoteCallProblem('unknown', callId, `session ${session} waits for no call ${callId}`);
    }
    open.delete(callId);
    const bytes = Buffer.byteLength(output);
    if (bytes > REMOTE_RESULT_BYTES_MAX) {
      const sizes = `${bytes} bytes, and at most ${REMOTE_RESULT_BYTES_MAX} are taken`;
      throw new RemoteCallProblem('too-large', callId, `the result of call ${callId} has ${sizes}`);
    }
    return { call, output: { output, isError } };
  });
}

/** Returns the answers with their outputs truncated to what the model may see. */
export function boundRemoteResults(
  answers: readonly Answered[],
  context: Pick<ToolContext, 'outputFolder'>,
): Promise<readonly Answered[]> {
  return Promise.all(
    answers.map(async ({ call, output }) => {
      const text = await boundOutputText(output.output, toolOutputFile({ ...context, callId: call.callId }));
      return { call, output: { ...output, output: text } };
    }),
  );
}

/** Returns the open calls with these results added and fewer calls pending. */
export function answeredRemoteCalls(open: OpenCalls, answers: readonly Answered[]): OpenCalls {
  const results = [...open.results];
  for (const { call, output } of answers)
    results[call.callIndex] = resultOfCall({ id: call.toolUseId, name: call.name }, output);
  const pending = open.pending.filter(({ callIndex }) => results[callIndex] === undefined);
  return { ...open, results, pending };
}

/** Returns error results for calls past their deadline. */
export function overdueRemoteResults(pending: readonly PendingCall[], now: number): readonly Answered[] {
  return pending
    .filter(({ deadline }) => Date.parse(deadline) <= now)
    .map((call) => {
      const output = `No result: ${call.name} is run elsewhere, and nothing came back in time. It may have taken effect all the same.`;
      return { call, output: { output, isError: true } };
    });
}

/** Returns error results for calls that the session gave up. */
export function givenUpRemoteResults(pending: readonly PendingCall[]): readonly Answered[] {
  return pending.map((call) => {
    const output = `No result: ${call.name} is run elsewhere, and was no longer waited for. It may have taken effect all the same.`;
    return { call, output: { output, isError: true } };
  });
}

/** Throws if a tool is invalid, two tools share a name, or the timeout of remote calls is out of range. */
export function checkAgentTools(tools: readonly Tool[], remoteTimeoutMs: number | undefined): void {
  const names = new Set<string>();
  for (const { name, execute, remote } of tools) {
    if ((execute === undefined) !== (remote === true)) {
      const problem = remote === true ? 'is remote, and has an execute' : 'has no execute, and is not declared remote';
      throw new TypeError(`the tool ${name} ${problem}`);
    }
    // Tool names are matched without case, so they must differ by more than case.
    const key = name.toLowerCase();
    if (names.has(key)) throw new UsageError(`there are two tools with the name ${name}`);
    names.add(key);
  }
  checkRemoteTimeout(remoteTimeoutMs);
}

export function checkRemoteTimeout(timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || (Number.isInteger(timeoutMs) && timeoutMs > 0 && timeoutMs <= REMOTE_TIMEOUT_MS_MAX))
    return;
  const range = `a whole number of milliseconds from 1 to ${REMOTE_TIMEOUT_MS_MAX} (a week)`;
  throw new UsageError(`how long a remote call may take is ${range}, not ${timeoutMs}`);
}

/** Declaration of the remote tools in the journal, from which a session can be resumed. */
type Declared = { readonly remoteTools?: readonly RemoteTool[]; readonly remoteTimeoutMs?: number };

function remoteToolsDeclaredIn(tools: readonly Tool[], remoteTimeoutMs: number | undefined): Declared {
  const remoteTools = tools
    .filter(({ remote }) => remote === true)
    .map(({ name, label, description, schema, timeoutMs }) => ({
      name,
      ...(label !== undefined && { label }),
      description,
      schema,
      ...(timeoutMs !== undefined && { timeoutMs }),
    }));
  if (remoteTools.length === 0) return {};
  return { remoteTools, ...(remoteTimeoutMs !== undefined && { remoteTimeoutMs }) };
}

/** Returns true if the journal already holds this declaration. */
function isRemoteToolDeclared({ remoteTools, remoteTimeoutMs }: Declared, past: Past): boolean {
  if (remoteTools === undefined) return true;
  const now = [remoteTools, remoteTimeoutMs ?? past.remoteTimeoutMs];
  return JSON.stringify(now) === JSON.stringify([past.remoteTools, past.remoteTimeoutMs]);
}

/**
 * Returns the event that starts a session. A resumed session repeats it only if its model or its remote tools
 * changed; otherwise undefined.
 */
export function sessionStartWithRemoteTools(options: SessionOptions, model: string): Event | undefined {
  const { context, past, tools, remoteTimeoutMs, sandbox, sampling } = options;
  const declared = remoteToolsDeclaredIn(tools, remoteTimeoutMs);
  if (past?.model === model && isRemoteToolDeclared(declared, past)) return undefined;
  return {
    type: 'session_start',
    model,
    cwd: context.cwd,
    ...(sandbox !== undefined && { sandbox }),
    ...declared,
    ...(sampling !== undefined && { options: sampling }),
  };
}
