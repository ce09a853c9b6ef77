// drover runs: lists runs and sessions, newest first.

import { defineCommand, flagOption } from '../start/command.ts';
import { diagnosticsRedactor } from '../diagnostics.ts';
import { exitCode } from '../start/exit-code.ts';
import { type Io, print } from '../io.ts';
import { listStoredIds, shortenId } from '../history/id.ts';
import { isRowAtWork, listRunsAndSessions } from '../history/rows.ts';
import { historyTable } from '../history/table.ts';
import { stateFolder } from '../start/settings.ts';
import { countText } from '../views/text/figures.ts';
import { jsonViewText } from '../views/json.ts';
import { textStyle } from '../views/text/style.ts';
import { terminalColumns, cutText, textForLog } from '../views/text/terminal-text.ts';
import { wrapText } from '../views/text/word-wrap.ts';

const NEWEST = 20;

export const runs = defineCommand({
  options: {
    all: flagOption('Options:', `List all (default: the newest ${NEWEST})`),
    json: flagOption('Options:', 'Print one JSON object per line'),
  },
  examples: [
    ['drover runs', 'List the newest, with their status'],
    ['drover runs --all --json', 'List all, for a script'],
    [`drover runs --json | jq 'select(.kind == "run" and .canGoOn)'`, 'Runs that can be resumed'],
  ],
  async run({ all, json }, io) {
    const home = stateFolder(io);
    const rows = listRunsAndSessions(home);
    const redactor = await diagnosticsRedactor(io);
    const shown = (all ? rows : rows.slice(0, NEWEST)).map((row) => ({
      row: redactor.value(row as never) as typeof row,
      live: isRowAtWork(home, row),
    }));
    if (json) {
      await print(io.stdout, shown.map(({ row, live }) => `${jsonViewText({ ...row, live })}\n`).join(''));
    } else if (rows.length === 0) {
      await print(io.stdout, noRunsYetText(io));
    } else {
      const ids = listStoredIds(home);
      const table = shown.map(({ row, live }) => ({
        row,
        shown: live ? ('live' as const) : row.state,
        short: shortenId(row.id, ids),
      }));
      const style = textStyle(io.stdout, io.env);
      const left = rows.length - shown.length;
      const columns = terminalColumns(io.stdout);
      const words = cutText(`  … ${countText(left)} more; drover runs --all shows them`, columns);
      const more = left === 0 ? '' : `${style('dim', words)}\n`;
      await print(io.stdout, textForLog(historyTable(table, { columns, now: Date.now() }, style), io.env) + more);
    }
    return exitCode.done;
  },
});

function noRunsYetText(io: Io): string {
  const style = textStyle(io.stdout, io.env);
  const columns = terminalColumns(io.stdout);
  return [
    style('bold', 'No runs or sessions yet.'),
    wrapText('drover records everything that agents do. You can inspect and resume it from here.', columns),
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
