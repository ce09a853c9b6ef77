// A request that was under way when its session was killed.
//
// A session with a budget writes a `budget` event before each request, with the most that the request can cost. The
// provider never reports the usage of a request that a kill cut off. The next process that opens the journal charges
// the most, so the budget holds. Without a budget nothing is written before a request, and nothing is charged.

import type { Recorded } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import type { Usage } from '@drover/protocol/messages';
import { spentIn, sumSpent } from '../model/spending/spent.ts';
import { SEQ_JUMP } from './cut-off.ts';
import { foldSessionHistory } from './history.ts';

type Sent = Extract<Recorded, { readonly type: 'budget' }> & { readonly most: Usage };

/** The `usage` record for the request that is still open at the end of these records of a session; else nothing. */
export function lostRequestInJournal(records: readonly JsonObject[]): readonly JsonObject[] {
  const sent = openRequestInJournal(records);
  const past = sent && foldSessionHistory(records);
  if (sent === undefined || past === undefined) return [];
  const { v, session, worker, turn, step, most: usage, mostCost } = sent;
  const request = spentIn({ usage, cost: mostCost });
  const { usage: total, cost } = sumSpent(spentIn(past), request);
  const lastSeq = records.reduce((last, { seq }) => (typeof seq === 'number' ? Math.max(last, seq) : last), 0);
  const record = {
    v,
    session,
    worker,
    turn,
    step,
    seq: lastSeq + SEQ_JUMP + 1,
    at: new Date().toISOString(),
    type: 'usage',
    usage,
    total,
    cost,
    requestCost: mostCost,
  };
  return [Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as JsonObject];
}

/** The event of the last request, if no usage followed it. */
function openRequestInJournal(records: readonly JsonObject[]): Sent | undefined {
  const recorded = records as unknown as readonly Recorded[];
  const last = recorded.findLast(({ type }) => type === 'budget' || type === 'usage');
  return last?.type === 'budget' && last.most !== undefined ? { ...last, most: last.most } : undefined;
}
