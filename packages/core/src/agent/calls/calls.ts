// The calls of one answer: each is checked, permitted, run, and gets exactly one result.
//
// Whatever goes wrong with a call (unknown, malformed, refused, failing, interrupted) becomes an error
// result for the model, and the others are not affected: providers reject a conversation in which a
// call has no result, and the model is the one who knows what to do instead. A call that was never
// started, or that was handed out to a remote tool, has a `tool_execution_end` without a start.
//
// A call for which drover could not do its part (its sandbox did not start) gets a result, too, so that the history
// stays valid; then the turn ends with that failure, and the model is not asked to work round it.
//
// A call's intent is on the disk before it is run, so after a crash it is known which calls may have had
// an effect: those get a result that says so, unless the tool is safe to repeat.
//
// A question that drover stops before it is answered stays open: its call gets no result, and the turn is suspended.
// A resumed turn asks the same question again, under the same id.

import type { CallLabel, Decision, Event, PendingCall } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError } from '../../errors.ts';
import { newId } from '../../ids.ts';
import type { Json } from '@drover/protocol/json';
import type { CallPart, ToolResult } from '@drover/protocol/messages';
import { endOrphans } from '../../tools/process/tree.ts';
import { inputSummary, outputSummary } from '../../tools/summary.ts';
import { runTool, type Tool, type ToolContext, type ToolOutput } from '../../tools/tool.ts';
import type { Instructions } from '../../conversation/instructions.ts';
import { Lanes } from './lanes.ts';
import { refusal } from './refused-calls.ts';

// worker*100 + callIndex must not collide within an answer.
const CALLS_MAX = 100;
const PARALLEL_MAX = 8;
const UNCERTAIN =
  'UNCERTAIN: drover was stopped while this ran, so it may or may not have taken effect. Find out before you do it again.';

export type Verdict = { readonly effect: 'allow' | 'ask' | 'deny'; readonly why: string; readonly obstacle?: Obstacle };

/**
 * Why an allow rule would not let the call run: an ask rule wins over it, a deny rule may concern it, or the call writes
 * where only other tools than drover's may write.
 */
export type Obstacle = 'ask-rule' | 'deny-doubt' | 'outside' | 'git-folder';

export type Question = {
  readonly requestId: string;
  readonly tool: string; // its name
  readonly input: Json;
  readonly subject: string;
  readonly why: string;
  readonly obstacle?: Obstacle;
  readonly label: CallLabel;
  readonly task?: string; // whose worker asks
};

/** What the calls need of the agent they belong to. */
export type Bench = {
  readonly tools: readonly Tool[];
  readonly worker: number;
  readonly context: Omit<ToolContext, 'callId' | 'signal'>;
  readonly instructions: Instructions;
  readonly judge: (tool: Tool, input: Json) => Promise<Verdict>;
  /** Resolves to undefined if the question stays open for the next process. */
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision | undefined>;
  readonly emit: (event: Event) => void;
  /** What was emitted can't be lost any more: a call's intent is, before it is run. */
  readonly settled: (signal: AbortSignal) => Promise<void>;
  /** How long a call that is handed out may wait for its result. */
  readonly remoteTimeoutMs: number;
};

/** The calls of an answer while not all of them have a result. */
export type OpenCalls = {
  readonly calls: readonly CallPart[];
  /** In the order of the calls: what is known already. */
  readonly results: (ToolResult | undefined)[];
  /** By position: calls that were begun, by a process that is gone, and of which nothing more is known. */
  readonly begun: Map<number, CallLabel>;
  /** By position: questions that a process which is gone asked, without an answer. */
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
  /** A call was run, or handed out to a remote tool. */
  readonly hasRun: boolean;
  readonly unknownOnly: boolean;
  readonly isFinal: boolean; // a call that ends the turn has worked
  /** A question stays open, so a call has no result. */
  readonly isLeftOpen: boolean;
  /** Drover could not do its part of a call; the turn ends with this. */
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
      const label = open.begun.get(at) ?? open.asked.get(at)?.label ?? labelOf(bench, call, at);
      const output = at < CALLS_MAX ? await settle(settling, call, label, open.begun.has(at), signal) : tooMany(at);
      return output && resultOf(call, output);
    }),
  );
  const unknownOnly = calls.every((call) => toolNamed(bench.tools, call.name) === undefined);
  const isFinal = results.some(
    (result) => result?.isError === false && toolNamed(bench.tools, result.name)?.final === true,
  );
  const { denials, failures, hasRun, isLeftOpen } = settling;
  const pending = handedOut(bench, settling.pending);
  return { results, pending, denials, hasRun, unknownOnly, isFinal, isLeftOpen, failure: failures[0] };
}

/** In the order of the calls. The clock starts when the last local call has ended, since they are told of then. */
function handedOut(bench: Bench, calls: readonly Outgoing[]): readonly PendingCall[] {
  const now = Date.now();
  return calls
    .map(({ label, args, timeoutMs = bench.remoteTimeoutMs }) => ({
      ...label,
      args,
      deadline: new Date(now + timeoutMs).toISOString(),
    }))
    .toSorted((a, b) => a.callIndex - b.callIndex);
}

export function resultOf(call: Pick<CallPart, 'id' | 'name'>, { output, isError, images }: ToolOutput): ToolResult {
  return { id: call.id, name: call.name, output, isError: isError ?? false, ...(images && { images }) };
}

/** Results for calls that nobody will run any more. */
export function abandonedCalls({ calls, results, begun }: OpenCalls): readonly ToolResult[] {
  for (const { callId } of begun.values()) endOrphans(callId);
  return calls.map(
    (call, at) =>
      results[at] ??
      resultOf(call, {
        output: begun.has(at) ? UNCERTAIN : 'Not run: interrupted before it was started.',
        isError: true,
      }),
  );
}

function tooMany(at: number): ToolOutput {
  return {
    output: `Not run: an answer may hold at most ${CALLS_MAX} calls, and this was number ${at + 1}.`,
    isError: true,
  };
}

function labelOf(bench: Bench, call: CallPart, callIndex: number): CallLabel {
  const index = bench.worker * CALLS_MAX + callIndex;
  return {
    callId: newId('call'),
    toolUseId: call.id,
    callIndex,
    index,
    name: call.name,
    summary: inputSummary(toolNamed(bench.tools, call.name)?.label ?? call.name, call.args),
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

async function settle(
  settling: Settling,
  call: CallPart,
  label: CallLabel,
  wasBegun: boolean,
  signal: AbortSignal,
): Promise<ToolOutput | undefined> {
  const { bench } = settling;
  const refuse = (output: string): ToolOutput => ended(bench, label, { output, isError: true });

  // What it started may still be running, and would go on behind the back of whoever finds out.
  if (wasBegun) endOrphans(label.callId);
  const tool = toolNamed(bench.tools, call.name);
  if (tool === undefined)
    return refuse(
      `There is no tool ${JSON.stringify(call.name)}. The tools are: ${bench.tools.map(({ name }) => name).join(', ')}.`,
    );
  if (call.problem !== undefined) return refuse(`Not run: ${call.problem}`);
  const parsed = tool.parse(call.args);
  if (!parsed.ok) return refuse(`Not run: the arguments of ${tool.name} don't fit. ${parsed.problem}`);
  if (wasBegun && !tool.repeatable) return refuse(UNCERTAIN);

  const denial = await deniedBecause(settling, tool, parsed.input, label, signal);
  if (denial === LEFT_OPEN) {
    settling.isLeftOpen = true;
    return undefined;
  }
  if (denial !== undefined) {
    settling.denials.push({ name: tool.name, subject: tool.subject(parsed.input), why: denial });
    return refuse(refusal(denial));
  }
  settling.hasRun = true;
  if (tool.remote === true) {
    settling.pending.push({ label, args: parsed.input, timeoutMs: tool.timeoutMs });
    return undefined;
  }
  const demand = { alone: tool.alone, touches: tool.touches(parsed.input) };
  return settling.lanes.run(demand, () => execute(settling, tool, parsed.input, label, signal));
}

const LEFT_OPEN = Symbol('the question stays open');

async function deniedBecause(
  { bench, asked }: Settling,
  tool: Tool,
  input: Json,
  label: CallLabel,
  signal: AbortSignal,
): Promise<string | typeof LEFT_OPEN | undefined> {
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
  return decision.allowed ? undefined : (decision.reason ?? 'the user said no');
}

async function execute(
  settling: Settling,
  tool: Tool,
  input: Json,
  label: CallLabel,
  signal: AbortSignal,
): Promise<ToolOutput> {
  const { bench } = settling;
  if (signal.aborted) return ended(bench, label, { output: 'Interrupted before it was started.', isError: true });
  const { callId, callIndex, index, name } = label;
  bench.emit({ type: 'tool_execution_start', args: input, ...label });
  await bench.settled(signal);
  let isOpen = true;
  const onDelta = (delta: string) => {
    if (isOpen) bench.emit({ type: 'tool_execution_delta', delta, callId, callIndex, index, name });
  };
  const context = { ...bench.context, callId, signal };
  const output = await runTool(tool, input, context, onDelta).catch((error: unknown): ToolOutput => {
    if (!(error instanceof DroverError)) throw error;
    settling.failures.push(error.failure);
    return { output: notRun(error.failure), isError: true };
  });
  isOpen = false;
  if (output.isError === true || tool.access === 'run') return ended(bench, label, output);
  const { text, leftOut } = await bench.instructions.newFor(tool.subject(input));
  for (const message of leftOut) bench.emit({ type: 'warning', message });
  return ended(bench, label, text === undefined ? output : { ...output, output: `${output.output}\n\n${text}` });
}

/** The result of a call for which drover could not do its part. */
export function notRun(failure: Failure): string {
  return `Not run: ${describe(failure)}`;
}

function ended(bench: Bench, label: CallLabel, output: ToolOutput): ToolOutput {
  bench.emit(endOf(label, output));
  return output;
}

export function endOf(label: CallLabel, { output, isError = false, details }: ToolOutput): Event {
  return {
    type: 'tool_execution_end',
    output,
    outputSummary: outputSummary(output),
    isError,
    ...(details !== undefined && { details }),
    ...label,
  };
}

/** The label alone, of whatever carries one. */
export function labelIn({ callId, toolUseId, callIndex, index, name, summary }: CallLabel): CallLabel {
  return { callId, toolUseId, callIndex, index, name, summary };
}

// Some servers leave their own grammar in a name: a namespace in front, a channel mark behind.
const NAME_PREFIX = /^(?:functions?|tools?|default_api)[.:]/i;
const NAME_SUFFIX = /<\|.*$/s;

/** The tool a model means. Another case, or a known decoration, is forgiven only if the rest is exactly a tool. */
export function toolNamed(tools: readonly Tool[], name: string): Tool | undefined {
  const exact = tools.find((tool) => tool.name === name);
  if (exact !== undefined) return exact;
  const bare = name.replace(NAME_SUFFIX, '').trim().replace(NAME_PREFIX, '').toLowerCase();
  const matches = tools.filter((tool) => tool.name.toLowerCase() === bare);
  return matches.length === 1 ? matches[0] : undefined;
}
