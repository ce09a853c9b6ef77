// The JSON Schema of a batch spec, for editors: what may stand where, and what it means.
//
// What is read, and what is refused, is decided by spec-file.ts; a test holds the two against each other. The
// same schema stands as a file beside the examples.

import { GROUPINGS } from '@drover/coordinator/batch/items/spec';
import type { JsonObject } from '@drover/protocol/json';

const AMOUNT = {
  type: 'string',
  pattern: '^\\d+(\\.\\d+)?(usd|tok|ktok|mtok)$',
  examples: ['5usd', '200ktok'],
};
const TIME = {
  type: 'string',
  pattern: '^(?=\\d)(\\d+(\\.\\d+)?h)?(\\d+(\\.\\d+)?m)?(\\d+(\\.\\d+)?s)?(\\d+(\\.\\d+)?ms)?$',
  examples: ['45m', '1h30m'],
};
const TEXT = { type: 'string', pattern: '\\S' };
const TEXTS = { type: 'array', items: TEXT };

function record(description: string, properties: JsonObject, required: readonly string[] = []): JsonObject {
  return { type: 'object', description, additionalProperties: false, properties, required: [...required] };
}

const about = (schema: JsonObject, description: string): JsonObject => ({ description, ...schema });

const SELECT = record('Which files the batch is about. What is given narrows down.', {
  files: {
    description: 'Globs, relative to the top of the repository; or the path of a list of files, - for standard input.',
    anyOf: [{ ...TEXTS, minItems: 1 }, TEXT],
  },
  exclude: about(TEXTS, 'Globs of what is left out.'),
  contains: about(TEXT, 'A regular expression that must match in the file.'),
  diff: about(TEXT, 'Only what has changed in this range, such as main...HEAD.'),
  command: about(TEXT, 'A command that prints paths, each ended by NUL, or items as JSON lines.'),
  repos: about(TEXT, 'The path of a file that names repositories.'),
});

const GROUP = {
  description: 'Which files become one task.',
  anyOf: [
    { enum: [...GROUPINGS] },
    record('How, and how many at most.', {
      by: { enum: [...GROUPINGS], default: 'file' },
      max: { type: 'integer', minimum: 1, maximum: 1_000, default: 50 },
    }),
  ],
};

const TASK = record(
  'What is done with each group. Templates: {{ path }}, {{ files }}, {{ name }}, {{ dir }}, {{ ext }}, {{ count }}, {{ group }}, {{ repository }}, {{ vars.NAME }}.',
  {
    id: about(TEXT, 'Letters, digits, ., - and _; made of the path where it is left out.'),
    title: about(TEXT, 'One line; it becomes the subject of the commit.'),
    prompt: about(TEXT, 'All that the worker has to know.'),
    gate: {
      description: 'Commands that must pass in the task’s own workspace. Templates are quoted for the shell.',
      anyOf: [TEXTS, TEXT],
    },
  },
  ['prompt'],
);

const LIMITS = record('What a batch may take.', {
  budget: about(AMOUNT, 'For all of it.'),
  perTask: about(AMOUNT, 'For each task.'),
  timeout: about(TIME, 'For all of it.'),
  perTaskTimeout: about(TIME, 'For each attempt at a task.'),
  stopWhenFailed: {
    description: 'Stop when so many tasks have failed: a share of all, or a count.',
    anyOf: [
      { type: 'string', pattern: '^(100(\\.0+)?|\\d{1,2}(\\.\\d+)?)\\s*%$' },
      { type: 'integer', minimum: 1, maximum: 100_000 },
    ],
  },
});

export const batchSchema: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'drover batch spec',
  ...record(
    'One task for each file, folder, package or repository that is selected.',
    {
      version: { const: 1 },
      name: about(TEXT, 'What the batch is called; the name of the file where it is left out.'),
      select: SELECT,
      group: GROUP,
      task: TASK,
      gates: about(TEXTS, 'Commands that must pass on the merged tree.'),
      setup: about(TEXTS, 'Commands that prepare each workspace before anybody works or tests in it.'),
      limits: LIMITS,
      vars: { type: 'object', description: 'Values for {{ vars.NAME }}.', additionalProperties: TEXT },
      workers: { type: 'integer', minimum: 0, maximum: 64, description: 'How many tasks at a time.' },
      deliver: { enum: ['branch', 'merge', 'patch'], description: 'How what has landed is handed over.' },
    },
    ['version', 'select', 'task'],
  ),
};
