// Which calls of a turn were refused last, so that it is known whether the agent stopped for want of permission.
//
// Guarantees
//   1. Calls that a rule or the user refused count until a later answer gets a call to run. Calls that were never run
//      for another reason (unknown, malformed) change nothing.
//   2. A journal gives the same as the turn itself, so a resumed session knows of refusals before it.

import type { Recorded } from '@drover/protocol/events';

/** Calls that one answer asked for and did not get. */
export type RefusedCalls = { readonly step: number; readonly calls: readonly string[] };

/** What became of calls of one answer: all of them, or some. */
export type SettledStep = RefusedCalls & { readonly hasRun: boolean };

export function refusedAfter(
  before: RefusedCalls | undefined,
  { step, calls, hasRun }: SettledStep,
): RefusedCalls | undefined {
  const same = before?.step === step ? before.calls : [];
  if (calls.length > 0) return { step, calls: [...same, ...calls] };
  return hasRun && same.length === 0 ? undefined : before;
}

/** What the model is told of a call that was refused. */
export function refusal(why: string): string {
  return `${REFUSAL}${why}`;
}

/** The beginning of each such result. */
export const REFUSAL = 'Not allowed: ';

/** Those of the last turn that a journal tells of. */
export function refusedIn(records: readonly Recorded[]): RefusedCalls | undefined {
  let refused: RefusedCalls | undefined;
  const begun = new Set<string>(); // ids of calls that were run here or handed out
  for (const record of records) {
    const { step = 0 } = record;
    if (record.type === 'message_end' && record.message.role === 'user') refused = undefined;
    const ran =
      record.type === 'tool_execution_start' ? [record] : record.type === 'awaiting_tool_execution' ? record.calls : [];
    for (const { callId } of ran) begun.add(callId);
    if (ran.length > 0) refused = refusedAfter(refused, { step, calls: [], hasRun: true });
    if (record.type === 'tool_execution_end' && !begun.has(record.callId) && record.output.startsWith(REFUSAL))
      refused = refusedAfter(refused, { step, calls: [record.summary], hasRun: false });
  }
  return refused;
}
