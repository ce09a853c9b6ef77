// A tool: its declaration, argument checks, and results, however it behaves.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ToolError } from '@drover/core/errors';
import type { Json } from '@drover/protocol/json';
import { createSimpleTool, defineTool, runTool, type Tool, type ToolEvent } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import * as z from 'zod/mini';
import { workspace } from '../../support/workspace.ts';

const sample = defineTool({
  name: 'sample',
  description: 'A sample.',
  input: z.object({
    path: z.string(),
    mode: z.optional(z.enum(['fast', 'slow'])),
    count: z.optional(z.int().check(z.gte(1), z.lte(9))),
    inner: z.optional(z.object({ names: z.array(z.string()) })),
  }),
  access: 'read',
  subject: ({ path }) => path,
  touches: ({ path }) => [path],
  run: async ({ path, count = 1 }) => `${path} ${count}`,
});

const nothingRequired = defineTool({
  name: 'nothing',
  description: '',
  input: z.object({ path: z.optional(z.string()) }),
  access: 'none',
  subject: () => '',
  run: async () => 'ran',
});

/** A tool that misbehaves. */
const rogue = (execute: () => unknown): Tool => ({ ...nothingRequired, name: 'rogue', execute: execute as never });

async function* events(...list: unknown[]): AsyncGenerator<ToolEvent> {
  for (const event of list) {
    if (event instanceof Error) throw event;
    yield event as ToolEvent;
  }
}

async function outcome(tool: Tool, input: Json = {}) {
  const { context } = await workspace();
  const deltas: string[] = [];
  const output = await runTool(tool, input, { ...context(), onDelta: (delta) => deltas.push(delta) });
  return { ...output, deltas };
}

test('one declaration is type, validator and schema', () => {
  expect(sample.schema).toEqual({
    type: 'object',
    properties: {
      path: { type: 'string' },
      mode: { type: 'string', enum: ['fast', 'slow'] },
      count: { type: 'integer', minimum: 1, maximum: 9 },
      inner: {
        type: 'object',
        properties: { names: { type: 'array', items: { type: 'string' } } },
        required: ['names'],
      },
    },
    required: ['path'],
    additionalProperties: false,
  });
  expect(sample.parse({ path: 'a', count: 3 })).toEqual({ ok: true, input: { path: 'a', count: 3 } });
  expect(sample.touches({ path: 'a' })).toEqual(['a']);
  expect(nothingRequired.touches({})).toEqual([]);
});

test.each<[string, Json, string]>([
  ['a wrong type', { path: 5 }, 'path: expected string, got number'],
  ['a list for a text', { path: ['a'] }, 'path: expected string, got array'],
  ['a number in quotes', { path: 'a', count: '3' }, 'count: expected number, got string'],
  ['a broken number', { path: 'a', count: 1.5 }, 'count: expected int, got number'],
  ['a missing one', {}, 'path: required'],
  ['one out of range', { path: 'a', count: 10 }, 'count: expected at most 9, got 10'],
  ['one that is none of the choices', { path: 'a', mode: 'quick' }, 'mode: expected "fast" or "slow", got "quick"'],
  ['a misspelt one', { path: 'a', cuont: 3 }, 'arguments: unknown "cuont" (known: path, mode, count, inner)'],
  ['one deep inside', { path: 'a', inner: { names: ['b', 7] } }, 'inner.names.1: expected string, got number'],
  ['a NUL', { path: 'a\0b' }, 'path: contains a NUL character'],
  ['a NUL deep inside', { path: 'a', inner: { names: ['\0'] } }, 'inner.names.0: contains a NUL character'],
  ['several at once', { path: 1, count: 0 }, 'path: expected string, got number; count: expected at least 1, got 0'],
  ['a text instead of an object', '{"path":"a"}', 'arguments: expected object, got string'],
  ['a list instead of an object', [], 'arguments: expected object, got array'],
  ['nothing where something is required', null, 'path: required'],
])('a call with %s is refused with the path', (_, args, problem) => {
  expect(sample.parse(args)).toEqual({ ok: false, problem });
});

test.each<[string, Json]>([
  ['null', null],
  ['an empty text', ''],
])('%s means no arguments where none is required', (_, args) => {
  expect(nothingRequired.parse(args)).toEqual({ ok: true, input: {} });
});

test('a simple tool answers with output and details', async () => {
  const simple = createSimpleTool(
    { name: 'add', description: '', input: z.object({ a: z.number() }), access: 'none', subject: () => '' },
    async ({ a }) => ({ output: String(a + 1), details: { sum: a + 1 } }),
  );
  expect(await outcome(simple, { a: 2 })).toEqual({ output: '3', details: { sum: 3 }, deltas: [] });
});

test('a tool may stream progress and answer at the end', async () => {
  const streaming = rogue(() => events(delta('one '), delta('two'), complete('done')));
  expect(await outcome(streaming)).toEqual({ output: 'done', deltas: ['one ', 'two'] });
});

test('the first answer wins, and later ones are ignored', async () => {
  const chatty = rogue(() => events(complete('first'), delta('late'), complete('second')));
  expect(await outcome(chatty)).toEqual({ output: 'first', deltas: [] });
});

test('a missing answer is an error that keeps the streamed output', async () => {
  const silent = rogue(() => events(delta('compiling\n'), delta('linking')));
  expect(await outcome(silent)).toEqual({
    output: 'compiling\nlinking\nrogue ended without a result',
    isError: true,
    deltas: ['compiling\n', 'linking'],
  });
});

test('an exception keeps the output from before it', async () => {
  const broken = rogue(() => events(delta('half'), new ToolError('no more paper')));
  expect(await outcome(broken)).toEqual({ output: 'half\nno more paper', isError: true, deltas: ['half'] });
});

const circular: Record<string, unknown> = {};
circular['self'] = circular;

test.each<[string, () => unknown, object]>([
  [
    'throws text for the model',
    () => Promise.reject(new ToolError('not there')),
    { output: 'not there', isError: true },
  ],
  ['breaks', () => Promise.reject(new Error('oops')), { output: 'rogue failed: oops', isError: true }],
  [
    'breaks before it starts',
    () => {
      throw new TypeError('early');
    },
    { output: 'rogue failed: early', isError: true },
  ],
  ['rejects with no error', () => Promise.reject('bare'), { output: 'rogue failed: bare', isError: true }],
  ['returns nothing', async () => undefined, { output: 'rogue returned nothing', isError: true }],
  ['returns null', async () => null, { output: 'rogue returned nothing', isError: true }],
  ['returns data', async () => ({ a: [1] }), { output: '{"a":[1]}' }],
  ['returns data as output', async () => ({ output: { a: 1 } }), { output: '{"a":1}' }],
  [
    'returns something circular',
    async () => circular,
    { output: 'rogue returned something that is neither text nor JSON', isError: true },
  ],
  [
    'returns circular output',
    async () => ({ output: circular }),
    { output: 'rogue returned something that is neither text nor JSON', isError: true },
  ],
  ['has circular details', async () => ({ output: 'fine', details: circular }), { output: 'fine' }],
  [
    'has details that are no JSON',
    async () => ({ output: 'fine', details: { at: new Date(0) } }),
    { output: 'fine', details: { at: '1970-01-01T00:00:00.000Z' } },
  ],
  [
    'returns a function',
    async () => () => 1,
    { output: 'rogue returned something that is neither text nor JSON', isError: true },
  ],
  ['says nonsense on the way', () => events(undefined, 7, { type: 'huh' }, complete('still')), { output: 'still' }],
])('a tool that %s still gives one output', async (_, execute, expected) => {
  expect(await outcome(rogue(execute))).toEqual({ ...expected, deltas: [] });
});

test('a tool without a body is not run here', async () => {
  const { execute: _, ...remote } = sample;
  expect(await outcome(remote)).toEqual({ output: 'sample is run by the client, not here', isError: true, deltas: [] });
});

test('a tool that ignores a stop is abandoned', async () => {
  const { context } = await workspace();
  const stop = new AbortController();
  const deaf = rogue(async function* () {
    yield delta('working');
    await new Promise(() => undefined);
  });
  const running = runTool(deaf, {}, { ...context(stop.signal), onDelta: () => stop.abort() });
  expect(await running).toEqual({ output: 'working\nrogue was interrupted, and did not stop', isError: true });
});

test('long output is cut in the middle and kept whole on disk', async () => {
  const { context, outputFolder } = await workspace();
  const long = Array.from({ length: 20_000 }, (_, index) => `line ${index}`).join('\n');
  const given = context();
  const { output } = await runTool(
    rogue(async () => long),
    {},
    given,
  );

  const file = join(outputFolder, `${given.callId}.txt`);
  expect(output.length).toBeLessThanOrEqual(30_000);
  expect(output.startsWith('line 0\nline 1\n')).toBe(true);
  expect(output.endsWith('\nline 19998\nline 19999')).toBe(true);
  expect(output).toMatch(/\n\[… \d+\.\d KB left out; the whole output is in .*\.txt …\]\n/);
  expect(output).toContain(file);
  expect(await readFile(file, 'utf8')).toBe(long);
});

function delta(text: string): ToolEvent {
  return { type: 'delta', delta: text };
}

function complete(output: string): ToolEvent {
  return { type: 'complete', output };
}
