// Runs the calls of one answer: checks each call, asks for permission, runs it and gives it exactly one result.
//
// Guarantees
//   1. A failed call (unknown, malformed, refused, failing, interrupted) gets an error result for the model.
//      Other calls are not affected. Providers reject a history in which a call has no result.
//   2. A call that was never started, or went to a remote tool, has a `tool_execution_end` without a start.
//   3. If drover fails a call (for example, its sandbox did not start), the call gets a result and the turn ends with
//      that failure. The model is not asked to work around it.
//   4. `tool_execution_start` is durable before the call runs.
//   5. A question that is unanswered when drover stops stays open: its call has no result and the turn is suspended.
//      A resumed turn asks the same question again, under the same id.
//
// Crash: a call with a start and no end may have had an effect. It gets a result that says so, unless the tool is
// idempotent; then the call runs again.

import type { AskedField, CallLabel, Decision, Event, PendingCall } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError } from '../../errors.ts';
import { newId } from '../../ids.ts';
import type { Json } from '@drover/protocol/json';
import type { CallPart, ToolResult } from '@drover/protocol/messages';
import { endOrphanProcesses } from '../../tools/process/tree.ts';
import { toolInputSummary, toolOutputSummary } from '../../tools/summary.ts';
import { runTool, type Tool, type ToolOutput, type TurnContext } from '../../tools/tool.ts';
import type { Instructions } from '../../conversation/instructions.ts';
import type { CallHooks } from '../../hooks/call-hooks.ts';
import type { HookResult } from '../../hooks/hooks.ts';
import { Lanes } from './lanes.ts';
import { callRefusalText } from './refused-calls.ts';

// worker*100 + callIndex must not collide within an answer.
const CALLS_MAX = 100;
const PARALLEL_MAX = 8;
const UNCERTAIN =
  'UNCERTAIN: drover was stopped while this ran, so it may or may not have taken effect. Find out before you do it again.';

export type Verdict = { readonly effect: 'allow' | 'ask' | 'deny'; readonly why: string; readonly obstacle?: Obstacle };

/**
 * Why an allow rule would not help: an ask rule takes precedence, a deny rule may apply, or the path is
 * off limits for drover's tools.
 */
export type Obstacle = 'ask-rule' | 'deny-doubt' | 'outside' | 'git-folder';

export type Question = {
  readonly requestId: string;
  readonly tool: string; // its name
  readonly input: Json;
  readonly subject: string;
  readonly why: string;
  readonly obstacle?: Obstacle;
  readonly field?: AskedField; // answered with words
  readonly label: CallLabel;
  readonly task?: string; // the task whose worker asks
};

/** Context that calls get from their agent. */
export type Bench = {
  readonly tools: readonly Tool[];
  readonly worker: number;
  readonly context: TurnContext;
  readonly instructions: Instructions;
  readonly judge: (tool: Tool, input: Json) => Promise<Verdict>;
  /** Resolves to undefined if the question stays open for the next process. */
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision | undefined>;
  readonly emit: (event: Event) => void;
  /** Resolves when every event emitted so far is durable. */
  readonly settled: (signal: AbortSignal) => Promise<void>;
  /** Called before a call runs. */
  readonly beforeCall?: (tool: Tool, input: Json) => Promise<void>;
  /** Hooks of the user, or of a trusted project. */
  readonly hooks?: CallHooks;
  /** Default timeout of a remote call. */
  readonly remoteTimeoutMs: number;
};

/** The calls of an answer while not all of them have a result. */
export type OpenCalls = {
  readonly calls: readonly CallPart[];
  /** Results so far, in call order. */
  readonly results: (ToolResult | undefined)[];
  /** By position: calls that an earlier process started and did not finish. */
  readonly begun: Map<number, CallLabel>;
  /** By position: questions that an earlier process asked and that were not answered. */
  readonly asked: Map<number, AskedCall>;
  /** Calls that wait for a remote tool. */
  readonly pending: readonly PendingCall[];
};

type AskedCall = { readonly requestId: string; readonly label: CallLabel };

export function openCalls(calls: readonly CallPart[]): OpenCalls {
  return { calls, results: [], begun: new Map(), asked: new Map(), pending: [] };
}

export type Denial = { readonly name: string; readonly subject: string; readonly why: string };

export type Settled = Pick<OpenCalls, 'results' | 'pending'> & {
  readonly denials: readonly Denial[];
  /** True if a call was run, or sent to a remote tool. */
  readonly hasRun: boolean;
  readonly unknownOnly: boolean;
  readonly isFinal: boolean; // true if a call that ends the turn succeeded
  /** True if a question stays open, so its call has no result. */
  readonly isLeftOpen: boolean;
  /** A failure of drover itself, which ends the turn. */
  readonly failure: Failure | undefined;
};

export async function settleCalls(bench: Bench, open: OpenCalls, signal: AbortSignal): Promise<Settled> {
  const { calls } = open;
  const settling: Settling = {
    bench,
    lanes: new Lanes(PARALLEL_MAX),
    asked: open.asked,
    denials: [],
    pending: [],
    failures: [],
    hasRun: false,
    isLeftOpen: false,
  };
  if (calls.length > CALLS_MAX) {
    const message = `the model asked for ${calls.length} calls at once; the first ${CALLS_MAX} are run`;
    bench.emit({ type: 'warning', message });
  }
  const results = await Promise.all(
    calls.map(async (call, at): Promise<ToolResult | undefined> => {
      const known = open.results[at];
      if (known !== undefined) return known;
      const label = open.begun.get(at) ?? open.asked.get(at)?.label ?? makeCallLabel(bench, call, at);
      const output =
        at < CALLS_MAX
          ? await settleCall(settling, { call, label, wasBegun: open.begun.has(at) }, signal)
          : tooManyCalls(at);
      return output && resultOfCall(call, output);
    }),
  );
  const unknownOnly = calls.every((call) => toolNamedInCall(bench.tools, call.name) === undefined);
  const isFinal = results.some(
    (result) => result?.isError === false && toolNamedInCall(bench.tools, result.name)?.final === true,
  );
  const { denials, failures, hasRun, isLeftOpen } = settling;
  const pending = handOutRemoteCalls(bench, settling.pending);
  return { results, pending, denials, hasRun, unknownOnly, isFinal, isLeftOpen, failure: failures[0] };
}

/** Returns remote calls with their deadlines. The time starts now, because they are announced after all local calls. */
function handOutRemoteCalls(bench: Bench, calls: readonly Outgoing[]): readonly PendingCall[] {
  const now = Date.now();
  return calls
    .map(({ label, args, timeoutMs = bench.remoteTimeoutMs }) => ({
      ...label,
      args,
      deadline: new Date(now + timeoutMs).toISOString(),
    }))
    .toSorted((a, b) => a.callIndex - b.callIndex);
}

export function resultOfCall(call: Pick<CallPart, 'id' | 'name'>, { output, isError, images }: ToolOutput): ToolResult {
  return { id: call.id, name: call.name, output, isError: isError ?? false, ...(images && { images }) };
}

/** Returns results for the calls of an abandoned turn, and ends processes they left behind. */
export function abandonedCalls({ calls, results, begun }: OpenCalls): readonly ToolResult[] {
  for (const { callId } of begun.values()) endOrphanProcesses(callId);
  return calls.map(
    (call, at) =>
      results[at] ??
      resultOfCall(call, {
        output: begun.has(at) ? UNCERTAIN : 'Not run: interrupted before it was started.',
        isError: true,
      }),
  );
}

function tooManyCalls(at: number): ToolOutput {
  return {
    output: `Not run: an answer may hold at most ${CALLS_MAX} calls, and this was number ${at + 1}.`,
    isError: true,
  };
}

function makeCallLabel(bench: Bench, call: CallPart, callIndex: number): CallLabel {
  const index = bench.worker * CALLS_MAX + callIndex;
  return {
    callId: newId('call'),
    toolUseId: call.id,
    callIndex,
    index,
    name: call.name,
    summary: toolInputSummary(toolNamedInCall(bench.tools, call.name)?.label ?? call.name, call.args),
  };
}

type Settling = {
  readonly bench: Bench;
  readonly lanes: Lanes;
  readonly asked: OpenCalls['asked'];
  readonly denials: Denial[];
  readonly pending: Outgoing[];
  readonly failures: Failure[];
  hasRun: boolean;
  isLeftOpen: boolean;
};

type Outgoing = { readonly label: CallLabel; readonly args: Json; readonly timeoutMs: number | undefined };

type Unsettled = { readonly call: CallPart; readonly label: CallLabel; readonly wasBegun: boolean };

async function settleCall(
  settling: Settling,
  { call, label, wasBegun }: Unsettled,
  signal: AbortSignal,
): Promise<ToolOutput | undefined> {
  const { bench } = settling;
  const refuse = (output: string): ToolOutput => endCall(bench, label, { output, isError: true });

  // Processes of the interrupted call may still run. End them before the model checks what the call did.
  if (wasBegun) endOrphanProcesses(label.callId);
  const tool = toolNamedInCall(bench.tools, call.name);
  if (tool === undefined)
    return refuse(
      `There is no tool ${JSON.stringify(call.name)}. The tools are: ${bench.tools.map(({ name }) => name).join(', ')}.`,
    );
  if (call.problem !== undefined) return refuse(`Not run: ${call.problem}`);
  const parsed = tool.parse(call.args);
  if (!parsed.ok) return refuse(`Not run: the arguments of ${tool.name} don't fit. ${parsed.problem}`);
  if (wasBegun && !tool.repeatable) return refuse(UNCERTAIN);

  const denial = await callDeniedBecause(settling, { tool, input: parsed.input, label }, signal);
  if (denial === LEFT_OPEN) {
    settling.isLeftOpen = true;
    return undefined;
  }
  if (denial === WITHDRAWN) return refuse('Not run: interrupted before it was allowed.');
  if (denial !== undefined) {
    settling.denials.push({ name: tool.name, subject: tool.subject(parsed.input), why: denial });
    return refuse(callRefusalText(denial));
  }
  settling.hasRun = true;
  if (tool.remote === true) {
    settling.pending.push({ label, args: parsed.input, timeoutMs: tool.timeoutMs });
    return undefined;
  }
  const demand = { access: tool.access, alone: tool.alone, touches: tool.touches(parsed.input) };
  return settling.lanes.run(demand, () => executeCall(settling, { tool, input: parsed.input, label }, signal));
}

/** A call whose tool exists and whose arguments fit. */
type ParsedCall = { readonly tool: Tool; readonly input: Json; readonly label: CallLabel };

const LEFT_OPEN = Symbol('the question stays open');
// No denial: a turn that resumes has not lost a permission.
const WITHDRAWN = Symbol('the question was withdrawn');

async function callDeniedBecause(
  { bench, asked }: Settling,
  { tool, input, label }: ParsedCall,
  signal: AbortSignal,
): Promise<string | typeof LEFT_OPEN | typeof WITHDRAWN | undefined> {
  const { effect, why, obstacle } = await bench.judge(tool, input);
  if (effect === 'allow') return undefined;
  if (effect === 'deny') return why;
  const requestId = asked.get(label.callIndex)?.requestId ?? newId('ask');
  const subject = tool.subject(input);
  bench.emit({ type: 'permission_request', requestId, subject, why, ...label });
  const asking = { requestId, tool: tool.name, input, subject, why, label, ...(obstacle && { obstacle }) };
  const decision = await bench.question(asking, signal);
  if (decision === undefined) return LEFT_OPEN;
  bench.emit({ type: 'permission_decision', requestId, ...decision, ...label });
  if (decision.allowed) return undefined;
  return decision.by === 'cancel' ? WITHDRAWN : (decision.reason ?? 'the user said no');
}

async function executeCall(
  settling: Settling,
  { tool, input, label }: ParsedCall,
  signal: AbortSignal,
): Promise<ToolOutput> {
  const { bench } = settling;
  if (signal.aborted) return endCall(bench, label, { output: 'Interrupted before it was started.', isError: true });
  const { callId, callIndex, index, name } = label;
  const blocked = await waitForCallHooks(bench, bench.hooks?.before({ name: tool.name, args: input }, signal));
  if (blocked !== undefined) return endCall(bench, label, { output: `Not run: ${blocked}`, isError: true });
  bench.emit({ type: 'tool_execution_start', args: input, ...label });
  await bench.settled(signal);
  await bench.beforeCall?.(tool, input);
  let isOpen = true;
  const onDelta = (delta: string) => {
    if (isOpen) bench.emit({ type: 'tool_execution_delta', delta, callId, callIndex, index, name });
  };
  const context = { ...bench.context, callId, signal, onDelta, label };
  const ran = await runTool(tool, input, context).catch((error: unknown): ToolOutput => {
    if (!(error instanceof DroverError)) throw error;
    settling.failures.push(error.failure);
    return { output: endCallNotRun(error.failure), isError: true };
  });
  isOpen = false;
  const told = { name: tool.name, args: input, output: ran.output };
  const objection = await waitForCallHooks(bench, bench.hooks?.after(told, signal));
  const output = objection === undefined ? ran : { ...ran, output: `${ran.output}\n\n${objection}` };
  if (output.isError === true || tool.access === 'run') return endCall(bench, label, output);
  const { text, leftOut } = await bench.instructions.newFor(tool.subject(input));
  for (const message of leftOut) bench.emit({ type: 'warning', message });
  return endCall(bench, label, text === undefined ? output : { ...output, output: `${output.output}\n\n${text}` });
}

/** Waits for hooks of a call and tells their problems. Returns the words of the one that blocks. */
async function waitForCallHooks({ emit }: Bench, result: Promise<HookResult> | undefined): Promise<string | undefined> {
  if (result === undefined) return undefined;
  const { block, warnings } = await result;
  for (const message of warnings) emit({ type: 'warning', message });
  return block;
}

/** Returns the result text of a call that drover failed to run. */
export function endCallNotRun(failure: Failure): string {
  return `Not run: ${describe(failure)}`;
}

function endCall(bench: Bench, label: CallLabel, output: ToolOutput): ToolOutput {
  bench.emit(callEndEvent(label, output));
  return output;
}

export function callEndEvent(label: CallLabel, { output, isError = false, details }: ToolOutput): Event {
  return {
    type: 'tool_execution_end',
    output,
    outputSummary: toolOutputSummary(output),
    isError,
    ...(details !== undefined && { details }),
    ...label,
  };
}

/** Returns only the label fields of a value. */
export function callLabelIn({ callId, toolUseId, callIndex, index, name, summary }: CallLabel): CallLabel {
  return { callId, toolUseId, callIndex, index, name, summary };
}

// Some servers leave parts of their own syntax in a name: a namespace prefix or a channel suffix.
const NAME_PREFIX = /^(?:functions?|tools?|default_api)[.:]/i;
const NAME_SUFFIX = /<\|.*$/s;

/** Finds a tool by name. Ignores case and known prefixes and suffixes if exactly one tool matches. */
export function toolNamedInCall(tools: readonly Tool[], name: string): Tool | undefined {
  const exact = tools.find((tool) => tool.name === name);
  if (exact !== undefined) return exact;
  const bare = name.replace(NAME_SUFFIX, '').trim().replace(NAME_PREFIX, '').toLowerCase();
  const matches = tools.filter((tool) => tool.name.toLowerCase() === bare);
  return matches.length === 1 ? matches[0] : undefined;
}
