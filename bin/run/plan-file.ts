// A plan in a file: YAML that a person can read and change, and that `drover run --plan` carries out.

import { writeFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import type { Node } from 'yaml';
import { problems } from '@drover/coordinator/plan/graph';
import { UsageError } from '@drover/core/errors';
import { MB, requireOwnFile } from '@drover/core/files/own-file';
import type { PlannedTask, TaskMode } from '@drover/protocol/plan';
import { codeOf } from '../settings.ts';
import { type DocumentReader, readDocument } from '../yaml-document.ts';

// A plan of 1,000 tasks with long prompts is larger than 1 MB.
const PLAN_BYTES_MAX = 16 * MB;
const MODES: readonly TaskMode[] = ['write', 'read'];

export type PlanFile = { readonly goal: string | undefined; readonly tasks: readonly PlannedTask[] };

export type PlanPlace = { readonly path: string; readonly cwd: string; readonly tasksMax: number };

export async function readPlan({ path, cwd, tasksMax }: PlanPlace): Promise<PlanFile> {
  const file = relative(cwd, resolve(cwd, path)) || path;
  const bytes = await requireOwnFile(
    { path: resolve(cwd, path), bytesMax: PLAN_BYTES_MAX },
    ({ problem, fix }) => `--plan: ${file} ${problem}; ${fix}`,
  );
  return readDocument(bytes.toString('utf8'), file, (reader) => planIn(reader, tasksMax));
}

function planIn(reader: DocumentReader, tasksMax: number): PlanFile {
  const root = reader.root;
  const empty = { goal: undefined, tasks: [] };
  if (root === undefined) return reader.fail('the plan is empty; give it tasks') ?? empty;
  const nodes: Node[] = [];
  const plan = reader.record<{ goal: string; tasks: readonly PlannedTask[] }>(root, 'the plan', {
    goal: (node) => reader.text(node),
    tasks: (node) =>
      reader.list(node, (entry) => {
        nodes.push(entry);
        return taskIn(reader, entry);
      }),
  });
  const { goal, tasks } = plan;
  if (tasks === undefined) return reader.mistake(root, 'a plan needs tasks') ?? empty;
  // Only where all could be read are they the tasks that were meant.
  if (tasks.length === nodes.length)
    for (const { at, message } of problems(tasks, { tasksMax, done: new Set() }))
      reader.mistake(nodes[at] ?? root, message);
  return { goal, tasks };
}

function taskIn(reader: DocumentReader, node: Node): PlannedTask | undefined {
  const texts = (entry: Node) => reader.list(entry, (each) => reader.text(each));
  const task = reader.record<Partial<PlannedTask>>(node, 'a task', {
    id: (entry) => reader.text(entry),
    title: (entry) => reader.text(entry),
    prompt: (entry) => reader.text(entry),
    dependsOn: texts,
    files: texts,
    mode: (entry) => reader.oneOf(entry, MODES),
    gates: texts,
  });
  const { id, prompt, title = prompt?.split('\n', 1)[0], dependsOn = [], files = [], mode = 'write', gates } = task;
  if (id === undefined || prompt === undefined || title === undefined)
    return reader.mistake(node, 'a task needs id and prompt');
  return { id, title, prompt, dependsOn, files, mode, ...(gates !== undefined && { gates }) };
}

export async function writePlan(path: string, text: string): Promise<void> {
  await writeFile(path, text).catch((error: unknown) => {
    throw new UsageError(`--out: ${path} cannot be written (${codeOf(error)})`, { cause: error });
  });
}

/** The plan as `readPlan` reads it. */
export async function planText({ goal, tasks }: PlanFile): Promise<string> {
  const { stringify } = await import('yaml');
  const plain = tasks.map(({ id, title, prompt, dependsOn, files, mode, gates = [] }) => ({
    id,
    title,
    prompt,
    ...(dependsOn.length > 0 && { dependsOn }),
    ...(files.length > 0 && { files }),
    ...(mode === 'read' && { mode }),
    ...(gates.length > 0 && { gates }),
  }));
  return stringify({ ...(goal !== undefined && { goal }), tasks: plain }, { lineWidth: 100 });
}
