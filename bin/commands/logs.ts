// drover logs <id> [task]: prints the records of a run, task or session, one per line, and can follow new ones.

import { UsageError } from '@drover/core/errors';
import { journalTail } from '@drover/core/journal/file/tail';
import type { JsonObject } from '@drover/protocol/json';
import { command, flag } from '../start/command.ts';
import { redactorFor } from '../diagnostics.ts';
import { codeOfFailure, codeOfStop, exitCode } from '../start/exit-code.ts';
import { complain, type Io, print } from '../io.ts';
import { findKept, offeredIds } from '../history/id.ts';
import type { KeptJournal } from '../history/journal.ts';
import { readRun } from '../history/run.ts';
import { readSession } from '../history/session.ts';
import { recordLine } from '../history/summary/record-line.ts';
import { nameColumns, offeredTasks, type Selection, selectionOf } from '../history/run-records.ts';
import { stateFolder } from '../start/settings.ts';
import { watchForStop } from '../stop.ts';
import { jsonText } from '../views/json.ts';
import { styleFor } from '../views/text/style.ts';
import { columnsOf, forLog } from '../views/text/terminal-text.ts';

export const logs = command({
  word: {
    name: 'id',
    about: 'Run or session: its id or a unique prefix',
    required: true,
    offered: offeredIds,
  },
  second: {
    name: 'task',
    about: 'Show only this task of the run, or its coordinator',
    required: false,
    offered: offeredTasks,
  },
  options: {
    follow: flag('Options:', 'Follow new events until the run or session stops'),
    json: flag('Options:', 'Print the raw records, one JSON object per line'),
  },
  examples: [
    ['drover logs 1a2b3c', 'Show every step'],
    ['drover logs 1a2b3c billing', 'Show one task of a run'],
    ['drover logs nightly --follow', 'Follow a session of another process until it stops'],
    [`drover logs nightly --json | jq 'select(.type == "usage")'`, 'For scripts'],
  ],
  async run({ word = '', second, follow, json }, io) {
    const home = stateFolder(io);
    const { kind, id } = await findKept(home, word);
    if (kind === 'run') {
      const run = await readRun(home, id);
      const isWanted = selectionOf(run, second);
      return tell(run, { follow, json, isWanted, names: nameColumns(run) }, io);
    }
    if (second !== undefined) throw new UsageError(`session ${id} has no tasks; a run has`);
    return tell(await readSession(home, id), { follow, json, isWanted: () => true }, io);
  },
});

type How = {
  readonly follow: boolean;
  readonly json: boolean;
  readonly isWanted: Selection;
  readonly names?: number;
};

async function tell(kept: KeptJournal, { follow, json, isWanted, names }: How, io: Io): Promise<number> {
  const { path, records, readTo, failure, problem } = kept;
  const style = styleFor(io.stdout, io.env);
  const redactor = await redactorFor(io);
  const gists = failure?.kind === 'journal.newer' ? 'types only' : 'gists';
  const tellOne = async (record: JsonObject): Promise<void> => {
    if (!isWanted(record)) return;
    const line = { columns: columnsOf(io.stdout), style, ...(names !== undefined && { names }) };
    const told = redactor.value(record);
    await print(io.stdout, json ? `${jsonText(told)}\n` : forLog(recordLine(told, gists, line), io.env));
  };
  const stop = watchForStop(io, () => undefined);
  try {
    for (const record of records) {
      if (stop.signal.aborted) break;
      await tellOne(record);
    }
    if (failure !== undefined) {
      await complain(io, problem ?? '');
      return codeOfFailure(failure);
    }
    if (follow) for await (const record of journalTail(path, readTo, stop.signal)) await tellOne(record);
    return stop.signal.aborted ? codeOfStop(stop.cause()) : exitCode.done;
  } finally {
    stop.close();
  }
}
