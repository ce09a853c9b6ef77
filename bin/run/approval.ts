// Shows a plan to the person at the terminal before anything is spent on it. Without one, or with --yes,
// it is carried out as it is.

import type { PlannedTask } from '@drover/core/task/task';
import type { Person } from '../execution/person.ts';
import { type Io, print } from '../io.ts';
import { oneLine } from '../views/terminal-text.ts';
import { columnsOf } from '../views/terminal-text.ts';

export type Approve = (tasks: readonly PlannedTask[], signal: AbortSignal) => Promise<boolean>;

type Before = { readonly person: Person | undefined; readonly io: Io };

export function approval({ yes }: { readonly yes: boolean }, { person, io }: Before): Approve {
  if (yes || person === undefined) return async () => true;
  return async (tasks, signal) => {
    await print(io.stderr, planLines(tasks, columnsOf(io.stderr)));
    return person.agrees(`  Carry out this plan? `, signal);
  };
}

export function planLines(tasks: readonly PlannedTask[], columns: number): string {
  return tasks
    .map(({ id, title, dependsOn, mode }) => {
      const after = dependsOn.length === 0 ? '' : ` (after ${dependsOn.join(', ')})`;
      return `${oneLine(`  ${id}: ${title}${mode === 'read' ? ' [reads only]' : ''}${after}`, columns)}\n`;
    })
    .join('');
}
