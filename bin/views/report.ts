// report: the end of a run for the user: landed tasks, failed tasks with reasons, costs, and the next commands to
// type. A pure function; lines are cut or wrapped to the given width.

import { basename, dirname } from 'node:path';
import { canRunResume } from '@drover/coordinator/run/runs';
import { isUnchangedInView, type RunState, type TaskProgress } from '@drover/coordinator/view/state';
import { isDone, type TaskRow } from '@drover/protocol/run';
import type { Usage } from '@drover/protocol/messages';
import { modelTextLines } from './text/model-lines.ts';
import { deniedCallLines } from './text/call-result.ts';
import { dollarsText, durationText, shortCountText } from './text/figures.ts';
import { looksOf, type Style } from './text/style.ts';
import { textCell, cleanText, cutText, widthOfText } from './text/terminal-text.ts';
import { wrapText } from './text/word-wrap.ts';

const LISTED_MAX = 20;
const RETRIED: ReadonlySet<string> = new Set(['failed', 'gate_failed', 'conflict'] satisfies TaskRow['status'][]);
const ESTIMATED =
  'Partly estimated: a request that was cut off counts with the most that it can have cost, since its provider may charge that.';
const PATCHES_SHOWN_MAX = 5;
const OUTPUT_LINES_MAX = 12;
const NAME_COLUMNS_MAX = 24;
const PROSE_COLUMNS_MAX = 100; // without a terminal, prose still has a width
const SHORT_ID_CHARS = 8;
const COMMIT_CHARS = 8;

export type ReportPaper = { readonly columns: number; readonly style: Style };

type End = NonNullable<RunState['end']>;

/** `later`: by drover show. `for the last time`: the run is removed, so no command can name it. */
export type ReportTime = 'at the end' | 'later' | 'for the last time';

/** Ends with a newline. Empty for a run that has not ended. */
export function runReport(state: RunState, paper: ReportPaper, when: ReportTime = 'at the end'): string {
  const { end } = state;
  if (end === undefined) return '';
  const sections = [
    runReportHeadline(state, end, paper),
    // The answer to a question is its result.
    end.tasks.length === 0 ? reportProse(end.answer ?? '', paper) : [],
    reportLandedSection(state, end, paper),
    reportUnchangedSection(state, end, paper),
    reportMissedSection(state, end, paper),
    reportFilesSection(end, paper),
    reportTestedSection(state, end, paper),
    reportNotIncludedSection(state, paper),
    reportDeniedSection(state, paper),
    reportSandboxSection(state, paper),
    reportModelsSection(state, paper),
    reportCostSection(state, end, paper),
    reportAnswerSection(end, paper),
    ...(when === 'for the last time' ? [] : [reportNextSection({ state, end }, paper, when)]),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

/** The id that the user types. */
export function shortRunId(id: string): string {
  return /^run_[0-9a-f]{32}$/.test(id) ? id.slice('run_'.length, 'run_'.length + SHORT_ID_CHARS) : id;
}

function runReportHeadline(state: RunState, end: End, paper: ReportPaper): readonly string[] {
  const { style, columns } = paper;
  const unchanged = end.tasks.filter((row) => isReportRowUnchanged(state, row)).length;
  const good = end.tasks.filter(({ status }) => isDone(status)).length - unchanged;
  const isWholeRunDone = end.outcome === 'done';
  const word = `${isWholeRunDone ? '✓' : '✗'} ${end.outcome}`;
  const amount =
    end.tasks.length === 0
      ? isWholeRunDone
        ? 'there was nothing to do'
        : 'no task was begun'
      : `${good} of ${end.tasks.length} ${end.tasks.length === 1 ? 'task' : 'tasks'} landed${unchanged === 0 ? '' : `, ${unchanged} had nothing to change`}`;
  const figures = [
    amount,
    durationText(state.elapsedMs(Date.parse(end.at))),
    ...(state.cost === undefined ? [] : [dollarsText(state.cost)]),
  ];
  const reason = isWholeRunDone || end.reason === undefined ? [] : reportProse(end.reason, paper, '  ');
  const goal = textCell(state.settings?.goal ?? '', columns);
  return [
    ...(goal === '' ? [] : [style('bold', goal)]),
    `${style(isWholeRunDone ? 'green' : 'red', word)}  ${style('dim', cutText(figures.join(' · '), columns - word.length - 2))}`,
    ...reason,
  ];
}

function reportLandedSection(state: RunState, end: End, paper: ReportPaper): readonly string[] {
  const rows = end.tasks.filter((row) => isDone(row.status) && !isReportRowUnchanged(state, row));
  return reportSection(`Landed (${rows.length})`, reportTaskLines(rows, paper), paper);
}

function reportUnchangedSection(state: RunState, end: End, paper: ReportPaper): readonly string[] {
  const rows = end.tasks.filter((row) => isReportRowUnchanged(state, row));
  return reportSection(`Nothing to change (${rows.length})`, reportTaskLines(rows, paper), paper);
}

function isReportRowUnchanged({ tasks }: RunState, { task, status }: TaskRow): boolean {
  const plan = tasks.get(task)?.plan;
  return plan !== undefined && isUnchangedInView({ state: status, plan });
}

function reportMissedSection(state: RunState, end: End, paper: ReportPaper): readonly string[] {
  const rows = end.tasks.filter((row) => !isDone(row.status));
  // A reason that many tasks share is printed once.
  const groups = Map.groupBy(rows, ({ task, status, reason }) => `${status} ${reason ?? task}`);
  const lines = [...groups.values()].flatMap((group) => [
    ...reportTaskLines(group, paper, end.tasks),
    ...reportWhyLines(state, group, paper),
  ]);
  return reportSection(`Not landed (${rows.length})`, lines, paper);
}

/** A line for each: its mark, name and title, how many files, what it cost. */
function reportTaskLines(rows: readonly TaskRow[], paper: ReportPaper, alike = rows): readonly string[] {
  const { style, columns } = paper;
  const names = Math.min(
    NAME_COLUMNS_MAX,
    Math.max(...alike.map(({ task }) => widthOfText(textCell(task, NAME_COLUMNS_MAX)))),
  );
  const lines = rows.slice(0, LISTED_MAX).map((row) => {
    const { sign, format, word } = looksOf[row.status];
    const files = row.files.length === 0 ? '' : `${row.files.length} ${row.files.length === 1 ? 'file' : 'files'}`;
    const tries = row.attempts > 1 ? `${row.attempts} attempts` : '';
    const lines = row.lines === undefined ? '' : `+${row.lines.added} −${row.lines.removed}`;
    const figures = [files, lines, tries, ...(row.cost === undefined || row.cost === 0 ? [] : [dollarsText(row.cost)])]
      .filter((text) => text !== '')
      .join(' · ');
    const what = row.status === 'landed' ? row.title : `${word}: ${row.title}`;
    const head = `  ${padReportLine(textCell(row.task, names), names)}  `;
    const room = columns - 2 - head.length - (figures === '' ? 0 : figures.length + 2);
    const title = room < TITLE_COLUMNS_MIN ? textCell(what, columns - 2 - head.length) : textCell(what, room);
    const tail = room < TITLE_COLUMNS_MIN || figures === '' ? '' : `  ${style('dim', figures)}`;
    return `  ${style(format, sign)}${head.slice(1)}${tail === '' || columns === Infinity ? title : padReportLine(title, room)}${tail}`;
  });
  return rows.length > LISTED_MAX ? [...lines, `  … and ${rows.length - LISTED_MAX} more`] : lines;
}

const TITLE_COLUMNS_MIN = 10;

/** Tasks with the same reason: the reason, the end of the output, and the place of their work. */
function reportWhyLines(state: RunState, rows: readonly TaskRow[], paper: ReportPaper): readonly string[] {
  const [row] = rows;
  if (row === undefined) return [];
  const [said = '', ...printed] = (row.reason ?? '').trimEnd().split('\n');
  const gate = row.status === 'gate_failed' && printed.length === 0 ? state.failedGate(row.task) : undefined;
  const output = gate === undefined ? printed : cleanText(gate.output).trimEnd().split('\n');
  const room = paper.columns - INDENT.length - 2;
  return [
    // The reason for the end is printed above.
    ...(row.reason === state.end?.reason ? [] : reportProse(said, paper, INDENT)),
    ...(gate === undefined
      ? []
      : [`${INDENT}${textCell(`the end of ${gate.command}:`, paper.columns - INDENT.length)}`]),
    ...output
      .slice(-OUTPUT_LINES_MAX)
      .map((line) => `${INDENT}${paper.style('dim', `| ${cutText(cleanText(line).replaceAll('\t', '  '), room)}`)}`),
    ...reportKeptLines(rows, paper),
  ];
}

function reportKeptLines(rows: readonly TaskRow[], { columns }: ReportPaper): readonly string[] {
  const branches = rows.flatMap(({ branch }) => (branch === undefined ? [] : [branch]));
  const [first] = branches;
  if (first === undefined) return [];
  const words =
    branches.length === 1
      ? `its work is kept on ${first}`
      : `their work is kept on ${branches.length} branches like ${first}`;
  return [`${INDENT}${textCell(words, columns - INDENT.length)}`];
}

const INDENT = '      ';

function reportFilesSection(end: End, paper: ReportPaper): readonly string[] {
  const files = [...new Set(end.tasks.filter(({ status }) => isDone(status)).flatMap((row) => row.files))].sort();
  return reportSection(`Files changed (${files.length})`, reportList(files, paper), paper);
}

/** After the facts: the model may be wrong about what happened. */
function reportAnswerSection({ answer = '', tasks }: End, paper: ReportPaper): readonly string[] {
  return tasks.length === 0
    ? []
    : reportSection('In the words of the coordinator', reportProse(answer, paper, '  '), paper);
}

/** The gates that the result has passed, or that no gate judged it. */
function reportTestedSection({ settings, tasks }: RunState, end: End, paper: ReportPaper): readonly string[] {
  if (!end.tasks.some(({ status }) => status === 'landed')) return [];
  const gates = settings?.gates ?? [];
  const hasOwn = [...tasks.values()].some(({ plan }) => (plan.gates?.length ?? 0) > 0);
  if (gates.length === 0 && !hasOwn)
    return reportProse('Not tested: no gate was given. --gate "npm test" tests what lands.', paper);
  const isPassed = gates.length > 0 && end.failure?.kind !== 'gate.failed' && settings?.allowRedBase !== true;
  return isPassed ? reportProse(`Tested: what landed passes ${gates.join('; ')}`, paper) : [];
}

function reportNotIncludedSection({ settings }: RunState, paper: ReportPaper): readonly string[] {
  const files = settings?.notIncluded ?? [];
  const title = `Not included: your uncommitted changes (${files.length})`;
  return reportSection(title, reportList(files, paper), paper);
}

function reportDeniedSection({ denied }: RunState, paper: ReportPaper): readonly string[] {
  const times = denied.reduce((sum, call) => sum + call.times, 0);
  const lines = deniedCallLines(denied).flatMap((line) => reportProse(line, paper, '  '));
  return reportSection(`Not allowed (${times})`, lines, paper);
}

/** How commands were contained, and what they did not get. */
function reportSandboxSection({ settings, blockedHosts }: RunState, paper: ReportPaper): readonly string[] {
  const use = settings?.sandbox;
  if (use === undefined) return [];
  const blocked = [...blockedHosts].map(([host, times]) => `${host}${times > 1 ? ` (${times} times)` : ''}`);
  const lines = [
    ...(use.net.length === 0 ? [] : [`hosts allowed: ${use.net.join(', ')}`]),
    ...(use.writable.length === 0 ? [] : [`writable besides the workspace: ${use.writable.join(', ')}`]),
    ...(blocked.length === 0 ? [] : [`hosts refused: ${blocked.join(', ')}; allow one with --net HOST`]),
  ];
  const title = paper.style('bold', cutText(`Sandbox: ${SANDBOX_WORDS[use.used]}`, paper.columns));
  return [title, ...lines.flatMap((line) => reportProse(line, paper, '  '))];
}

const SANDBOX_WORDS = {
  bubblewrap: 'bubblewrap',
  seatbelt: 'seatbelt (experimental)',
  none: 'none to be had; commands ran in the open, with approval',
  off: 'off; commands ran in the open',
} as const;

function reportModelsSection(state: RunState, paper: ReportPaper): readonly string[] {
  return reportSection(
    'Models',
    modelTextLines(state).flatMap((line) => reportProse(line, paper, '  ')),
    paper,
  );
}

/** Tokens by agent, and the share read from the cache. */
function reportCostSection(state: RunState, end: End, paper: ReportPaper): readonly string[] {
  if (reportPromptTokens(end.usage) + end.usage.output === 0) return [];
  const { coordinator, tasks } = state;
  const workers = [...tasks.values()].filter(({ attempts }) => attempts > 0);
  const isUsed = ({ usage }: { readonly usage: Usage }): boolean => reportPromptTokens(usage) + usage.output > 0;
  const agents = [
    { name: 'coordinator', usage: coordinator.usage, cost: coordinator.cost },
    // A list of a thousand rows would help no reader.
    ...(workers.length > LISTED_MAX
      ? []
      : workers.map((task) => ({ name: reportTaskName(task), usage: task.usage, cost: task.cost }))),
  ].filter(isUsed);
  const rows = [...agents, { name: 'together', usage: end.usage, cost: state.cost }];
  const cells = rows.map(({ name, usage, cost }) => [
    textCell(name, NAME_COLUMNS_MAX),
    `${shortCountText(reportPromptTokens(usage))} in`,
    `${reportCacheShare(usage)} cached`,
    `${shortCountText(usage.output)} out`,
    cost === undefined ? '' : dollarsText(cost),
  ]);
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...cells.map((row) => widthOfText(row[column] ?? ''))));
  const lines = cells.map((row) =>
    cutText(
      `  ${row.map((cell, column) => alignReportLine(cell, widths[column] ?? 0, column)).join('  ')}`.trimEnd(),
      paper.columns,
    ),
  );
  const words = end.usage.estimated === true ? reportProse(ESTIMATED, paper, '  ') : [];
  return reportSection('Tokens', [...lines, ...words], paper);
}

function reportTaskName({ id, worker }: TaskProgress): string {
  return worker === undefined ? id : `${id} (worker ${worker})`;
}

function reportResumeSentence({ failure }: End): string {
  switch (failure?.kind) {
    case 'checkout.changed':
      return 'deliver it, once your checkout is as you want it';
    case 'plan.declined':
      return 'look at the plan again';
    case 'base.failed':
      return 'test the gates again, on the same commit';
    default:
      return 'go on with what is not done';
  }
}

type EndedRun = { readonly state: RunState; readonly end: End };

function reportNextSection({ state, end }: EndedRun, paper: ReportPaper, when: string): readonly string[] {
  const { delivered } = end;
  const handedOver = reportDeliveredLines(end, paper);
  const short = shortRunId(state.id);
  const hasLanded = end.tasks.some(({ status }) => status === 'landed');
  const canRetry = end.tasks.some(({ status }) => RETRIED.has(status));
  const commands = [
    ...(hasLanded ? [[`drover diff ${short}`, 'look at the changes']] : []),
    ...(delivered?.next === undefined ? [] : [[delivered.next, 'take it over']]),
    ...(canRetry ? [[`drover retry ${short}`, 'try again what failed']] : []),
    when === 'later' ? [`drover logs ${short}`, 'see what happened'] : [`drover show ${short}`, 'look at it again'],
    ...(canRunResume(state) ? [[`drover resume ${short}`, reportResumeSentence(end)]] : []),
  ].map(([command = '', about = '']) => [cleanText(command).replaceAll('\n', ' '), about] as const);
  const width = Math.max(...commands.map(([command]) => widthOfText(command)));
  const lines = commands.flatMap(([command, about]) => {
    const fits = 2 + width + 2 + about.length <= paper.columns;
    // A command is never cut: it is there to be typed.
    return [
      `  ${paper.style('cyan', command)}${fits ? `${' '.repeat(width - widthOfText(command))}  ${paper.style('dim', about)}` : ''}`,
    ];
  });
  return [...handedOver, ...(handedOver.length === 0 ? [] : ['']), ...reportSection('Next', lines, paper)];
}

/** How the user got the result. */
export function reportDeliveredLines(
  { delivered, tasks }: Pick<End, 'delivered' | 'tasks'>,
  paper: ReportPaper,
): readonly string[] {
  if (delivered === undefined) return [];
  const { deliver, branch, patches = [], commit, instead } = delivered;
  const at = commit.slice(0, COMMIT_CHARS);
  // For an answered question no branch is expected.
  const isEmpty = tasks.length === 0;
  if (!isEmpty && deliver !== 'patch' && tasks.every(({ status }) => status === 'done')) return [];
  const hasLanded =
    deliver === 'branch' ? branch !== undefined : isEmpty || tasks.some(({ status }) => status === 'landed');
  const what = {
    branch: hasLanded
      ? `What landed is on branch ${branch ?? '?'} (${at}).`
      : 'Nothing has landed, so there is no branch to take over.',
    merge: hasLanded
      ? `What landed is merged into ${branch ?? 'your branch'} (${at}).`
      : `Nothing has landed, so there is nothing to merge into ${branch ?? 'your branch'}.`,
    patch: reportPatchWords(patches),
  }[deliver];
  return [
    ...(instead === undefined ? [] : reportProse(instead, paper)),
    ...reportProse(what, paper),
    ...(deliver === 'patch' && patches.length <= PATCHES_SHOWN_MAX ? reportList(patches, paper) : []),
  ];
}

// The last of them holds all the others.
function reportPatchWords(patches: readonly string[]): string {
  if (patches.length === 0) return 'Nothing has landed, so there is no patch.';
  const all = basename(patches.at(-1) ?? '');
  const each = patches.length - 1;
  if (patches.length > PATCHES_SHOWN_MAX)
    return `What landed is in ${all}, and as ${each} patches of a task each beside it, in ${dirname(patches[0] ?? '')}.`;
  if (each === 0) return 'What landed is in a patch:';
  return `What landed is in ${each === 1 ? 'a patch' : `${each} patches, one a task`}, and all of it in ${all}:`;
}

function reportSection(title: string, lines: readonly string[], { style }: ReportPaper): readonly string[] {
  return lines.length === 0 ? [] : [style('bold', title), ...lines];
}

function reportList(items: readonly string[], { columns }: ReportPaper): readonly string[] {
  const lines = items.slice(0, LISTED_MAX).map((item) => `  ${textCell(item, columns - 2)}`);
  return items.length > LISTED_MAX ? [...lines, `  … and ${items.length - LISTED_MAX} more`] : lines;
}

function reportProse(text: string, { columns }: ReportPaper, indent = ''): readonly string[] {
  const plain = cleanText(text).replaceAll('\t', '  ').trim();
  if (plain === '') return [];
  const lines = wrapText(plain, Math.min(columns, PROSE_COLUMNS_MAX) - indent.length).split('\n');
  return lines.map((line) => `${indent}${line}`.trimEnd());
}

function reportPromptTokens({ input, cacheRead, cacheWrite }: Usage): number {
  return input + cacheRead + cacheWrite;
}

function reportCacheShare(usage: Usage): string {
  const prompt = reportPromptTokens(usage);
  return prompt === 0 ? '0 %' : `${Math.floor((usage.cacheRead / prompt) * 100)} %`;
}

function alignReportLine(text: string, columns: number, column: number): string {
  const space = ' '.repeat(Math.max(0, columns - widthOfText(text)));
  return column === 0 ? text + space : space + text;
}

function padReportLine(text: string, columns: number): string {
  return alignReportLine(text, columns, 0);
}
