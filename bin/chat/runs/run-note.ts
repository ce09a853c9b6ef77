// The text that the model of a chat reads about a run of the chat.

import { handedOverLine } from '@drover/core/journal/sessions';
import type { KeptRun } from '../../history/run.ts';
import { runReport, shortRunId } from '../../views/report.ts';

const COLUMNS = 120;
const CHARS_MAX = 20_000;

/** The report that the user saw, or how far the run came before it was killed. */
export function runNote({ id, state }: KeptRun): string {
  const short = shortRunId(id);
  const head = handedOverLine(state.settings?.goal ?? '');
  const { end } = state;
  if (end === undefined)
    return `${head}\n[The run was interrupted and has no report. drover resume ${short} continues it.]`;
  const report = runReport(state, { columns: COLUMNS, style: (_format, text) => text });
  const cut =
    report.length > CHARS_MAX ? `${report.slice(0, CHARS_MAX)}\n[the rest of the report is left out]` : report;
  return `${head}\n${cut.trimEnd()}\n[The end of the report of run ${short}]`;
}

/** The line that the user sees about it. */
export function runNews({ id, state }: KeptRun): string {
  const short = shortRunId(id);
  if (state.end !== undefined) return `the agent reads the report of run ${short} with your next message`;
  return `run ${short} of this session was interrupted; continue it with: drover resume ${short}`;
}
