// The names and states of lanes on the timeline, and the legend of its colours.

import { isProgressEnded } from '@drover/coordinator/view/progress';
import type { TaskState } from '@drover/coordinator/view/state';
import type { Lane } from '../../../timeline.ts';
import { h } from '../../dom.ts';
import type { Tone } from './timeline-canvas.ts';

export function timelineLaneName({ worker }: Lane): string {
  return worker < 0 ? 'Merge train' : worker === 0 ? 'Coordinator' : `Worker ${worker}`;
}

/** An agent without a task is named by its last action. */
export function timelineLaneState(lane: Lane): string {
  const last = lane.bars.at(-1);
  if (last === undefined || last.toMs !== undefined) return 'idle';
  return { step: 'thinking', call: 'running', wait: 'throttled', merge: 'merging', gate: 'gate' }[last.kind];
}

/** The colour of a task's band. */
export function timelineTone(state: TaskState | undefined): Tone {
  if (state === 'landed' || state === 'done') return 'good';
  if (state === 'asking' || state === 'throttled') return 'held';
  if (state === undefined || !isProgressEnded(state) || state === 'skipped' || state === 'cancelled') return 'plain';
  return 'bad';
}

export function timelineLegend(): HTMLElement {
  const kinds = [
    ['asked', 'asks the model'],
    ['step', 'answer'],
    ['call', 'tool'],
    ['wait', 'has to wait'],
    ['merge', 'merge'],
    ['gate', 'gate'],
    ['bad', 'failed'],
  ];
  const items = kinds.map(([kind = '', word]) => h('li', {}, h('i', { is: { 'data-kind': kind } }), word));
  return h('ul', { class: 'legend', is: { 'aria-label': 'What the colours mean' } }, ...items);
}
