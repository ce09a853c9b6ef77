// drover runs: the sessions there are, the newest first.

import { isLive, listSessions, type SessionRow } from '@drover/core/journal/sessions';
import { command, flag } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { type Io, print } from '../io.ts';
import { sessionIds, shortId } from '../sessions/session-id.ts';
import { tableOf } from '../sessions/session-table.ts';
import { stateFolder } from '../settings.ts';
import { count } from '../views/figures.ts';
import { styleFor } from '../views/style.ts';
import { columnsOf, cut } from '../views/terminal-text.ts';
import { wrapped } from '../views/word-wrap.ts';

const NEWEST = 20;

export const runs = command({
  options: {
    all: flag('Options:', `All of them, and not only the newest ${NEWEST}`),
    json: flag('Options:', 'For programs: one JSON object a line'),
  },
  examples: [
    ['drover runs', 'What there is, and how it ended'],
    ['drover runs --all --json', 'All of it, for a script'],
  ],
  async run({ all, json }, io) {
    const home = stateFolder(io);
    const rows = listSessions(home);
    const shown = (all ? rows : rows.slice(0, NEWEST)).map((row) => ({ ...row, live: liveIn(home, row) }));
    if (json) {
      await print(io.stdout, shown.map((row) => `${JSON.stringify(row)}\n`).join(''));
    } else if (rows.length === 0) {
      await print(io.stdout, nothingYet(io));
    } else {
      const ids = sessionIds(home);
      const table = shown.map(({ live, state, ...row }) => ({
        ...row,
        state: live ? ('live' as const) : state,
        short: shortId(row.id, ids),
      }));
      const style = styleFor(io.stdout, io.env);
      const left = rows.length - shown.length;
      const columns = columnsOf(io.stdout);
      const words = cut(`  … ${count(left)} more; drover runs --all shows them`, columns);
      const more = left === 0 ? '' : `${style('dim', words)}\n`;
      await print(io.stdout, tableOf(table, { columns, now: Date.now() }, style) + more);
    }
    return exitCode.done;
  },
});

/** Whoever is writing a session has not come to its end. */
function liveIn(home: string, { id, state }: SessionRow): boolean {
  return state !== 'done' && isLive(home, id);
}

function nothingYet(io: Io): string {
  const style = styleFor(io.stdout, io.env);
  const columns = columnsOf(io.stdout);
  return [
    style('bold', 'No sessions yet.'),
    wrapped('Everything an agent does is kept, and can be looked at and gone on with from here.', columns),
    '',
    '  drover exec "fix the failing test"',
    style('dim', '    begins one in this folder'),
    '  drover demo',
    style('dim', '    shows one, without a key'),
    '',
  ].join('\n');
}
