// drover logs <id> [task]: prints the records of a run, task or session, one per line, and can follow new ones.

import { UsageError } from '@drover/core/errors';
import { journalTail } from '@drover/core/journal/file/tail';
import type { JsonObject } from '@drover/protocol/json';
import { defineCommand, flagOption } from '../start/command.ts';
import { diagnosticsRedactor } from '../diagnostics.ts';
import { exitCodeOfFailure, exitCodeOfStop, exitCode } from '../start/exit-code.ts';
import { printError, type Io, print } from '../io.ts';
import { findRunOrSession, offerIdCompletions } from '../history/id.ts';
import type { KeptJournal } from '../history/journal.ts';
import { readRunState } from '../history/run.ts';
import { readSessionState } from '../history/session.ts';
import { formatRecordLine } from '../history/summary/record-line.ts';
import { recordNameColumns, offerTaskCompletions, type Selection, selectRunRecords } from '../history/run-records.ts';
import { stateFolder } from '../start/settings.ts';
import { watchForStopSignal } from '../stop.ts';
import { jsonViewText } from '../views/json.ts';
import { textStyle } from '../views/text/style.ts';
import { terminalColumns, textForLog } from '../views/text/terminal-text.ts';

export const logs = defineCommand({
  word: {
    name: 'id',
    about: 'Run or session: its id or a unique prefix',
    required: true,
    offered: offerIdCompletions,
  },
  second: {
    name: 'task',
    about: 'Show only this task of the run, or its coordinator',
    required: false,
    offered: offerTaskCompletions,
  },
  options: {
    follow: flagOption('Options:', 'Follow new events until the run or session stops'),
    json: flagOption('Options:', 'Print the raw records, one JSON object per line'),
  },
  examples: [
    ['drover logs 1a2b3c', 'Show every step'],
    ['drover logs 1a2b3c billing', 'Show one task of a run'],
    ['drover logs nightly --follow', 'Follow a session of another process until it stops'],
    [`drover logs nightly --json | jq 'select(.type == "usage")'`, 'For scripts'],
  ],
  async run({ word = '', second, follow, json }, io) {
    const home = stateFolder(io);
    const { kind, id } = await findRunOrSession(home, word);
    if (kind === 'run') {
      const run = await readRunState(home, id);
      const isWanted = selectRunRecords(run, second);
      return printLogs(run, { follow, json, isWanted, names: recordNameColumns(run) }, io);
    }
    if (second !== undefined) throw new UsageError(`session ${id} has no tasks; a run has`);
    return printLogs(await readSessionState(home, id), { follow, json, isWanted: () => true }, io);
  },
});

type How = {
  readonly follow: boolean;
  readonly json: boolean;
  readonly isWanted: Selection;
  readonly names?: number;
};

async function printLogs(kept: KeptJournal, { follow, json, isWanted, names }: How, io: Io): Promise<number> {
  const { path, records, readTo, failure, problem } = kept;
  const style = textStyle(io.stdout, io.env);
  const redactor = await diagnosticsRedactor(io);
  const gists = failure?.kind === 'journal.newer' ? 'types only' : 'gists';
  const tellOne = async (record: JsonObject): Promise<void> => {
    if (!isWanted(record)) return;
    const line = { columns: terminalColumns(io.stdout), style, ...(names !== undefined && { names }) };
    const told = redactor.value(record);
    await print(io.stdout, json ? `${jsonViewText(told)}\n` : textForLog(formatRecordLine(told, gists, line), io.env));
  };
  const stop = watchForStopSignal(io, () => undefined);
  try {
    for (const record of records) {
      if (stop.signal.aborted) break;
      await tellOne(record);
    }
    if (failure !== undefined) {
      await printError(io, problem ?? '');
      return exitCodeOfFailure(failure);
    }
    if (follow) for await (const record of journalTail(path, readTo, stop.signal)) await tellOne(record);
    return stop.signal.aborted ? exitCodeOfStop(stop.cause()) : exitCode.done;
  } finally {
    stop.close();
  }
}
