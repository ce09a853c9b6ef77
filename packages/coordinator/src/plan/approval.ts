// Approval of a plan: the user runs it, changes it, comments on it, or declines it.
//
// Crash: `plan_proposed` and `plan_comment` are durable. A plan whose question stood open is proposed again on resume;
// a comment is also the result of the coordinator's call, so its conversation resumes with it.

import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { DroverError } from '@drover/core/errors';
import type { Event } from '@drover/protocol/events';
import type { PlannedTask } from '@drover/protocol/plan';

/** Without `callId` the plan comes from a file, and there is no coordinator to read a comment. */
export type PlanProposal = { readonly tasks: readonly PlannedTask[]; readonly callId?: string };

/** The tasks to run, possibly changed; or a comment for the coordinator. */
export type PlanAnswer = { readonly tasks: readonly PlannedTask[] } | { readonly comment: string };

/** Shows a plan before anything is spent on it. Undefined if it is declined. */
export type ApprovePlan = (proposal: PlanProposal, signal: AbortSignal) => Promise<PlanAnswer | undefined>;

type Asking = { readonly approve: ApprovePlan | undefined; readonly tell: (event: Event) => void };

/** Asks for approval, if there is a user to ask. Throws DroverError if the plan is declined. */
export async function approvedPlan(
  proposal: PlanProposal,
  { approve, tell }: Asking,
  signal: AbortSignal,
): Promise<PlanAnswer> {
  const { tasks, callId } = proposal;
  if (approve === undefined) return { tasks };
  const call = callId === undefined ? {} : { callId };
  tell({ type: 'plan_proposed', tasks, ...call });
  const answer = await approve(proposal, signal);
  if (answer === undefined)
    throw new DroverError(signal.aborted ? turnFailureOfSignal(signal) : { kind: 'plan.declined' });
  if ('comment' in answer) tell({ type: 'plan_comment', comment: answer.comment, ...call });
  return answer;
}
