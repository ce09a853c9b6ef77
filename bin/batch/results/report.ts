// report.md: the result of a batch, for a user who reads the CI job later. A pure function.
//
// Text from models and tools is escaped: it can neither end its fence nor act as markup in a table cell.

import {
  countBatchResults,
  isGoodBatchResult,
  type Result,
  type ResultStatus,
} from '@drover/coordinator/batch/results';
import { dollarsText, durationText, shortCountText, totalTokens } from '../../views/text/figures.ts';
import { cleanText, inertText, textOnOneLine } from '../../views/text/terminal-text.ts';
import type { BatchSummary } from './summary.ts';

const LISTED_MAX = 200;
const FAILURES_SHOWN_MAX = 50;
const REASON_LINES_MAX = 40;
const CELL_CHARS_MAX = 120;

/** Head of the report of a batch, or of a run that writes a report. */
export type ReportHead = Pick<
  BatchSummary,
  'batch' | 'shard' | 'outcome' | 'exitCode' | 'reason' | 'usage' | 'cost' | 'model' | 'run' | 'combined'
>;

export function batchReport(summary: ReportHead, results: readonly Result[]): string {
  const sections = [
    batchHeadline(summary, results),
    batchFigures(summary, results),
    batchFailuresSection(results),
    batchLandedSection(results),
    batchNextSection(summary, results),
  ];
  return inertText(`${sections.filter((section) => section !== '').join('\n\n')}\n`);
}

function batchHeadline({ batch, outcome, exitCode, reason, shard }: ReportHead, results: readonly Result[]): string {
  const good = results.filter(isGoodBatchResult).length;
  const part = shard === undefined ? '' : ` (shard ${shard.index}/${shard.count})`;
  const amount = results.length === 0 ? 'there was nothing to do' : `${good} of ${results.length} tasks are done`;
  const why = reason === undefined ? '' : `\n\n${fencedReportCode(reason)}`;
  const sign = outcome === 'done' ? '✅' : '❌';
  return `## ${sign} ${inlineReportCode(batch)}${part}: ${amount}\n\nIt ended as **${outcome}**, exit code ${exitCode}.${why}`;
}

const WORDS: readonly (readonly [ResultStatus, string])[] = [
  ['landed', 'landed'],
  ['no_change', 'nothing to change'],
  ['failed', 'failed'],
  ['gate_failed', 'stopped by a gate on the merged tree'],
  ['conflict', 'in conflict'],
  ['skipped', 'skipped'],
  ['cancelled', 'cancelled'],
];

function batchFigures({ usage, cost, model }: ReportHead, results: readonly Result[]): string {
  const counts = countBatchResults(results);
  const rows = [
    ...WORDS.filter(([status]) => counts[status] > 0).map(([status, word]) => [word, String(counts[status])]),
    ...(counts.cached > 0 ? [['of these from the cache', String(counts.cached)]] : []),
    ['tokens', shortCountText(totalTokens(usage))],
    ...(cost === undefined ? [] : [['cost', dollarsText(cost)]]),
    ['model', inlineReportCode(model)],
  ];
  return ['| | |', '|---|---:|', ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');
}

function batchFailuresSection(results: readonly Result[]): string {
  const bad = results.filter((result) => !isGoodBatchResult(result));
  if (bad.length === 0) return '';
  // A reason that stopped many tasks is printed once.
  const groups = [...Map.groupBy(bad, ({ task, status, reason }) => `${status} ${reason ?? task}`).values()];
  const shown = groups.slice(0, FAILURES_SHOWN_MAX).map(batchFailureGroup);
  const left = groups.slice(FAILURES_SHOWN_MAX).reduce((count, group) => count + group.length, 0);
  return [`### Not done (${bad.length})`, ...shown, ...(left > 0 ? [`… and ${left} more`] : [])].join('\n\n');
}

/** One or more tasks that failed for the same reason. */
function batchFailureGroup(group: readonly Result[]): string {
  const [first] = group;
  if (first === undefined) return '';
  const word = WORDS.find(([status]) => status === first.status)?.[1] ?? first.status;
  const who = group.length === 1 ? first.task : `${group.length} tasks`;
  const reason = first.reason === undefined ? [] : [fencedReportCode(first.reason)];
  const rows = group.slice(0, LISTED_MAX).map(({ task, title, files, patch }) => {
    const what = `${inlineReportCode(task)}: ${inlineReportCode(title)} (${files.map(inlineReportCode).slice(0, 5).join(', ')})`;
    return `- ${what}${patch === undefined ? '' : `; its work is kept in ${inlineReportCode(patch)}`}`;
  });
  const more = group.length > LISTED_MAX ? [`- … and ${group.length - LISTED_MAX} more`] : [];
  const body = [...reason, [...rows, ...more].join('\n')].join('\n\n');
  return `<details><summary>${escapeReportHtml(who)}: ${escapeReportHtml(word)}</summary>\n\n${body}\n\n</details>`;
}

function batchLandedSection(results: readonly Result[]): string {
  const good = results.filter(isGoodBatchResult);
  if (good.length === 0) return '';
  const rows = good.slice(0, LISTED_MAX).map(({ task, status, cached, changed, ms, cost }) => {
    const how = [status === 'no_change' ? 'nothing to change' : `${changed.length} changed`, cached ? 'cached' : ''];
    const cells = [
      inlineReportCode(task),
      how.filter((word) => word !== '').join(', '),
      cached ? '' : durationText(ms),
      cost === undefined ? '' : dollarsText(cost),
    ];
    return `| ${cells.join(' | ')} |`;
  });
  const more = good.length > LISTED_MAX ? [`\n… and ${good.length - LISTED_MAX} more`] : [];
  const table = ['| task | files | time | cost |', '|---|---|---:|---:|', ...rows, ...more].join('\n');
  return `### Done (${good.length})\n\n<details><summary>the list</summary>\n\n${table}\n\n</details>`;
}

function batchNextSection({ outcome, run, combined }: ReportHead, results: readonly Result[]): string {
  const commands = [
    ...(combined !== undefined && results.some(({ status }) => status === 'landed') ? [`git apply ${combined}`] : []),
    ...(outcome === 'done' || run === undefined ? [] : [`drover resume ${run}`]),
  ];
  return commands.length === 0 ? '' : `### Next\n\n${fencedReportCode(commands.join('\n'))}`;
}

/** Text as inline code on one line, safe inside a table cell. */
function inlineReportCode(text: string): string {
  const plain = textOnOneLine(text, CELL_CHARS_MAX).replaceAll('|', '¦');
  const longest = Math.max(0, ...[...plain.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return longest === 0 ? `${fence}${plain}${fence}` : `${fence} ${plain} ${fence}`;
}

function fencedReportCode(text: string): string {
  const lines = cleanText(text).trimEnd().split('\n');
  const kept =
    lines.length <= REASON_LINES_MAX
      ? lines
      : [`[… ${lines.length - REASON_LINES_MAX} lines …]`, ...lines.slice(-REASON_LINES_MAX)];
  const body = kept.join('\n');
  const longest = Math.max(2, ...[...body.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${body}\n${fence}`;
}

function escapeReportHtml(text: string): string {
  return textOnOneLine(text, CELL_CHARS_MAX).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
