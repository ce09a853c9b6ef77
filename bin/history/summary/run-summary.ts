// The state or the end of a run: all of `drover show --json`, and for the user the parts that the report lacks for a
// run that has not ended.

import { doesRunAwaitApproval, canRunResume } from '@drover/coordinator/run/runs';
import type { DeniedCall } from '@drover/core/permission/denied-calls';
import { isUnchangedInView, taskRowsOfState, type TaskProgress } from '@drover/coordinator/view/state';
import type { Usage } from '@drover/protocol/messages';
import { type Delivered, type RunSettings, type TaskRow, isDone } from '@drover/protocol/run';
import { deniedCallLines } from '../../views/text/call-result.ts';
import { agoText, countText, dollarsText, durationText, momentText, tokensText } from '../../views/text/figures.ts';
import { taskTextStyle } from '../../views/text/style.ts';
import { textCell, widthOfText } from '../../views/text/terminal-text.ts';
import { formatHistoryFacts, historyHeading, type Paper } from '../facts.ts';
import type { KeptRun } from '../run.ts';
import { looksOf, type State } from '../state.ts';

const AWAITS = 'the plan waits for your approval';
const NAME_COLUMNS_MAX = 24;
const TITLE_COLUMNS_MIN = 10;
const TASKS_LISTED_MAX = 60;

export type RunSummary = {
  readonly kind: 'run';
  readonly id: string;
  readonly state: State;
  readonly live: boolean;
  readonly canGoOn: boolean;
  readonly awaitsApproval: boolean; // a plan was submitted, and its question is open
  readonly reason?: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly activeMs: number; // time worked so far
  readonly settings?: RunSettings; // absent before the first plan
  /** The current state of each task; an unfinished one counts as cancelled, with the reason. */
  readonly tasks: readonly (TaskRow & { readonly doing?: string })[];
  readonly denied: readonly DeniedCall[]; // denied calls
  readonly usage: Usage;
  readonly cost?: number; // US dollars; absent if the price is unknown
  readonly exitCode?: number; // absent while the run is open
  readonly delivered?: Delivered;
  readonly answer?: string;
};

export function summarizeRun({ id, past, state, live, failure, problem }: KeptRun): RunSummary {
  const { end, cost } = state;
  const reason = problem ?? end?.reason;
  return {
    kind: 'run',
    id,
    state: live ? 'live' : runSummaryState(failure?.kind, end?.outcome, past !== undefined),
    live,
    canGoOn: past !== undefined && failure === undefined && canRunResume(state),
    awaitsApproval: !live && past !== undefined && doesRunAwaitApproval(past),
    ...(reason !== undefined && { reason }),
    startedAt: past?.startedAt ?? '',
    updatedAt: past?.records.at(-1)?.at ?? '',
    activeMs: past?.activeMs ?? 0,
    ...(past !== undefined && { settings: past.settings }),
    tasks: taskRowsOfState(state).map((row) => ({ ...row, ...taskActivityField(state.tasks.get(row.task)) })),
    denied: state.denied,
    usage: state.usage,
    ...(cost !== undefined && { cost }),
    ...(end !== undefined && { exitCode: end.exitCode }),
    ...(end?.delivered !== undefined && { delivered: end.delivered }),
    ...(end?.answer !== undefined && { answer: end.answer }),
  };
}

function runSummaryState(
  problem: 'journal.damaged' | 'journal.newer' | undefined,
  outcome: State | undefined,
  hasBegun: boolean,
): State {
  if (problem !== undefined) return problem === 'journal.newer' ? 'newer' : 'damaged';
  return hasBegun ? (outcome ?? 'open') : 'empty';
}

function taskActivityField(task: TaskProgress | undefined): { readonly doing?: string } {
  return task === undefined || task.endedMs !== undefined ? {} : { doing: describeTaskActivity(task) };
}

function describeTaskActivity({ state, doing: what }: TaskProgress): string {
  return what === '' ? state : `${state}: ${what}`;
}

/** The state of an unfinished run: the known facts, and its plan with the state of each task. */
export function formatRunSummary(summary: RunSummary, { state: run }: KeptRun, paper: Paper): string {
  const { id, state, reason, startedAt, updatedAt, activeMs, settings, tasks, usage, cost } = summary;
  const looks = looksOf[state];
  const unchanged = run.tasks.values().filter(isUnchangedInView).toArray().length;
  const landed = tasks.filter(({ status }) => isDone(status)).length - unchanged;
  const same = unchanged === 0 ? '' : `, ${countText(unchanged)} had nothing to change`;
  const begun = `${momentText(startedAt)}, last heard of ${agoText(updatedAt, Date.now())}`;
  const lines = formatHistoryFacts(
    [
      ['run', id],
      ['model', settings?.model ?? ''],
      ['folder', settings?.repository ?? ''],
      ['begun', startedAt === '' ? '' : `${begun}; at work for ${durationText(activeMs)}`],
      ['state', `${looks.word}${reason === undefined || isRunStateShown(state) ? '' : `: ${reason}`}`, looks],
      [
        'tasks',
        tasks.length === 0
          ? summary.awaitsApproval
            ? AWAITS
            : 'there is no plan yet'
          : `${countText(landed)} of ${countText(tasks.length)} landed${same}`,
      ],
      ['denied', deniedCallLines(summary.denied).join('; ')],
      ['used', tokensText(usage).join(', ')],
      ['cost', cost === undefined ? '' : dollarsText(cost)],
    ],
    paper,
  );
  const plan = runSummaryPlanLines([...run.tasks.values()], paper, state === 'live');
  return historyHeading(settings?.goal ?? '', paper) + lines + (plan === '' ? '' : `\n${plan}`);
}

/** Damage of a journal is printed last, where the user sees it. */
function isRunStateShown(state: State): boolean {
  return state === 'damaged' || state === 'newer';
}

/** One line per task: mark, name, title, state. */
function runSummaryPlanLines(tasks: readonly TaskProgress[], { columns, style }: Paper, isLive: boolean): string {
  const names = Math.max(0, ...tasks.map(({ id }) => widthOfText(textCell(id, NAME_COLUMNS_MAX))));
  const looks = tasks.map((task) => (isTaskInterrupted(task, isLive) ? CUT_SHORT : taskTextStyle(task)));
  const words = Math.max(0, ...looks.map(({ word }) => word.length));
  const room = columns - 4 - names - 2 - words - 2;
  const isNarrow = room < TITLE_COLUMNS_MIN;
  const lines = tasks.slice(0, TASKS_LISTED_MAX).map((task, at) => {
    const { sign, format, word } = looks[at] ?? CUT_SHORT;
    const name = textCell(task.id, names);
    const title = textCell(task.plan.title, isNarrow ? columns - 6 - names : room);
    const head = `  ${style(format, sign)} ${name}${' '.repeat(names - widthOfText(name))}  `;
    return isNarrow ? `${head}${title}\n` : `${head}${style(format, word.padEnd(words))}  ${title}\n`;
  });
  const left = tasks.length - TASKS_LISTED_MAX;
  return lines.join('') + (left > 0 ? `  … and ${countText(left)} more\n` : '');
}

/** The attempt began, but no process works on it. */
export function isTaskInterrupted({ endedMs, isOpen }: TaskProgress, isLive: boolean): boolean {
  return !isLive && endedMs === undefined && isOpen;
}

export const CUT_SHORT = { sign: '◐', format: 'yellow', word: 'interrupted' } as const;
