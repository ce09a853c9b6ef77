// The records of a run, or of a part of it: one task, or the coordinator.

import type { JsonObject } from '@drover/protocol/json';
import type { Io } from '../io.ts';
import { stateFolder } from '../start/settings.ts';
import { widthOfText } from '../views/text/terminal-text.ts';
import { findKept } from './id.ts';
import { findTask, type KeptRun, readRun } from './run.ts';
import { whoIn } from './summary/record-line.ts';
import { bestEffort } from '@drover/core/promises';

const COORDINATOR = 'coordinator';

export type Selection = (record: JsonObject) => boolean;

/** Returns the records of the named part; all records if none is named. */
export function selectionOf(run: KeptRun, typed: string | undefined): Selection {
  if (typed === undefined) return () => true;
  if (typed === COORDINATOR && !run.state.tasks.has(typed))
    return ({ worker, task }) => worker === 0 && task === undefined;
  const { id } = findTask(run, typed);
  return ({ task, type, tasks }) => {
    if (task !== undefined) return task === id;
    // A gate belongs to every task whose work it tests.
    return (type === 'gate_start' || type === 'gate_end') && Array.isArray(tasks) && tasks.includes(id);
  };
}

/** The width of the column of agent names. */
export function nameColumns({ records, state }: KeptRun): number {
  const planned = [...state.tasks.keys()].map((id) => widthOfText(`1 ${id}`));
  return Math.max(COORDINATOR.length, ...planned, ...new Set(records.map((record) => whoIn(record).length)));
}

/** Candidates for completion by the shell. */
export async function offeredTasks(io: Io, typed: string | undefined): Promise<readonly string[]> {
  if (typed === undefined) return [];
  const home = stateFolder(io);
  const found = await bestEffort(findKept(home, typed));
  if (found?.kind !== 'run') return [];
  return [...(await readRun(home, found.id)).state.tasks.keys()];
}
