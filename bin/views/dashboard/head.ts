// The line of figures about the whole run: tasks that landed, money, time.

import { isUnchanged, type RunState, type TaskState } from '@drover/coordinator/view/state';
import { isDone } from '@drover/protocol/run';
import { dollars, shortCount, shortDuration, tokensOf } from '../text/figures.ts';
import { cut, widthOfText } from '../text/terminal-text.ts';
import type { Canvas } from './frame.ts';

const FAILED: ReadonlySet<TaskState> = new Set(['failed', 'conflict', 'gate_failed']);

/** As many figures as fit, the most important first; in fewer words where there is little room. */
export function figuresLine(state: RunState, { columns, now }: Pick<Canvas, 'columns' | 'now'>): string {
  const eta = state.etaMs(now);
  const time = [
    ...(state.isPaused ? ['paused'] : []),
    shortDuration(state.elapsedMs(now)),
    ...(eta === undefined || eta < 1_000 ? [] : [`about ${shortDuration(eta)} left`]),
  ];
  const all = state.cap !== undefined && 'tokens' in state.cap ? [] : [`${shortCount(tokensOf(state.usage))} tokens`];
  const long = [countWords(state, ' of '), ...spentWords(state, ' of '), ...time];
  const short = [countWords(state, '/'), ...spentWords(state, '/'), ...time];
  const figures = widthOfText(long.join(DOT)) <= columns ? [...long, ...all] : short;
  while (figures.length > 1 && widthOfText(figures.join(DOT)) > columns) figures.pop();
  return cut(figures.join(DOT), columns);
}

const DOT = ' · ';

function countWords(state: RunState, of: string): string {
  const tasks = [...state.tasks.values()];
  if (tasks.length === 0) return emptyWords(state.end?.outcome);
  const unchanged = tasks.filter(isUnchanged).length;
  const good = tasks.filter(({ state: each }) => isDone(each)).length - unchanged;
  const cancelled = tasks.filter(({ state: each }) => each === 'cancelled').length;
  const failed = tasks.filter(({ state: each }) => FAILED.has(each)).length;
  const word = tasks.some(({ plan }) => plan.mode === 'write') ? 'landed' : 'done';
  const others = `${unchanged === 0 ? '' : `, ${unchanged} without a change`}${failed === 0 ? '' : `, ${failed} failed`}${cancelled === 0 ? '' : `, ${cancelled} cancelled`}`;
  return `${good}${of}${tasks.length} ${word}${others}`;
}

function emptyWords(outcome: NonNullable<RunState['end']>['outcome'] | undefined): string {
  if (outcome === undefined) return 'planning';
  return outcome === 'done' ? 'nothing to do' : 'no task was begun';
}

/** Spent of the budget; without a price, tokens only. */
function spentWords({ cap, cost, spent }: RunState, of: string): readonly string[] {
  if (cap === undefined) return cost === undefined ? [] : [dollars(cost)];
  if ('usd' in cap) return [`${spent === 0 ? '$0' : dollars(spent)}${of}${dollars(cap.usd)}`];
  return [`${shortCount(spent)}${of}${shortCount(cap.tokens)} tokens`];
}
