// Opens a plan in the user's editor, and reads what the user made of it.
//
// A mistake reopens the editor with the text as typed; its first line says what is wrong. An editor that fails, or
// that leaves a text with a mistake as it was, ends that: the text is kept and can be opened again.

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import type { PlannedTask } from '@drover/protocol/plan';
import type { PlanRules } from '../../files/plan-file.ts';
import { formatPlanFile } from '../../files/plan-text.ts';
import type { Io } from '../../io.ts';
import { textOnOneLine } from '../../views/text/terminal-text.ts';

const HEAD = '# The plan, as YAML. Save and quit to go back.';
const PROBLEM_COLUMNS = 400;

export type Edit = {
  readonly tasks?: readonly PlannedTask[]; // absent if the edit is invalid
  readonly draft?: string; // the invalid edit, to open next time
  readonly problem?: string;
};

export type PlanDraft = {
  readonly tasks: readonly PlannedTask[];
  readonly draft?: string; // opened instead of the tasks
  readonly rules: PlanRules;
};

export async function editPlanInEditor({ tasks, draft, rules }: PlanDraft, io: Io): Promise<Edit> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-plan-'));
  const path = join(folder, 'plan.yaml');
  try {
    let text = draft ?? (await formatPlanFile({ tasks }));
    let head = HEAD;
    for (;;) {
      await writeFile(path, `${head}\n${text}`);
      const failed = await runPlanEditor(path, io).catch(planDraftProblem);
      // Editors may remove the file. Then the text that was opened counts.
      const typed = withoutPlanHead(await readFile(path, 'utf8').catch(() => text));
      if (failed !== undefined) return { draft: typed, problem: failed };
      const read = await readPlanDraft(typed, rules);
      if (typeof read !== 'string') return { tasks: read };
      if (typed === text && head !== HEAD) return { draft: typed, problem: read };
      text = typed;
      head = `# ${textOnOneLine(read, PROBLEM_COLUMNS)}`;
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The tasks, or what is wrong. Lines count as in the file, which has the head. */
async function readPlanDraft(typed: string, rules: PlanRules): Promise<readonly PlannedTask[] | string> {
  const { parsePlanFile } = await import('../../files/plan-file.ts');
  try {
    return parsePlanFile(`\n${typed}`, 'plan.yaml', rules).tasks;
  } catch (error) {
    return planDraftProblem(error);
  }
}

function planDraftProblem(error: unknown): string {
  if (error instanceof UsageError) return error.message;
  throw error;
}

function withoutPlanHead(text: string): string {
  return text.startsWith('#') ? text.slice(text.indexOf('\n') + 1) : text;
}

async function runPlanEditor(path: string, { env }: Io): Promise<undefined> {
  const editor = [env['VISUAL'], env['EDITOR']].find((each) => each !== undefined && each.trim() !== '') ?? 'vi';
  // Like git, accept an editor command with arguments.
  const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', path], { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new UsageError(`${editor} could not be started: ${error.message}`)));
    child.once('close', (code) => {
      if (code === 0) resolve(undefined);
      else reject(new UsageError(`${editor} ended with ${code}`));
    });
  });
}
