// The records of a run, or of a part of it: one task, or the coordinator.

import type { JsonObject } from '@drover/protocol/json';
import type { Io } from '../io.ts';
import { stateFolder } from '../start/settings.ts';
import { widthOfText } from '../views/text/terminal-text.ts';
import { findRunOrSession } from './id.ts';
import { findTaskOfRun, type KeptRun, readRunState } from './run.ts';
import { agentOfRecord } from './summary/record-line.ts';
import { bestEffort } from '@drover/core/promises';

const COORDINATOR = 'coordinator';

export type Selection = (record: JsonObject) => boolean;

/** Returns the records of the named part; all records if none is named. */
export function selectRunRecords(run: KeptRun, typed: string | undefined): Selection {
  if (typed === undefined) return () => true;
  if (typed === COORDINATOR && !run.state.tasks.has(typed))
    return ({ worker, task }) => worker === 0 && task === undefined;
  const { id } = findTaskOfRun(run, typed);
  return ({ task, type, tasks }) => {
    if (task !== undefined) return task === id;
    // A gate belongs to every task whose work it tests.
    return (type === 'gate_start' || type === 'gate_end') && Array.isArray(tasks) && tasks.includes(id);
  };
}

/** The width of the column of agent names. */
export function recordNameColumns({ records, state }: KeptRun): number {
  const planned = [...state.tasks.keys()].map((id) => widthOfText(`1 ${id}`));
  return Math.max(COORDINATOR.length, ...planned, ...new Set(records.map((record) => agentOfRecord(record).length)));
}

/** Candidates for completion by the shell. */
export async function offerTaskCompletions(io: Io, typed: string | undefined): Promise<readonly string[]> {
  if (typed === undefined) return [];
  const home = stateFolder(io);
  const found = await bestEffort(findRunOrSession(home, typed));
  if (found?.kind !== 'run') return [];
  return [...(await readRunState(home, found.id)).state.tasks.keys()];
}
