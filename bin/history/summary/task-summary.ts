// One task of a run for the user: its prompt, its changes, and why it did not land.

import type { DeniedCall } from '@drover/core/permission/denied-calls';
import { taskRowsOfState, type TaskProgress } from '@drover/coordinator/view/state';
import { deniedCallLines } from '../../views/text/call-result.ts';
import { countText, dollarsText, durationText, tokensText } from '../../views/text/figures.ts';
import { taskTextStyle } from '../../views/text/style.ts';
import { cleanText, cutText } from '../../views/text/terminal-text.ts';
import { formatHistoryFacts, historyHeading, type Paper } from '../facts.ts';
import type { KeptRun } from '../run.ts';
import { CUT_SHORT, isTaskInterrupted } from './run-summary.ts';

const GATE_LINES_MAX = 20;
const FILES_LISTED_MAX = 20;

export type TaskSummary = {
  readonly kind: 'task';
  readonly run: string;
  readonly state: TaskProgress['state'] | 'interrupted';
  readonly plan: TaskProgress['plan'];
  readonly row: ReturnType<typeof taskRowsOfState>[number] | undefined;
  readonly denied: readonly DeniedCall[];
  readonly gate?: { readonly command: string; readonly output: string };
};

export function summarizeTask({ id, state, live }: KeptRun, task: TaskProgress): TaskSummary {
  const gate = task.state === 'gate_failed' ? state.failedGate(task.id) : undefined;
  return {
    kind: 'task',
    run: id,
    state: isTaskInterrupted(task, live) ? 'interrupted' : task.state,
    plan: task.plan,
    row: taskRowsOfState(state).find((row) => row.task === task.id),
    denied: state.denied.filter((call) => call.task === task.id),
    ...(gate !== undefined && { gate: { command: gate.command, output: gate.output } }),
  };
}

export function formatTaskSummary(summary: TaskSummary, task: TaskProgress, paper: Paper): string {
  const { plan, gate, row, denied } = summary;
  const looks = summary.state === 'interrupted' ? CUT_SHORT : taskTextStyle(task);
  const took =
    task.startedMs === undefined || task.endedMs === undefined
      ? ''
      : `, ${durationText(task.endedMs - task.startedMs)}`;
  const files = task.files.slice(0, FILES_LISTED_MAX).join(', ');
  const more = task.files.length > FILES_LISTED_MAX ? ` and ${task.files.length - FILES_LISTED_MAX} more` : '';
  const facts = formatHistoryFacts(
    [
      ['task', task.id],
      ['after', plan.dependsOn.join(', ')],
      ['state', `${looks.word}${task.reason === undefined ? '' : `: ${task.reason}`}`, looks],
      ['tries', task.attempts === 0 ? '' : `${countText(task.attempts)}${took}`],
      ['host', task.attempt?.host ?? ''],
      ['files', `${files}${more}`],
      ['commit', task.commit ?? ''],
      ['branch', row?.branch ?? ''],
      ['used', task.attempts === 0 ? '' : tokensText(task.usage).join(', ')],
      ['cost', task.cost === undefined ? '' : dollarsText(task.cost)],
      ['asked', plan.prompt],
      ['said', task.summary ?? ''],
      [
        'denied',
        deniedCallLines(denied.map(({ summary: call, why, times }) => ({ summary: call, why, times }))).join('; '),
      ],
    ],
    paper,
  );
  return historyHeading(plan.title, paper) + facts + (gate === undefined ? '' : taskSummaryGateLines(gate, paper));
}

function taskSummaryGateLines(
  { command, output }: NonNullable<TaskSummary['gate']>,
  { columns, style }: Paper,
): string {
  const lines = cleanText(output).trimEnd().split('\n').slice(-GATE_LINES_MAX);
  const shown = lines.map((line) => `  ${style('dim', `| ${cutText(line.replaceAll('\t', '  '), columns - 4)}`)}\n`);
  return `\n${style('bold', cutText(`The end of ${cleanText(command).replaceAll('\n', ' ')}`, columns))}\n${shown.join('')}`;
}
