// The coordinator: an agent that looks, submits a plan, learns the result, and answers.
//
// Carrying out the plan is the execution of its submit_plan call, which stays open meanwhile: waiting
// costs no tokens, and a further plan for what failed is just another call. A plan that makes no sense
// goes back with what is wrong with it, twice at most; then the whole goal is one task.

import type { Verdict } from '@drover/core/agent/calls/calls';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import type { Limits } from '@drover/protocol/limits';
import { Session } from '@drover/core/session/session';
import type { ExecutionResult } from '@drover/core/session/execution';
import type { Outlet, SessionOptions } from '@drover/core/session/session-options';
import type { Snapshot } from '@drover/core/conversation/conversation';
import { DroverError } from '@drover/core/errors';
import type { Event } from '@drover/protocol/events';
import type { Past } from '@drover/core/journal/history';
import { judgeCall, type Policy } from '@drover/core/permission/policy';
import type { Json } from '@drover/protocol/json';
import { modelRolesOfRun, type RunSettings, type TaskRow } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import { builtinRunTools } from '@drover/core/tools/builtin';
import { FIND_TOOLS } from '@drover/core/tools/served/find-tools';
import { servedTools } from '@drover/core/tools/served/served';
import type { ToolServers } from '@drover/core/tools/served/tool-servers';
import { callHooks } from '@drover/core/hooks/call-hooks';
import { type Extensions, NO_EXTENSIONS } from '@drover/core/hooks/extensions';
import { SUBMIT_PLAN } from '@drover/core/tools/submit-plan';
import type { Tool, ToolContext, ToolOutput } from '@drover/core/tools/tool';
import { agentCatalogueForPlan } from './agents.ts';
import { planProblems } from './graph.ts';
import { planWithReview } from './review.ts';

const INVALID_MAX = 2;
const TITLE_CHARS_MAX = 72;
const NOT_INCLUDED_MAX = 20;

type Submitted = {
  readonly tasks: readonly PlannedTask[];
  readonly by: 'coordinator' | 'fallback';
  readonly callId: string;
  readonly snapshot: Snapshot;
};

/** A plan from the coordinator or from a file. */
export type GivenPlan = {
  readonly tasks: readonly PlannedTask[];
  readonly by: 'coordinator' | 'fallback' | 'file';
  readonly callId?: string;
  readonly system: string | undefined;
  readonly snapshot: Snapshot | undefined;
};

export type Planning = {
  readonly settings: RunSettings;
  readonly session: Omit<SessionOptions, 'tools' | 'judge' | 'question' | 'limits' | 'pass'>;
  readonly extensions?: Pick<Extensions, 'skills' | 'agents' | 'hooks'>;
  readonly policy: Policy;
  readonly limits: Limits;
  readonly servers: ToolServers;
  readonly past: Past | undefined;
  /** Number of plans so far. */
  readonly rounds: () => number;
  /** True for a call whose plan was emitted before a crash: it is resumed, and counts as no further plan. */
  readonly isBegun: (callId: string) => boolean;
  /** Tasks of earlier plans that are done. */
  readonly done: () => ReadonlySet<string>;
  readonly warn: (message: string) => void;
  /** Resolves when the plan is executed. */
  readonly execute: (submitted: Submitted, signal: AbortSignal) => Promise<PlanResult>;
};

/** The result of each task, or the user's comment instead of an approval. */
type PlanResult = { readonly rows: readonly TaskRow[] } | { readonly comment: string };

export type PlanningResult = { readonly result: ExecutionResult; readonly answer: string };

/** Runs the coordinator's turn, including all plans that it submits. */
export async function runPlanning(planning: Planning, signal: AbortSignal): Promise<PlanningResult> {
  const { settings, past, extensions = NO_EXTENSIONS, limits, servers } = planning;
  const { context, outlet } = planning.session;
  const emit = (event: Event) => outlet?.emit(event, { worker: 0 });
  const line = servers.lineFor({ cwd: context.cwd, sandbox: undefined, emit, question: async () => undefined });
  let invalid = 0;
  const judged = async (tasks: readonly PlannedTask[], context: ToolContext): Promise<ToolOutput> => {
    const isBegun = planning.isBegun(context.callId);
    const round = planning.rounds() + (isBegun ? 0 : 1);
    if (round > settings.roundsMax)
      return { output: `No more plans: ${settings.roundsMax} is the limit. Say what was achieved.`, isError: true };
    const found = planProblems(tasks, {
      tasksMax: settings.tasksMax,
      done: planning.done(),
      agents: extensions.agents.map(({ name }) => name),
    });
    const snapshot = session.conversation.snapshot();
    const { callId } = context;
    const executed = async (planned: readonly PlannedTask[], by: Submitted['by']) => {
      const reviewed = planWithReview(planned, settings, planning.done());
      return planResultForModel(await planning.execute({ tasks: reviewed, by, callId, snapshot }, context.signal));
    };
    if (found.length === 0 || isBegun) return executed(tasks, 'coordinator');
    invalid += 1;
    if (invalid <= INVALID_MAX)
      return {
        output: `The plan can't be carried out:\n${found.map(({ message }) => `- ${message}`).join('\n')}`,
        isError: true,
      };
    planning.warn('the plan made no sense three times, so the whole goal becomes one task');
    return executed([wholeGoalTask(settings.goal)], 'fallback');
  };
  const session = new Session({
    ...planning.session,
    skills: extensions.skills,
    ...hooksOfCoordinator(planning),
    ...(past !== undefined && { past }),
    limits,
    tools: [...builtinRunTools(judged, extensions.skills), ...servedTools(servers.tools, line.call)],
    judge: async (tool, input) => judgeCoordinatorCall(planning.policy, tool, input),
    question: async () => ({ allowed: false, by: 'nobody', always: false }),
    pass: (event) => [event],
  });
  const begin =
    past === undefined || past.turn === 0
      ? { content: firstPlanWords(settings, extensions.agents) }
      : { resume: true as const };
  const take = async (): Promise<ExecutionResult> => {
    try {
      return await session.run(begin, signal);
    } finally {
      await line.close();
    }
  };
  const result = await take();
  if (signal.aborted) throw new DroverError(turnFailureOfSignal(signal));
  return { result, answer: lastPlanWords(result) };
}

/** Returns the coordinator's first plan and executes none of it. */
export async function runPlanningOnly(
  planning: Omit<Planning, 'execute' | 'rounds' | 'isBegun' | 'done' | 'past'>,
  signal: AbortSignal,
): Promise<readonly PlannedTask[] | undefined> {
  const enough = new AbortController();
  let found: readonly PlannedTask[] | undefined;
  const { session } = planning;
  // The plan ends the conversation early, which is not a failure.
  const outlet: Outlet = {
    emit: (event, place) => (found === undefined ? session.outlet?.emit(event, place) : undefined),
    settled: async () => session.outlet?.settled(),
  };
  const whole: Planning = {
    ...planning,
    session: { ...session, outlet },
    past: undefined,
    rounds: () => 0,
    isBegun: () => false,
    done: () => new Set(),
    execute: async ({ tasks }) => {
      found = tasks;
      enough.abort();
      return { rows: [] };
    },
  };
  try {
    const { result } = await runPlanning(whole, AbortSignal.any([signal, enough.signal]));
    if ('failure' in result.outcome) throw new DroverError(result.outcome.failure);
  } catch (error) {
    if (!(error instanceof DroverError) || found === undefined) throw error;
  }
  return found;
}

/** One task, for a goal that is not worth splitting. */
function wholeGoalTask(goal: string): PlannedTask {
  const title = goal.trim().split('\n', 1)[0]?.slice(0, TITLE_CHARS_MAX) ?? goal;
  return { id: 'goal', title, prompt: goal, dependsOn: [], files: [], mode: 'write' };
}

/** The user's rules for reading also hold for the coordinator, because it reads in the user's own checkout. */
async function judgeCoordinatorCall(policy: Policy, tool: Tool, input: Json): Promise<Verdict> {
  if (tool.name === SUBMIT_PLAN) return { effect: 'allow', why: 'it is the coordinator’s' };
  if (tool.access === 'read' || tool.name === FIND_TOOLS) return judgeCall(policy, tool, input);
  if (tool.served !== undefined) return judgeServedCallOfCoordinator(policy, tool, input);
  return { effect: 'deny', why: 'you coordinate, and change nothing yourself; make it a task of the plan' };
}

/** The user is never asked about the coordinator's calls, so it may only make those that a rule allows. */
async function judgeServedCallOfCoordinator(policy: Policy, tool: Tool, input: Json): Promise<Verdict> {
  const verdict = await judgeCall(policy, tool, input);
  if (verdict.effect !== 'ask') return verdict;
  return {
    effect: 'deny',
    why: `you coordinate, and ${verdict.why}, which no rule allows; make it a task of the plan`,
  };
}

/** Only hooks of the user: the coordinator reads in the user's checkout, where no sandbox is. */
function hooksOfCoordinator({ extensions, session }: Planning): Pick<SessionOptions, 'hooks'> {
  const own = extensions?.hooks.filter(({ isOwn }) => isOwn) ?? [];
  const { cwd, env } = session.context;
  const hooks = callHooks(own, session.id, { cwd, env, sandbox: undefined });
  return hooks === undefined ? {} : { hooks };
}

function firstPlanWords(settings: RunSettings, agents: Extensions['agents']): string {
  const { goal, notIncluded, roundsMax, tasksMax, gates } = settings;
  const left = notIncluded.slice(0, NOT_INCLUDED_MAX).join(', ');
  return [
    `The goal: ${goal}`,
    `You coordinate. Look at the repository as far as you need to, with the tools that read; then call submit_plan. Each task is done by a worker of its own, in a copy of the repository of its own, at the same time as the others; workers begin with this conversation, so what you have read here they need not read again. What they change is committed and merged in the order of the plan${gates.length === 0 ? '' : `, and must pass: ${gates.join('; ')}`}.`,
    `Make tasks that touch different files, and say with dependsOn where one builds on another. Work that can't be split is one task. A question is answered with tasks of mode read, or by you at once. At most ${tasksMax} tasks a plan and ${roundsMax} plans.`,
    ...[agentCatalogueForPlan(agents) ?? []].flat(),
    'The result of submit_plan says what became of each task. Then either submit a further plan for what failed or was found, or say in a few sentences what was achieved and what was not.',
    ...(modelRolesOfRun(settings).review === undefined
      ? []
      : ['A reviewer reads what the tasks of a plan changed; what it finds comes with their results.']),
    ...(left === '' ? [] : [`Not part of the repository that workers get, since it isn't committed: ${left}`]),
  ].join('\n\n');
}

function lastPlanWords({ messages }: ExecutionResult): string {
  const last = messages.findLast((message) => message.role === 'assistant');
  return (
    last?.content
      .map((part) => (part.type === 'text' ? part.text : ''))
      .join('')
      .trim() ?? ''
  );
}

/** The result of a plan, for the coordinator's model. */
function planResultForModel(result: PlanResult): ToolOutput {
  if ('comment' in result)
    return {
      output: `The user has read the plan and has not approved it. Nothing was executed. The user says:\n${result.comment}\nSubmit a new plan that follows this.`,
    };
  const { rows } = result;
  const lines = rows.map(({ task, status, files, commit, summary, reason }) =>
    [
      `${task}: ${status}`,
      ...(commit === undefined ? [] : [`commit ${commit.slice(0, 12)}`]),
      ...(files.length === 0 ? [] : [`files ${files.join(', ')}`]),
      ...(reason === undefined ? [] : [`because ${reason}`]),
      ...(summary === undefined || summary === '' ? [] : [`it says: ${summary}`]),
    ].join('\n  '),
  );
  return { output: lines.join('\n') };
}
