// Asks the user at the terminal to approve a plan before any of it runs. The user may edit the plan.
//
// An invalid edit is kept and can be edited again. Without a terminal, or with --yes, the plan runs as it is.

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApprovePlan } from '@drover/coordinator/plan/approval';
import { UsageError } from '@drover/core/errors';
import type { PlannedTask } from '@drover/protocol/plan';
import type { Person } from '../../terminal/person.ts';
import type { PlanRules } from '../../files/plan-file.ts';
import { planText } from '../../files/plan-text.ts';
import { complain, type Io, print } from '../../io.ts';
import { columnsOf, oneLine } from '../../views/text/terminal-text.ts';

type Wishes = PlanRules & { readonly yes: boolean };
type Before = { readonly person: Person | undefined; readonly io: Io };

const ANSWERS = new Map(
  (['yes', 'no', 'edit'] as const).flatMap((word) => [[word, word] as const, [word[0] ?? '', word] as const]),
);

/** Undefined if plans run as they are. */
export function approval({ yes, ...rules }: Wishes, { person, io }: Before): ApprovePlan | undefined {
  if (yes || person === undefined) return undefined;
  return async (proposal, signal) => {
    let { tasks } = proposal;
    let draft: string | undefined; // an edit that is not valid
    for (;;) {
      const note = draft === undefined ? '' : KEPT_NOTE;
      await print(io.stderr, `\n${planLines(tasks, columnsOf(io.stderr))}${note}`);
      const answer = await person.choose('  Carry out this plan? [y]es [n]o [e]dit: ', ANSWERS, signal);
      if (answer === 'yes') return { tasks };
      if (answer !== 'edit') return undefined;
      const edit = await edited(draft ?? (await planText({ tasks })), rules, io);
      if (edit.problem !== undefined) await complain(io, edit.problem);
      tasks = edit.tasks ?? tasks;
      draft = edit.draft;
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

const KEPT_NOTE = '  Your edit is kept: [e]dit opens it again, [y]es takes the plan above.\n';

type Edit = {
  readonly tasks?: readonly PlannedTask[]; // absent if the edit is invalid
  readonly draft?: string; // the invalid edit, to open next time
  readonly problem?: string;
};

/** Opens the plan in the user's editor, and reads the result. */
async function edited(text: string, rules: PlanRules, io: Io): Promise<Edit> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-plan-'));
  const path = join(folder, 'plan.yaml');
  try {
    await writeFile(path, text);
    await runEditor(path, io);
    const { readPlan } = await import('../../files/plan-file.ts');
    return { tasks: (await readPlan({ path, cwd: folder, ...rules })).tasks };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    // Editors may remove the file. Then fall back to the text that was opened.
    const draft = await readFile(path, 'utf8').catch(() => text);
    return { draft, problem: error.message };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function runEditor(path: string, { env }: Io): Promise<void> {
  const editor = [env['VISUAL'], env['EDITOR']].find((each) => each !== undefined && each.trim() !== '') ?? 'vi';
  // Like git, accept an editor command with arguments.
  const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', path], { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new UsageError(`${editor} could not be started: ${error.message}`)));
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new UsageError(`${editor} ended with ${code}`));
    });
  });
}
