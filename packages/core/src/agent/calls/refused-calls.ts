// Tracks the last refused calls of a turn, to tell whether the agent stopped because permission was missing.
//
// Guarantees
//   1. Calls that a rule or the user refused count until a call of a later answer runs. Calls that were not run
//      for another reason (unknown, malformed) change nothing.
//   2. The journal gives the same result as the turn itself, so a resumed session knows earlier refusals.

import type { Recorded } from '@drover/protocol/events';

/** Refused calls of one answer. */
export type RefusedCalls = { readonly step: number; readonly calls: readonly string[] };

/** Refused calls of one answer, and whether another call of it ran. */
export type SettledStep = RefusedCalls & { readonly hasRun: boolean };

export function callsRefusedAfter(
  before: RefusedCalls | undefined,
  { step, calls, hasRun }: SettledStep,
): RefusedCalls | undefined {
  const same = before?.step === step ? before.calls : [];
  if (calls.length > 0) return { step, calls: [...same, ...calls] };
  return hasRun && same.length === 0 ? undefined : before;
}

/** Returns the result text of a refused call. */
export function callRefusalText(why: string): string {
  return `${REFUSAL}${why}`;
}

/** Prefix of the result text of every refused call. */
export const REFUSAL = 'Not allowed: ';

/** Returns the refused calls of the last turn in a journal. */
export function callsRefusedIn(records: readonly Recorded[]): RefusedCalls | undefined {
  let refused: RefusedCalls | undefined;
  const begun = new Set<string>(); // ids of calls that were run here or sent to a remote tool
  let turn = 0;
  for (const record of records) {
    const { step = 0 } = record;
    if ((record.turn ?? turn) !== turn) refused = undefined;
    turn = record.turn ?? turn;
    const ran =
      record.type === 'tool_execution_start' ? [record] : record.type === 'awaiting_tool_execution' ? record.calls : [];
    for (const { callId } of ran) begun.add(callId);
    if (ran.length > 0) refused = callsRefusedAfter(refused, { step, calls: [], hasRun: true });
    if (record.type === 'tool_execution_end' && !begun.has(record.callId) && record.output.startsWith(REFUSAL))
      refused = callsRefusedAfter(refused, { step, calls: [record.summary], hasRun: false });
  }
  return refused;
}
