// All that is known of one task.

import type { TaskProgress } from '@drover/coordinator/view/state';
import { pageCount, pageDollars, pageDuration } from '../../../words.ts';
import { h } from '../../dom.ts';
import { markdown } from '../markdown/markdown-body.ts';
import { runPartStateWord } from './task-list.ts';

type Fact = readonly [name: string, value: string];

export function runPartFactsOfTask(task: TaskProgress, elapsedMs: number): readonly Fact[] {
  const { usage, startedMs, endedMs, plan, worker, waitMs } = task;
  const { input, cacheRead, cacheWrite, output } = usage;
  const facts: readonly Fact[] = [
    ['State', runPartStateWord(task)],
    ['Task', task.id],
    ['Waits for', plan.dependsOn.join(', ')],
    ['Worker', worker === undefined ? '' : String(worker)],
    ['Attempts', task.attempts === 0 ? '' : String(task.attempts)],
    ['Time', startedMs === undefined ? '' : pageDuration((endedMs ?? elapsedMs) - startedMs)],
    [
      'Tokens',
      `${pageCount(input + cacheWrite)} in · ${pageCount(cacheRead)} from the cache · ${pageCount(output)} out`,
    ],
    ['Cost', pageDollars(task.cost)],
    ['Throttled', waitMs === 0 ? '' : pageDuration(waitMs)],
    ['Commit', task.commit?.slice(0, 12) ?? ''],
    ['Branch', task.state === 'landed' ? '' : (task.branch ?? '')],
  ];
  return facts.filter(([, value]) => value !== '');
}

export function runPartTaskFacts(
  { reason, summary, files, plan }: TaskProgress,
  facts: readonly Fact[],
): HTMLElement[] {
  const rows = facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', { class: 'numbers' }, value)]);
  const paths = files.map((file) => h('li', {}, h('code', {}, file)));
  return [
    ...(reason === undefined ? [] : [h('p', { class: 'problem' }, reason)]),
    ...(summary === undefined ? [] : [markdown(summary)]),
    h('dl', { class: 'facts' }, ...rows),
    ...(paths.length === 0 ? [] : [h('h3', {}, 'Files'), h('ul', { class: 'files' }, ...paths)]),
    h('h3', {}, 'What it was told'),
    markdown(plan.prompt),
  ];
}
