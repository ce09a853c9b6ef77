// drover logs <id>: the records of a session, one a line, as they were or as they come.

import type { JsonObject } from '@drover/core/json';
import { command, flag } from '../command.ts';
import { codeOfFailure, codeOfStop, exitCode } from '../exit-code.ts';
import { print } from '../io.ts';
import { journalTail } from '../sessions/journal-tail.ts';
import { readSession } from '../sessions/kept-session.ts';
import { recordLine } from '../sessions/record-line.ts';
import { findSession, offeredIds } from '../sessions/session-id.ts';
import { stateFolder } from '../settings.ts';
import { watchForStop } from '../stop.ts';
import { styleFor } from '../views/style.ts';
import { clean, columnsOf } from '../views/terminal-text.ts';

export const logs = command({
  word: { name: 'id', about: 'The session, or as much of its id as is unique', required: true, offered: offeredIds },
  options: {
    follow: flag('Options:', 'Go on as long as somebody works in the session'),
    json: flag('Options:', 'For programs: the records as they are, one JSON object a line'),
  },
  examples: [
    ['drover logs 1a2b3c', 'What happened, step by step'],
    ['drover logs nightly --follow', 'Watch a session that runs elsewhere'],
    [`drover logs nightly --json | jq 'select(.type == "usage")'`, 'For scripts'],
  ],
  async run({ word = '', follow, json }, io) {
    const home = stateFolder(io);
    const { id, records, bytes, failure, problem } = await readSession(home, findSession(home, word));
    const style = styleFor(io.stdout, io.env);
    const gists = failure?.kind === 'journal.newer' ? 'types only' : 'gists';
    const tell = (record: JsonObject): Promise<void> =>
      print(
        io.stdout,
        json ? `${JSON.stringify(record)}\n` : recordLine(record, gists, { columns: columnsOf(io.stdout), style }),
      );
    const stop = watchForStop(io, () => undefined);
    try {
      for (const record of records) {
        if (stop.signal.aborted) break;
        await tell(record);
      }
      if (failure !== undefined) {
        await print(io.stderr, `${clean(`drover: ${problem}`)}\n`);
        return codeOfFailure(failure);
      }
      if (follow) for await (const record of journalTail({ home, id, from: bytes }, stop.signal)) await tell(record);
      return stop.signal.aborted ? codeOfStop(stop.cause()) : exitCode.done;
    } finally {
      stop.close();
    }
  },
});
