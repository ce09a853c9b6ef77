// All that is known of one task.

import type { TaskProgress } from '@drover/coordinator/view/state';
import { count, dollars, duration } from '../../../words.ts';
import { h } from '../../dom.ts';
import { markdown } from '../markdown/markdown-body.ts';
import { stateWord } from './task-list.ts';

type Fact = readonly [name: string, value: string];

export function factsOf(task: TaskProgress, elapsedMs: number): readonly Fact[] {
  const { usage, startedMs, endedMs, plan, worker, waitMs } = task;
  const { input, cacheRead, cacheWrite, output } = usage;
  const facts: readonly Fact[] = [
    ['State', stateWord(task)],
    ['Task', task.id],
    ['Waits for', plan.dependsOn.join(', ')],
    ['Worker', worker === undefined ? '' : String(worker)],
    ['Attempts', task.attempts === 0 ? '' : String(task.attempts)],
    ['Time', startedMs === undefined ? '' : duration((endedMs ?? elapsedMs) - startedMs)],
    ['Tokens', `${count(input + cacheWrite)} in · ${count(cacheRead)} from the cache · ${count(output)} out`],
    ['Cost', dollars(task.cost)],
    ['Throttled', waitMs === 0 ? '' : duration(waitMs)],
    ['Commit', task.commit?.slice(0, 12) ?? ''],
    ['Branch', task.state === 'landed' ? '' : (task.branch ?? '')],
  ];
  return facts.filter(([, value]) => value !== '');
}

export function taskFacts({ reason, summary, files, plan }: TaskProgress, facts: readonly Fact[]): HTMLElement[] {
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
