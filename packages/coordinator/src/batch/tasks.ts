// Groups become tasks: with an id, a title, a prompt and gates of their own. Pure.
//
// An id depends on the group's name alone, so a task has the same id in every run, on every machine and in every shard.
// Names that would give the same id get a part of their digest appended.

import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { PlannedTask } from '@drover/protocol/plan';
import type { Group } from './items/group.ts';
import type { BatchSpec, SpecProblem } from './items/spec.ts';
import { filledTemplate, filledForShell, missingTemplateNames, type TemplateValues } from './template.ts';

const ID_CHARS_MAX = 60;
const DIGEST_CHARS = 8;
const PROBLEMS_MAX = 20;

export type BatchTask = PlannedTask & { readonly gates: readonly string[]; readonly group: string };

export type Made = { readonly tasks: readonly BatchTask[]; readonly problems: readonly SpecProblem[] };

export function makeBatchTasks(spec: BatchSpec, groups: readonly Group[], repository: string): Made {
  const values = groups.map((group) => batchTemplateValues(group, spec, repository));
  const missing = values.flatMap((each) => missingBatchVariables(spec, each));
  if (missing.length > 0) return { tasks: [], problems: missing.slice(0, PROBLEMS_MAX) };
  const given = groups.map((group, at) => givenBatchTaskId(group, spec, values[at]));
  const made = makeBatchTaskIds(groups.filter((_, at) => given[at] === undefined));
  const tasks = groups.map((group, at) => {
    const id = given[at] ?? made.get(group) ?? '';
    return makeBatchTask(spec, { ...group, id }, values[at] as TemplateValues);
  });
  return { tasks, problems: batchTaskIdProblems(tasks, spec) };
}

function makeBatchTask(
  spec: BatchSpec,
  { id, name, files }: Group & { readonly id: string },
  values: TemplateValues,
): BatchTask {
  const { task } = spec;
  const gates = task.gates.map((gate) => filledForShell(gate, values));
  const prompt = filledTemplate(task.prompt, values).trim();
  const proof =
    gates.length === 0
      ? []
      : [`When you say that you are done, each of these is run in your workspace and must pass:\n${gates.join('\n')}`];
  const title = filledTemplate(task.title ?? `${spec.name}: {{ path }}`, values)
    .replace(/\s+/g, ' ')
    .trim();
  const plan = { id, title, prompt: [prompt, ...proof].join('\n\n'), dependsOn: [], files, mode: 'write' as const };
  return { ...plan, gates, group: name, ...(task.agent !== undefined && { agent: task.agent }) };
}

function batchTemplateValues({ name, files, part, vars }: Group, spec: BatchSpec, repository: string): TemplateValues {
  const isFile = spec.group.by === 'file';
  return {
    path: name,
    files,
    name: posix.basename(name),
    dir: isFile ? posix.dirname(name) : name,
    ext: posix.extname(name).slice(1),
    count: String(files.length),
    group: part === undefined ? name : `${name} (part ${part})`,
    repository,
    vars: { ...spec.vars, ...vars },
  };
}

function missingBatchVariables({ task }: BatchSpec, values: TemplateValues): readonly SpecProblem[] {
  const texts: (readonly [string, string])[] = [
    ['task.id', task.id ?? ''],
    ['task.title', task.title ?? ''],
    ['task.prompt', task.prompt],
    ...task.gates.map((gate, at) => [`task.gate.${at}`, gate] as const),
  ];
  return texts.flatMap(([key, text]) =>
    missingTemplateNames(text, values).map((name) => ({
      key,
      message: `there is no 'vars.${name}' for ${String(values.path)}: neither the spec nor what was selected names it`,
    })),
  );
}

function givenBatchTaskId({ id }: Group, { task }: BatchSpec, values: TemplateValues | undefined): string | undefined {
  if (id !== undefined) return id;
  return task.id === undefined || values === undefined ? undefined : filledTemplate(task.id, values);
}

/** Ids for tasks that have none. */
function makeBatchTaskIds(groups: readonly Group[]): ReadonlyMap<Group, string> {
  const plain = groups.map((group) => ({ group, id: batchTaskSlug(group) }));
  const alike = Map.groupBy(plain, ({ id }) => id.toLowerCase());
  return new Map(
    plain.map(({ group, id }) => {
      const isShared = (alike.get(id.toLowerCase())?.length ?? 0) > 1;
      return [group, isShared ? batchTaskIdWithDigest(id, batchTaskName(group)) : id];
    }),
  );
}

function batchTaskSlug(group: Group): string {
  const name = batchTaskName(group);
  const slug = name
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replaceAll(/\.{2,}/g, '.')
    .replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
  const isPlain = slug !== '' && slug.length <= ID_CHARS_MAX && !slug.endsWith('.lock') && slug !== 'merged';
  return isPlain ? slug : batchTaskIdWithDigest(slug, name);
}

function batchTaskName({ name, part }: Group): string {
  return part === undefined ? (name === '.' ? 'top' : name) : `${name === '.' ? 'top' : name}-${part}`;
}

function batchTaskIdWithDigest(slug: string, name: string): string {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, DIGEST_CHARS);
  // The end of a path is more specific than its beginning.
  const tail = slug.slice(-(ID_CHARS_MAX - DIGEST_CHARS - 1)).replace(/^[^A-Za-z0-9]+/, '');
  return `${tail === '' ? 'task' : tail}-${digest}`;
}

function batchTaskIdProblems(tasks: readonly BatchTask[], { task }: BatchSpec): readonly SpecProblem[] {
  const key = task.id === undefined ? 'select.command' : 'task.id';
  const found: SpecProblem[] = [];
  const seen = new Map<string, string>();
  for (const { id, group } of tasks) {
    const before = seen.get(id.toLowerCase());
    if (before !== undefined)
      found.push({ key, message: `the id '${id}' is used twice: for ${before} and for ${group}; make it unique` });
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(id) || id.endsWith('.lock') || id.includes('..') || id === 'merged')
      found.push({ key, message: `'${id}' can't be the id of a task: use letters, digits, ., - and _, at most 64` });
    seen.set(id.toLowerCase(), group);
  }
  return found.slice(0, PROBLEMS_MAX);
}
