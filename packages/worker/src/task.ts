// Runs one task: a session that works in the task's workspace, sends its events to the run and returns an outcome.
//
// Guarantees
//   1. Every failure of the work is in the outcome. A thrown error is a bug.
//   2. A worker declares the same tools as the coordinator, byte for byte, so that they share the provider's cache.
//   3. A worker cannot plan. A task in read mode cannot use tools that write.

import type { Verdict } from '@drover/core/agent/calls/calls';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import type { ExecutionResult } from '@drover/core/session/execution';
import { Inbox } from '@drover/core/session/inbox';
import { Session } from '@drover/core/session/session';
import { DroverError, ToolError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import { newId } from '@drover/core/ids';
import type { Json } from '@drover/protocol/json';
import type { Message } from '@drover/protocol/messages';
import type { ModelRoute } from '@drover/core/model/fallback';
import { NO_SPENDING, spentIn, type Spent } from '@drover/core/model/spending/spent';
import { pathsDeniedIn } from '@drover/core/permission/denied-paths';
import { judgeCall, type Policy } from '@drover/core/permission/policy';
import { askRunOverLink } from '@drover/core/task/asking';
import { callHooks } from '@drover/core/hooks/call-hooks';
import type { TaskLink } from '@drover/core/task/link';
import { ownMessagesOfTask, taskSummaryIn } from '@drover/core/task/summary';
import type { ModelSpec, TaskSpec } from '@drover/core/task/task';
import type { TaskMode } from '@drover/protocol/plan';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import { builtinRunTools } from '@drover/core/tools/builtin';
import { servedTools } from '@drover/core/tools/served/served';
import { SKILL } from '@drover/core/tools/skill';
import { SUBMIT_PLAN } from '@drover/core/tools/submit-plan';
import { SUBMIT_RESULT } from '@drover/core/tools/submit-result';
import { distrustProgramFolders } from '@drover/core/tools/process/program';
import type { Tool } from '@drover/core/tools/tool';

export async function runWorkerTask(spec: TaskSpec, link: TaskLink, signal: AbortSignal): Promise<TaskOutcome> {
  distrustProgramFolders(spec.sandbox?.distrusted ?? []);
  const { past, seed, begin } = spec;
  const before = ownMessagesOfTask(past?.messages ?? [], seed.length);
  const tally = { spent: past === undefined ? NO_SPENDING : spentIn(past) }; // of the whole attempt
  // The attempt was complete before the crash; only its outcome was lost.
  if (past?.ending === 'done' && 'resume' in begin)
    return outcomeOfWorkerTask({
      status: 'finished',
      said: before,
      refused: past.refused?.calls ?? [],
      ...tally.spent,
    });
  try {
    const result = await openWorkerSession(spec, countWorkerSpending(link, tally)).run(begin, signal);
    const said = [...before, ...result.messages];
    return outcomeOfWorkerTask({ ...endOfWorkerTask(result, signal), said, refused: result.refused, ...tally.spent });
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    const { failure } = error;
    return outcomeOfWorkerTask({
      status: statusOfWorkerFailure(failure, signal),
      failure,
      said: before,
      refused: [],
      ...tally.spent,
    });
  }
}

function countWorkerSpending(link: TaskLink, tally: { spent: Spent }): TaskLink {
  return {
    ...link,
    ask: async (...asked) => {
      const result = await link.ask(...asked);
      tally.spent = result.total;
      return result;
    },
  };
}

/** The model as a route that is asked over the link, and never itself. */
function modelRouteOfWorker({ provider, name: model, contextTokens, outputTokensMax, price }: ModelSpec) {
  return {
    provider: { ...provider, stream: workerAskedByRun },
    model,
    contextTokens,
    outputTokensMax,
    ...(price !== undefined && { price }),
  } satisfies ModelRoute;
}

function workerAskedByRun(): never {
  throw new Error('the run asks the models of its tasks');
}

function openWorkerSession(spec: TaskSpec, link: TaskLink): Session {
  const { model, fallbacks = [], workspace, mode, past, sandbox } = spec;
  const hooks = callHooks(spec.hooks ?? [], spec.run, { cwd: workspace, env: spec.env, sandbox });
  const policy: Policy = { ...spec.policy, root: workspace, workspace: true };
  return new Session({
    id: newId('ses'),
    worker: 0, // the run that receives the events fills in the worker
    ...modelRouteOfWorker(model),
    fallbacks: fallbacks.map(modelRouteOfWorker),
    ...(model.charsPerToken !== undefined && { charsPerToken: model.charsPerToken }),
    tools: [...builtinRunTools(workerSubmitsNoPlans, spec.skills), ...servedTools(spec.served, link.callServed)],
    definitions: spec.tools,
    context: {
      cwd: workspace,
      env: spec.env,
      ignore: spec.ignore,
      outputFolder: spec.outputFolder,
      ...(sandbox !== undefined && { sandbox }),
      ...pathsDeniedIn(spec.policy.rules, workspace),
    },
    system: spec.system,
    seed: spec.seed,
    cacheKey: spec.cacheKey,
    limits: spec.limits,
    retry: spec.retry,
    ask: askRunOverLink(link),
    judge: async (tool, input) => narrowWorkerTools(spec, tool) ?? judgeWorkerCall(mode, policy, tool, input),
    question: link.question,
    inbox: inboxOfWorker(link),
    pass: (event) => [event],
    outlet: { emit: (event, { turn, step }) => link.emit(event, stepOfWorker(turn, step)), settled: link.settled },
    ...(hooks !== undefined && { hooks }),
    ...(past !== undefined && { past }),
  });
}

/** Holds the messages of the user until the next step. */
function inboxOfWorker({ mail }: TaskLink): Inbox {
  const inbox = new Inbox();
  mail.onMessage(({ id, text }) => void inbox.add(text, () => mail.delivered(id)));
  return inbox;
}

function stepOfWorker(turn: number | undefined, step: number | undefined): Parameters<TaskLink['emit']>[1] {
  return { ...(turn !== undefined && { turn }), ...(step !== undefined && { step }) };
}

async function workerSubmitsNoPlans(): Promise<never> {
  throw new ToolError('workers cannot plan');
}

/** Denies tools that the task's custom agent may not use. */
function narrowWorkerTools({ toolsAllowed }: TaskSpec, { name }: Tool): Verdict | undefined {
  if (toolsAllowed === undefined || ALWAYS.includes(name) || toolsAllowed.includes(name)) return undefined;
  return { effect: 'deny', why: `the agent of this task may only use ${toolsAllowed.join(', ') || 'no tools'}` };
}

// A worker ends its task with the first, and an agent that may not load skills would not know their names.
const ALWAYS = [SUBMIT_RESULT, SKILL];

async function judgeWorkerCall(mode: TaskMode, policy: Policy, tool: Tool, input: Json): Promise<Verdict> {
  if (tool.name === SUBMIT_PLAN) return { effect: 'deny', why: 'workers cannot plan; do the task yourself' };
  if (mode === 'read' && tool.access === 'write')
    return { effect: 'deny', why: 'this task is to look, and to change nothing' };
  return judgeCall(policy, tool, input);
}

type End = Pick<TaskOutcome, 'status' | 'failure'>;

function endOfWorkerTask({ outcome }: ExecutionResult, signal: AbortSignal): End {
  switch (outcome.status) {
    case 'done':
      return { status: 'finished' };
    case 'cancelled':
      return { status: 'cancelled', failure: turnFailureOfSignal(signal) };
    case 'incomplete':
    case 'error':
      return { status: statusOfWorkerFailure(outcome.failure, signal), failure: outcome.failure };
    case 'suspended':
      throw new Error('a worker has no remote tools, and cannot wait for one');
  }
}

/** Returns `cancelled` if the run's signal ended the task, else `failed`, for example at a limit of the task. */
function statusOfWorkerFailure({ kind }: Failure, signal: AbortSignal): 'cancelled' | 'failed' {
  return signal.aborted && kind === turnFailureOfSignal(signal).kind ? 'cancelled' : 'failed';
}

type Told = Omit<TaskOutcome, 'summary'> & { readonly said: readonly Message[] };

function outcomeOfWorkerTask({ said, ...told }: Told): TaskOutcome {
  return { ...told, summary: taskSummaryIn(said) };
}
