// Shows a plan to the person at the terminal before anything is spent on it; they may change it in their
// editor. Without a person, or with --yes, it is carried out as it is.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@drover/core/failure';
import type { PlannedTask } from '@drover/core/task/task';
import type { Person } from '../execution/person.ts';
import { complain, type Io, print } from '../io.ts';
import { columnsOf, oneLine } from '../views/terminal-text.ts';
import { planText, readPlan, writePlan } from './plan-file.ts';

export type Approve = (
  tasks: readonly PlannedTask[],
  signal: AbortSignal,
) => Promise<readonly PlannedTask[] | undefined>;

type Wishes = { readonly yes: boolean; readonly tasksMax: number };
type Before = { readonly person: Person | undefined; readonly io: Io };

const ANSWERS = new Map(
  (['yes', 'no', 'edit'] as const).flatMap((word) => [[word, word] as const, [word[0] ?? '', word] as const]),
);

export function approval({ yes, tasksMax }: Wishes, { person, io }: Before): Approve {
  if (yes || person === undefined) return async (tasks) => tasks;
  return async (submitted, signal) => {
    for (let tasks = submitted; ;) {
      await print(io.stderr, `\n${planLines(tasks, columnsOf(io.stderr))}`);
      const answer = await person.choose('  Carry out this plan? [y]es [n]o [e]dit: ', ANSWERS, signal);
      if (answer === 'yes') return tasks;
      if (answer !== 'edit') return undefined;
      tasks = await edited(tasks, tasksMax, io).catch(async (error: unknown) => {
        if (!(error instanceof UsageError)) throw error;
        await complain(io, error.message);
        return tasks;
      });
    }
  };
}

export function planLines(tasks: readonly PlannedTask[], columns: number): string {
  return tasks
    .map(({ id, title, dependsOn, mode }) => {
      const after = dependsOn.length === 0 ? '' : ` (after ${dependsOn.join(', ')})`;
      const words = `${id}: ${title}${mode === 'read' ? ' [reads only]' : ''}${after}`;
      return `  ${oneLine(words, columns - 2)}\n`;
    })
    .join('');
}

async function edited(tasks: readonly PlannedTask[], tasksMax: number, io: Io): Promise<readonly PlannedTask[]> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-plan-'));
  try {
    const path = join(folder, 'plan.yaml');
    await writePlan(path, await planText({ goal: undefined, tasks }));
    await runEditor(path, io);
    return (await readPlan({ path, cwd: folder, tasksMax })).tasks;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function runEditor(path: string, { env }: Io): Promise<void> {
  const editor = env['VISUAL'] ?? env['EDITOR'] ?? 'vi';
  // As git does it: the editor may be a command with arguments.
  const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', path], { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new UsageError(`${editor} could not be started: ${error.message}`)));
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new UsageError(`${editor} ended with ${code}; the plan is as it was`));
    });
  });
}
