// drover runs: lists runs and sessions, newest first.

import { command, flag } from '../start/command.ts';
import { redactorFor } from '../diagnostics.ts';
import { exitCode } from '../start/exit-code.ts';
import { type Io, print } from '../io.ts';
import { keptIds, shortId } from '../history/id.ts';
import { isAtWork, listRunsAndSessions } from '../history/rows.ts';
import { tableOf } from '../history/table.ts';
import { stateFolder } from '../start/settings.ts';
import { count } from '../views/text/figures.ts';
import { jsonText } from '../views/json.ts';
import { styleFor } from '../views/text/style.ts';
import { columnsOf, cut, forLog } from '../views/text/terminal-text.ts';
import { wrapped } from '../views/text/word-wrap.ts';

const NEWEST = 20;

export const runs = command({
  options: {
    all: flag('Options:', `List all (default: the newest ${NEWEST})`),
    json: flag('Options:', 'Print one JSON object per line'),
  },
  examples: [
    ['drover runs', 'List the newest, with their status'],
    ['drover runs --all --json', 'List all, for a script'],
    [`drover runs --json | jq 'select(.kind == "run" and .canGoOn)'`, 'Runs that can be resumed'],
  ],
  async run({ all, json }, io) {
    const home = stateFolder(io);
    const rows = listRunsAndSessions(home);
    const redactor = await redactorFor(io);
    const shown = (all ? rows : rows.slice(0, NEWEST)).map((row) => ({
      row: redactor.value(row as never) as typeof row,
      live: isAtWork(home, row),
    }));
    if (json) {
      await print(io.stdout, shown.map(({ row, live }) => `${jsonText({ ...row, live })}\n`).join(''));
    } else if (rows.length === 0) {
      await print(io.stdout, nothingYet(io));
    } else {
      const ids = keptIds(home);
      const table = shown.map(({ row, live }) => ({
        row,
        shown: live ? ('live' as const) : row.state,
        short: shortId(row.id, ids),
      }));
      const style = styleFor(io.stdout, io.env);
      const left = rows.length - shown.length;
      const columns = columnsOf(io.stdout);
      const words = cut(`  … ${count(left)} more; drover runs --all shows them`, columns);
      const more = left === 0 ? '' : `${style('dim', words)}\n`;
      await print(io.stdout, forLog(tableOf(table, { columns, now: Date.now() }, style), io.env) + more);
    }
    return exitCode.done;
  },
});

function nothingYet(io: Io): string {
  const style = styleFor(io.stdout, io.env);
  const columns = columnsOf(io.stdout);
  return [
    style('bold', 'No runs or sessions yet.'),
    wrapped('drover records everything that agents do. You can inspect and resume it from here.', columns),
    '',
    '  drover run "add types to src"',
    style('dim', '    begins a run in this repository'),
    '  drover exec "fix the failing test"',
    style('dim', '    begins a session in this folder'),
    '  drover demo',
    style('dim', '    shows a run, without a key'),
    '',
  ].join('\n');
}
