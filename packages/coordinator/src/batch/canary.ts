// The canary: a few tasks run first, and their cost predicts the cost of all. Pure.

import type { Failure } from '@drover/protocol/failures';
import { type RunSettings, type TaskRow, isDone } from '@drover/protocol/run';
import { spentTokensOf } from '@drover/core/model/spending/usage';

export type CanaryVerdict = {
  readonly message: string;
  /** Why the other tasks should not start. */
  readonly failure?: Failure;
};

export type Canary = NonNullable<RunSettings['canary']> & { readonly workers: number };

/** Moves a sample from all over the plan to its beginning. The rest keeps its order. */
export function canaryFirst<Task>(tasks: readonly Task[], count: number): readonly Task[] {
  const ahead = new Set(
    Array.from({ length: Math.min(count, tasks.length) }, (_, at) => tasks[Math.floor((at * tasks.length) / count)]),
  );
  return [...tasks.filter((task) => ahead.has(task)), ...tasks.filter((task) => !ahead.has(task))];
}

/** The canary of a run, as the execution of its plan uses it; undefined if the run has none. */
export function openCanary(
  { canary, workers }: RunSettings,
  rows: () => readonly TaskRow[],
  tell: (message: string) => void,
): { readonly tasks: number; readonly judge: () => Failure | undefined } | undefined {
  if (canary === undefined) return undefined;
  const judge = () => {
    const { message, failure } = canaryVerdict(rows(), { ...canary, workers });
    tell(message);
    return failure;
  };
  return { tasks: canary.tasks, judge };
}

/** `rows`: all tasks of the plan, those of the canary first. */
export function canaryVerdict(rows: readonly TaskRow[], { tasks, cost: allowed, workers }: Canary): CanaryVerdict {
  const ahead = rows.slice(0, tasks);
  // Cached results cost nothing, and predict nothing about the others.
  const tried = ahead.filter(({ attempts }) => attempts > 0);
  if (tried.length === 0) return { message: 'the canary: all of it was known already, so nothing was learnt' };
  const good = tried.filter(({ status }) => isDone(status)).length;
  const factor = (rows.length - ahead.length + tried.length) / tried.length;
  const total = (amount: (row: TaskRow) => number) => tried.reduce((sum, row) => sum + amount(row), 0) * factor;
  const isPriced = tried.some(({ cost }) => cost !== undefined);
  const dollars = total(({ cost = 0 }) => cost);
  const tokens = Math.ceil(total(({ usage }) => spentTokensOf(usage)));
  const minutes = total(({ elapsedMs = 0 }) => elapsedMs) / Math.max(1, Math.min(workers, rows.length)) / 60_000;
  const amount = isPriced ? `$${dollars.toFixed(2)}` : `${tokens} tokens`;
  const forecast = `all ${rows.length} would take about ${amount} and ${minutes.toFixed(1)} minutes`;
  const message = `the canary: ${good} of ${tried.length} tasks went well; ${forecast}`;
  if (good === 0)
    return { message, failure: canaryLimitFailure('failures', 'none of the tasks that went ahead went well') };
  const isTooDear =
    allowed !== undefined && ('usd' in allowed ? !isPriced || dollars > allowed.usd : tokens > allowed.tokens);
  if (!isTooDear) return { message };
  return { message, failure: canaryLimitFailure('budget', `${forecast}, which is more than the canary allows`) };
}

function canaryLimitFailure(limit: 'budget' | 'failures', message: string): Failure {
  return { kind: 'limit.reached', limit, message };
}
