// Random documents of every format: valid ones are read correctly, and broken ones are reported with a place in the
// file.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { UsageError } from '@drover/core/errors';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { parseRehearsalScript } from '@drover/rehearsal/load';
import { ScriptError } from '@drover/rehearsal/script';
import { parseBatchSpec } from '../../bin/files/batch-spec.ts';
import { parseConfigFile } from '../../bin/files/config-file.ts';
import { parsePlanFile } from '../../bin/files/plan-file.ts';
import { parseRepositoriesFile } from '../../bin/files/repositories-file.ts';

const RUNS = 150;

/** A document and its value. */
type Case = { readonly document: JsonObject; readonly meaning: unknown };

type Kind = {
  readonly cases: fc.Arbitrary<Case>;
  readonly read: (text: string) => unknown;
};

/** A random subset of the entries, in their order. */
function someOf(entries: Readonly<Record<string, Case>>): fc.Arbitrary<Case> {
  return fc.subarray(Object.entries(entries)).map((chosen) => ({
    document: Object.fromEntries(chosen.map(([key, { document }]) => [key, document])),
    meaning: Object.fromEntries(chosen.map(([key, { meaning }]) => [key, meaning])),
  }));
}

const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
const text = fc
  .string({ minLength: 1, unit: 'grapheme' })
  .filter((each) => /\S/.test(each) && !/[\p{C}\p{Z}{}]/u.test(each));
const texts = fc.array(text, { maxLength: 3 });
const same = (value: Json): Case => ({ document: value as JsonObject, meaning: value });
const amount = fc.integer({ min: 1, max: 999 });

const config: Kind = {
  read: (written) => parseConfigFile(written, 'x.yaml').config,
  cases: fc
    .record({
      model: text,
      commands: texts,
      name: word,
      count: fc.integer({ min: 1, max: 64 }),
      dollars: amount,
      seconds: amount,
    })
    .chain(({ model, commands, name, count, dollars, seconds }) =>
      someOf({
        model: same(model),
        workers: same(count),
        steps: same(count),
        turns: same(count),
        gates: same(commands),
        writable: same(commands),
        sandbox: same('required'),
        prices: {
          document: { [name]: { input: dollars, output: 1, cacheRead: 0.5 } },
          meaning: new Map([[name, { input: dollars, output: 1, cacheRead: 0.5, cacheWrite: dollars }]]),
        },
        providers: {
          document: { [name]: { api: 'openai', baseUrl: 'http://x/v1' } },
          meaning: new Map([[name, { api: 'openai', baseUrl: 'http://x/v1', keyEnv: undefined }]]),
        },
        timeouts: { document: { silence: `${seconds}s` }, meaning: { silence: seconds * 1_000 } },
      }),
    ),
};

const plan: Kind = {
  read: (written) => parsePlanFile(written, 'x.yaml', { tasksMax: 100, modelOf: (name) => name, agents: [] }),
  cases: fc
    .uniqueArray(
      fc.record({ id: word.filter((id) => id !== 'merged'), prompt: text, files: texts, isRead: fc.boolean() }),
      {
        minLength: 1,
        maxLength: 4,
        selector: ({ id }) => id,
      },
    )
    .map((tasks) => ({
      document: {
        tasks: tasks.map(({ id, prompt, files, isRead }, at) => ({
          id,
          prompt,
          ...(files.length > 0 && { files }),
          ...(isRead && { mode: 'read' }),
          ...(at > 0 && { dependsOn: [tasks[at - 1]?.id ?? ''] }),
        })),
      },
      meaning: {
        tasks: tasks.map(({ id, prompt, files, isRead }, at) => ({
          id,
          title: prompt,
          prompt,
          files,
          mode: isRead ? 'read' : 'write',
          dependsOn: at > 0 ? [tasks[at - 1]?.id] : [],
        })),
      },
    })),
};

const spec: Kind = {
  read: (written) => parseBatchSpec(written, 'x.yaml').spec,
  cases: fc
    .record({ prompt: text, gate: text, name: word, isAlone: fc.boolean(), count: amount, minutes: amount })
    .map(({ prompt, gate, name, isAlone, count, minutes }) => ({
      document: {
        version: 1,
        select: isAlone ? { files: `${name}.txt` } : { files: [`${name}/*.ts`], exclude: ['b'] },
        group: isAlone ? 'package' : { max: count },
        task: { prompt: `${prompt} {{ path }} {{ vars.${name} }}`, gate: isAlone ? gate : [gate, gate] },
        vars: { [name]: prompt },
        limits: { budget: `${count}usd`, timeout: `${minutes}m`, stopWhenFailed: isAlone ? count : '30%' },
      },
      meaning: {
        name: 'x',
        select: isAlone ? { list: `${name}.txt`, exclude: [] } : { files: [`${name}/*.ts`], exclude: ['b'] },
        group: isAlone ? { by: 'package', max: 50 } : { by: 'file', max: count },
        task: { prompt: `${prompt} {{ path }} {{ vars.${name} }}`, gates: isAlone ? [gate] : [gate, gate] },
        vars: { [name]: prompt },
        limits: {
          budget: { usd: count },
          timeoutMs: minutes * 60_000,
          stopWhenFailed: isAlone ? { count } : { percent: 30 },
        },
        gates: [],
        setup: [],
      },
    })),
};

const repositories: Kind = {
  read: (written) =>
    parseRepositoriesFile(written, 'x.yaml', '/folder').map(({ name, at, revision }) => ({ name, at, revision })),
  cases: fc
    .uniqueArray(
      fc.record({ name: word, revision: fc.oneof(word, fc.stringMatching(/^[1-9]\d{0,6}$/)), isNear: fc.boolean() }),
      {
        minLength: 1,
        maxLength: 4,
        selector: ({ name }) => name,
      },
    )
    .map((all) => ({
      document: {
        repositories: all.map(({ name, revision, isNear }) => ({
          ...(isNear ? { path: name } : { url: `https://x/${name}.git` }),
          revision: /^\d+$/.test(revision) ? Number(revision) : revision,
        })),
      },
      meaning: all.map(({ name, revision, isNear }) => ({
        name,
        at: isNear ? { path: `/folder/${name}` } : { url: `https://x/${name}.git` },
        revision,
      })),
    })),
};

// The reader refuses the key __proto__ everywhere.
const argument = fc.jsonValue({ maxDepth: 2 }).filter((value) => !JSON.stringify(value).includes('"__proto__"'));

const script: Kind = {
  read: (written) => parseRehearsalScript(written, 'x.yaml'),
  cases: fc
    .array(
      fc.oneof(
        fc.record({ text }),
        fc.record({
          calls: fc.array(fc.record({ name: word, args: fc.dictionary(word, argument) })),
        }),
        fc.record({ fault: fc.constantFrom('cut', { fault: 'status', status: 503 }), times: amount }),
        fc.record({ when: fc.record({ step: amount }), text: fc.record({ repeat: text, times: amount }) }),
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((answers) => ({ document: { answers } as unknown as JsonObject, meaning: { answers } })),
};

const kinds: Readonly<Record<string, Kind>> = {
  config,
  plan,
  'batch spec': spec,
  'repositories file': repositories,
  script,
};

test.each(Object.entries(kinds))('every valid %s is read correctly', async (_, { cases, read }) => {
  await fc.assert(
    fc.asyncProperty(cases, fc.boolean(), async ({ document, meaning }, isFlow) => {
      const written = stringify(document, { aliasDuplicateObjects: false, ...(isFlow && { collectionStyle: 'flow' }) });
      expect(await read(written)).toEqual(meaning);
    }),
    { numRuns: RUNS },
  );
});

/** The document with one place changed: a value replaced, a key renamed, removed or added. */
function changed(value: Json, path: number, change: Change): Json {
  if (Array.isArray(value) && value.length > 0) {
    const at = path % value.length;
    return value.map((each: Json, index) =>
      index === at ? changed(each, Math.floor(path / value.length), change) : each,
    );
  }
  if (!isJsonObject(value)) return change.value;
  const entries = Object.entries(value);
  const at = path % (entries.length + 1);
  const rest = Math.floor(path / (entries.length + 1));
  if (at === entries.length) return { ...value, [change.key]: change.value };
  return Object.fromEntries(
    entries.flatMap(([key, each], index) => {
      if (index !== at) return [[key, each]];
      if (rest % 4 === 0) return [];
      if (rest % 4 === 1) return [[change.key, each]];
      return [[key, changed(each, Math.floor(rest / 4), change)]];
    }),
  );
}

type Change = { readonly key: string; readonly value: Json };

const change: fc.Arbitrary<Change> = fc.record({
  key: fc.oneof(word, fc.constantFrom('__proto__', '', 'toString', 'tasks', '1')),
  value: fc.oneof(fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>, text),
});

/** Fails unless the text is read, or refused with a place inside it. */
async function expectVerdict(written: string, read: Kind['read']): Promise<void> {
  const error: unknown = await Promise.resolve()
    .then(() => read(written))
    .then(
      () => undefined,
      (reason: unknown) => reason,
    );
  if (error === undefined) return;
  expect(error instanceof UsageError || error instanceof ScriptError ? undefined : error).toBeUndefined();
  const lines = written.split(/\n/);
  const sentences = (error as Error).message.split(/\n(?=x\.yaml:)/);
  for (const sentence of sentences) {
    const [, line, column] = /^x\.yaml:(\d+):(\d+): ./.exec(sentence) ?? [];
    expect(sentence).toMatch(/^x\.yaml:\d+:\d+: ./);
    expect(Number(line)).toBeGreaterThan(0);
    expect(Number(line)).toBeLessThanOrEqual(lines.length);
    expect(Number(column)).toBeGreaterThan(0);
    expect(Number(column)).toBeLessThanOrEqual((lines[Number(line) - 1]?.length ?? 0) + 1);
  }
}

test.each(Object.entries(kinds))('a changed %s is read, or refused with its place', async (_, { cases, read }) => {
  await fc.assert(
    fc.asyncProperty(cases, fc.nat(), change, async ({ document }, path, what) => {
      await expectVerdict(stringify(changed(document, path, what)), read);
    }),
    { numRuns: RUNS },
  );
});

const PIECES = [
  '[',
  ']',
  '{',
  '}',
  ':',
  '- ',
  '"',
  '*a',
  '&a ',
  '!!x ',
  '\n',
  '\t',
  '%YAML 1.1\n---\n',
  '? ',
  '\u0000',
  '---\n',
  '|',
];

test.each(Object.entries(kinds))('a %s with a typing slip is read or refused', async (_, { cases, read }) => {
  await fc.assert(
    fc.asyncProperty(cases, fc.nat(), fc.constantFrom('', ...PIECES), async ({ document }, at, piece) => {
      const written = stringify(document, { aliasDuplicateObjects: false });
      const from = at % (written.length + 1);
      await expectVerdict(written.slice(0, from) + piece + written.slice(from + (piece === '' ? 1 : 0)), read);
    }),
    { numRuns: RUNS },
  );
});
