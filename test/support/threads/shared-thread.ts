// Several attempts in one thread, which resume from their events as in a run.

import type { Event } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { TaskSpec } from '@drover/core/task/task';
import { foldSessionHistory } from '@drover/core/journal/history';
import { runMovingAttempt } from '@drover/coordinator/attempt/moving';
import type { Pool } from '@drover/coordinator/pool/pool';
import { never } from '../agent.ts';
import { listener, type Listener, type RunParts } from '../task.ts';

export type Moved = { readonly run: Listener; readonly moves: Event[]; readonly outcome: Promise<TaskOutcome> };

export function inPool(pool: Pool, spec: TaskSpec, parts: RunParts = {}): Moved {
  const run = listener(parts);
  const moves: Event[] = [];
  const history = async () =>
    foldSessionHistory(run.told.map(({ event, at }, seq) => ({ seq, ...at, ...event }) as unknown as JsonObject));
  const tell = (event: Event) => void moves.push(event);
  const outcome = runMovingAttempt({ spec, link: run.link, runTask: pool.run, history, tell }, never);
  return { run, moves, outcome };
}
