// The batch spec: its schema, and its reader, which keeps the place of every key.
//
// Mistakes of the spec by itself are told here. Mistakes that only show next to a repository are told later
// (`refuseBatchSpec`), at the places of the keys.

import { createHash } from 'node:crypto';
import { basename, relative, resolve } from 'node:path';
import { z } from 'zod';
import { batchGlobProblem } from '@drover/coordinator/batch/items/select';
import {
  type BatchLimits,
  type BatchSpec,
  type Grouping,
  GROUPINGS,
  type SpecProblem,
  type Select,
  type StopWhenFailed,
} from '@drover/coordinator/batch/items/spec';
import {
  listTemplateNames,
  quotedTemplates,
  TEMPLATE_NAMES,
  templateVariable,
} from '@drover/coordinator/batch/template';
import { UsageError } from '@drover/core/errors';
import { requireOwnFile } from '@drover/core/files/own-file';
import { suggestNearestWord } from '@drover/documents/suggestion';
import { requireFileDocument } from './document.ts';
import { budget, duration, parsedField, text, texts, wholeNumberField } from './values.ts';

const WORKERS_MAX = 128;
const GROUP_FILES_MAX = 1_000;
const GROUP_FILES_DEFAULT = 50;
const FAILURES_MAX = 100_000;

// ── the schema ────────────────────────────────────────────────────────────────────────────────

const glob = parsedField((written) => {
  const problem = batchGlobProblem(written);
  if (problem !== undefined) throw new UsageError(problem);
  return written;
});

const select = z
  .strictObject({
    files: z
      .union([z.array(glob).min(1, { error: 'is empty; name at least one glob' }), text])
      .exactOptional()
      .describe('Globs, relative to the top of the repository; or the path of a list of files, - for standard input.'),
    exclude: z.array(glob).exactOptional().describe('Globs of files to leave out.'),
    contains: parsedField(parseSpecPattern)
      .exactOptional()
      .describe('A regular expression that must match in the file.'),
    diff: text.exactOptional().describe('Only files that changed in this range, such as main...HEAD.'),
    command: text.exactOptional().describe('A command that prints paths, each ended by NUL, or items as JSON lines.'),
    repos: text.exactOptional().describe('The path of a file that names repositories.'),
  })
  .superRefine(({ files, diff, command }, context) => {
    if (typeof files === 'string' && command !== undefined)
      context.addIssue('a list of files and a command contradict each other; give one of them');
    if (files === undefined && diff === undefined && command === undefined)
      context.addIssue('select needs files, diff or command; files: ["**"] takes all there are');
  })
  .transform(({ files, exclude = [], ...others }): Select => ({
    ...(typeof files === 'string' ? { list: files } : files && { files }),
    exclude,
    ...others,
  }));

const by = z.enum(GROUPINGS);
const group = z.union([
  by.transform((word): Grouping => ({ by: word, max: GROUP_FILES_DEFAULT })),
  z
    .strictObject({
      by: by.default('file').describe('Which files become one task.'),
      max: wholeNumberField(1, GROUP_FILES_MAX)
        .default(GROUP_FILES_DEFAULT)
        .describe('Maximum number of files in a task.'),
    })
    .describe('How, and how many at most.'),
]);

const task = z.strictObject({
  id: text.exactOptional().describe('Letters, digits, ., - and _. Default: made of the path.'),
  title: text.exactOptional().describe('One line; it becomes the subject of the commit.'),
  prompt: text.describe('All that the worker has to know.'),
  model: text
    .exactOptional()
    .describe('Model of the workers, as --model takes it. Default: the models of the role work.'),
  agent: text.exactOptional().describe('Custom agent that does the tasks, by its name. Default: a plain worker.'),
  gate: z
    .union([texts, text])
    .exactOptional()
    .describe('Commands that must pass in the task’s own workspace. Templates are quoted for the shell.'),
});

const stopWhenFailed = z.union([
  parsedField(parseSpecPercent, { pattern: '^(100(\\.0+)?|\\d{1,2}(\\.\\d+)?)\\s*%$' }),
  wholeNumberField(1, FAILURES_MAX).transform((count): StopWhenFailed => ({ count })),
]);

const limits = z
  .strictObject({
    budget: budget.exactOptional().describe('For the whole batch.'),
    perTask: budget.exactOptional().describe('For each task.'),
    timeout: duration.exactOptional().describe('For the whole batch.'),
    perTaskTimeout: duration.exactOptional().describe('For each attempt at a task.'),
    stopWhenFailed: stopWhenFailed
      .exactOptional()
      .describe('Stop when this many tasks have failed: a share of all, or a count.'),
  })
  .transform(({ timeout, perTaskTimeout, ...others }): BatchLimits => ({
    ...others,
    ...(timeout !== undefined && { timeoutMs: timeout }),
    ...(perTaskTimeout !== undefined && { perTaskTimeoutMs: perTaskTimeout }),
  }));

const fields = z
  .strictObject({
    version: z.literal(1).describe('The version of the format.'),
    name: text.exactOptional().describe('What the batch is called. Default: the name of the file.'),
    select: select.describe('Which files the batch is about. Each key narrows the selection.'),
    group: group.exactOptional().describe('Which files become one task. Default: file.'),
    task: task.describe(
      `What is done with each group. Templates: ${TEMPLATE_NAMES.map((name) => `{{ ${name} }}`).join(', ')}, {{ vars.NAME }}.`,
    ),
    gates: texts.exactOptional().describe('Commands that must pass on the merged tree.'),
    setup: texts.exactOptional().describe('Commands that prepare each workspace before work or tests begin in it.'),
    limits: limits.exactOptional().describe('What a batch may take.'),
    vars: z.record(z.string(), text).exactOptional().describe('Values for {{ vars.NAME }}.'),
    workers: wholeNumberField(0, WORKERS_MAX).exactOptional().describe('Number of tasks to run at once.'),
    deliver: z.enum(['branch', 'merge', 'patch']).exactOptional().describe('How the landed work is handed over.'),
  })
  .describe('One task for each file, folder, package or repository that is selected.');

export const batchSchema = fields
  .superRefine(checkSpecTemplates)
  .transform((spec): Omit<BatchSpec, 'name'> & { name?: string } => {
    const { version: _, task: template, ...others } = spec;
    const { gate = [], ...written } = template;
    return {
      gates: [],
      setup: [],
      limits: {},
      vars: {},
      group: { by: 'file', max: GROUP_FILES_DEFAULT },
      task: { ...written, gates: typeof gate === 'string' ? [gate] : gate },
      ...others,
    };
  });

function checkSpecTemplates(spec: z.output<typeof fields>, context: z.RefinementCtx): void {
  const { id, title, prompt, gate } = spec.task;
  const known = [...TEMPLATE_NAMES, ...Object.keys(spec.vars ?? {}).map((name) => `vars.${name}`)];
  const tell = (path: (string | number)[], piece: string, message: string) =>
    context.addIssue({ code: 'custom', path: ['task', ...path], message, params: { piece } });
  const check = (path: (string | number)[], written = ''): void => {
    for (const { name, whole, isName } of listTemplateNames(written)) {
      // A command's output may define variables, so they are checked after it has run.
      if (
        isName &&
        (known.includes(name) || (templateVariable(name) !== undefined && spec.select.command !== undefined))
      )
        continue;
      const near = suggestNearestWord(name, known) || `; known are ${known.join(', ')}`;
      tell(path, whole, `there is no {{ ${name} }}${near}; braces that shall stay are \\{{`);
    }
  };
  const checkCommand = (path: (string | number)[], command: string): void => {
    for (const { name, whole } of quotedTemplates(command))
      tell(path, whole, `{{ ${name} }} stands in quotes; leave them out: it is quoted for the shell`);
    check(path, command);
  };
  check(['id'], id);
  check(['title'], title);
  check(['prompt'], prompt);
  if (typeof gate === 'string') checkCommand(['gate'], gate);
  else gate?.forEach((command, at) => checkCommand(['gate', at], command));
}

function parseSpecPattern(written: string): RegExp {
  try {
    return new RegExp(written, 'm');
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(
      `this is no regular expression: ${error.message.replace(/^Invalid regular expression: /, '')}`,
    );
  }
}

function parseSpecPercent(written: string): StopWhenFailed {
  const [, digits] = /^(\d{1,3}(?:\.\d+)?)\s*%$/.exec(written) ?? [];
  const percent = Number(digits);
  if (!(percent > 0 && percent <= 100))
    throw new UsageError(`'${written}' is neither a share nor a count; write it like 30% or 5`);
  return { percent };
}

// ── the reader ────────────────────────────────────────────────────────────────────────────────

export type SpecFile = {
  readonly spec: BatchSpec;
  /** The path as the user wrote it. */
  readonly file: string;
  /** Digest of the file's bytes. */
  readonly sha256: string;
  /** The position of a key such as `select.files.0`, or of the nearest key around it. */
  readonly place: (key: string) => string;
};

/** Throws UsageError. */
export async function readBatchSpec(path: string, cwd: string): Promise<SpecFile> {
  const file = relative(cwd, resolve(cwd, path)) || path;
  const bytes = await requireOwnFile(
    { path: resolve(cwd, path) },
    ({ kind, problem, fix }) => `${file} ${problem}; ${kind === 'missing' ? 'name a batch spec' : fix}`,
  );
  const { spec, place } = parseBatchSpec(bytes.toString('utf8'), file);
  return { spec, file, sha256: createHash('sha256').update(bytes).digest('hex'), place };
}

/** The keys of a spec whose values are commands. */
export function listSpecCommandKeys({
  select,
  task: { gates: taskGates },
  gates: batchGates,
  setup,
}: BatchSpec): readonly string[] {
  return [
    ...(select.command === undefined ? [] : ['select.command']),
    ...(taskGates.length === 0 ? [] : ['task.gate']),
    ...(batchGates.length === 0 ? [] : ['gates']),
    ...(setup.length === 0 ? [] : ['setup']),
  ];
}

/** Throws UsageError. */
export function parseBatchSpec(written: string, file: string): Pick<SpecFile, 'spec' | 'place'> {
  const { value, place } = requireFileDocument(written, file, { what: 'the batch spec', schema: batchSchema });
  const steps = (key: string) => key.split('.').map((step) => (/^\d+$/.test(step) ? Number(step) : step));
  return { spec: { name: batchNameFromFile(file), ...value }, place: (key) => place(steps(key)) };
}

/** Throws UsageError if there are any mistakes. */
export function refuseBatchSpec(problems: readonly SpecProblem[], { place }: SpecFile): void {
  if (problems.length === 0) return;
  const line = ({ key, message, near }: SpecProblem) =>
    `${place(key)}: ${message}${near === undefined ? '' : suggestNearestWord(near.word, near.known)}`;
  throw new UsageError(problems.map(line).join('\n'));
}

function batchNameFromFile(file: string): string {
  return basename(file).replace(/\.ya?ml$/, '');
}
