// The line of figures about the whole run: tasks that landed, money, time.

import { isUnchangedInView, type RunState, type TaskState } from '@drover/coordinator/view/state';
import { isDone } from '@drover/protocol/run';
import { dollarsText, shortCountText, shortDurationText, totalTokens } from '../text/figures.ts';
import { cutText, widthOfText } from '../text/terminal-text.ts';
import type { Canvas } from './frame.ts';

const FAILED: ReadonlySet<TaskState> = new Set(['failed', 'conflict', 'gate_failed']);

/** As many figures as fit, the most important first; in fewer words in narrow places. */
export function dashboardFiguresLine(state: RunState, { columns, now }: Pick<Canvas, 'columns' | 'now'>): string {
  const eta = state.etaMs(now);
  const time = [
    ...(state.isPaused ? ['paused'] : []),
    shortDurationText(state.elapsedMs(now)),
    ...(eta === undefined || eta < 1_000 ? [] : [`about ${shortDurationText(eta)} left`]),
  ];
  const all =
    state.cap !== undefined && 'tokens' in state.cap ? [] : [`${shortCountText(totalTokens(state.usage))} tokens`];
  const long = [dashboardCountWords(state, ' of '), ...dashboardSpentWords(state, ' of '), ...time];
  const short = [dashboardCountWords(state, '/'), ...dashboardSpentWords(state, '/'), ...time];
  const figures = widthOfText(long.join(DOT)) <= columns ? [...long, ...all] : short;
  while (figures.length > 1 && widthOfText(figures.join(DOT)) > columns) figures.pop();
  return cutText(figures.join(DOT), columns);
}

const DOT = ' · ';

function dashboardCountWords(state: RunState, of: string): string {
  const tasks = [...state.tasks.values()];
  if (tasks.length === 0) return dashboardEmptyWords(state.end?.outcome);
  const unchanged = tasks.filter(isUnchangedInView).length;
  const good = tasks.filter(({ state: each }) => isDone(each)).length - unchanged;
  const cancelled = tasks.filter(({ state: each }) => each === 'cancelled').length;
  const failed = tasks.filter(({ state: each }) => FAILED.has(each)).length;
  const word = tasks.some(({ plan }) => plan.mode === 'write') ? 'landed' : 'done';
  const others = `${unchanged === 0 ? '' : `, ${unchanged} without a change`}${failed === 0 ? '' : `, ${failed} failed`}${cancelled === 0 ? '' : `, ${cancelled} cancelled`}`;
  return `${good}${of}${tasks.length} ${word}${others}`;
}

function dashboardEmptyWords(outcome: NonNullable<RunState['end']>['outcome'] | undefined): string {
  if (outcome === undefined) return 'planning';
  return outcome === 'done' ? 'nothing to do' : 'no task was begun';
}

/** Spent of the budget; without a price, tokens only. */
function dashboardSpentWords({ cap, cost, spent }: RunState, of: string): readonly string[] {
  if (cap === undefined) return cost === undefined ? [] : [dollarsText(cost)];
  if ('usd' in cap) return [`${spent === 0 ? '$0' : dollarsText(spent)}${of}${dollarsText(cap.usd)}`];
  return [`${shortCountText(spent)}${of}${shortCountText(cap.tokens)} tokens`];
}
