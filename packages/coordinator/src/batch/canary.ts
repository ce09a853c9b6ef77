// The canary: a few tasks go ahead, and what they took says what all would take. Pure.

import type { Failure } from '@drover/core/failure';
import type { RunSettings, TaskRow } from '@drover/core/task/run';
import type { Usage } from '@drover/core/model/protocol';

export type Verdict = {
  readonly message: string;
  /** Why the others should not follow. */
  readonly failure?: Failure;
};

/** `rows` are of all tasks of the plan, those that went ahead first. */
export function canaryVerdict(
  rows: readonly TaskRow[],
  { tasks, cost: allowed }: NonNullable<RunSettings['canary']>,
): Verdict {
  const ahead = rows.slice(0, tasks);
  // What was known already cost nothing, and says nothing about the others.
  const tried = ahead.filter(({ attempts }) => attempts > 0);
  const good = tried.filter(({ status }) => status === 'landed' || status === 'done');
  const told = [`the canary: ${good.length} of ${tried.length} tasks went well`];
  if (tried.length === 0) return { message: 'the canary: all of it was known already, so nothing was learnt' };
  const factor = (rows.length - ahead.length + tried.length) / tried.length;
  const spent = tried.reduce((sum, { cost = 0 }) => sum + cost, 0) * factor;
  const tokens = Math.ceil(tried.reduce((sum, { usage }) => sum + tokensOf(usage), 0) * factor);
  const isPriced = tried.some(({ cost }) => cost !== undefined);
  const minutes = (tried.reduce((sum, { elapsedMs = 0 }) => sum + elapsedMs, 0) * factor) / 60_000;
  const amount = isPriced ? `$${spent.toFixed(2)}` : `${tokens} tokens`;
  const forecast = `all ${rows.length} would take about ${amount} and ${minutes.toFixed(1)} minutes of work`;
  const message = [...told, forecast].join('; ');
  if (good.length === 0)
    return { message, failure: reached('failures', 'none of the tasks that went ahead went well') };
  const isTooDear =
    allowed !== undefined && ('usd' in allowed ? isPriced && spent > allowed.usd : tokens > allowed.tokens);
  return isTooDear
    ? { message, failure: reached('budget', `${forecast}, which is more than the canary allows`) }
    : { message };
}

function reached(limit: 'budget' | 'failures', message: string): Failure {
  return { kind: 'limit.reached', limit, message };
}

function tokensOf({ input, output, cacheRead, cacheWrite }: Usage): number {
  return input + output + cacheRead + cacheWrite;
}
