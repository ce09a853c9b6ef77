// Declarations of remote tools: refused ones, and checks of a call's arguments.

import { remoteTool } from '@drover/core/tools/remote';
import { defineTool } from '@drover/core/tools/tool';
import { UsageError } from '@drover/core/errors';
import type { JsonObject } from '@drover/protocol/json';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { agentOn } from '../support/agent.ts';
import { story } from '../support/story.ts';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: { place: { type: 'string', minLength: 2 }, days: { type: 'integer', default: 3 } },
  required: ['place'],
  additionalProperties: false,
};
const weather = remoteTool({ name: 'weather', description: 'What the weather will be.', schema: SCHEMA });
const sample = defineTool({
  name: 'sample',
  description: 'Runs here.',
  input: z.object({}),
  access: 'none',
  subject: () => '',
  run: async () => 'ok',
});

test('the model sees a remote tool as declared', async () => {
  const { run, server } = await agentOn({ answers: [{ text: 'ok' }] }, { tools: [weather] });
  await run('go');
  expect((server.requests[0]?.body as { tools: object[] } | undefined)?.tools[0]).toMatchObject({
    name: 'weather',
    description: 'What the weather will be.',
    input_schema: SCHEMA,
  });
});

test('invalid arguments return to the model, and the call is not handed out', async () => {
  const { run, server } = await agentOn(
    {
      answers: [
        { calls: [{ name: 'weather', args: { place: 'x', when: 'now' } }] },
        { calls: [{ name: 'weather', args: { place: 'Oslo' } }] },
      ],
    },
    { tools: [weather] },
  );
  const { events, result } = await run('go');
  expect(events.find((event) => event.type === 'tool_execution_end')).toMatchObject({
    output:
      'Not run: the arguments of weather don\'t fit. place: expected at least 2 characters, got 1; arguments: unknown "when" (known: place, days)',
    isError: true,
  });
  expect(story(events).slice(-2)).toEqual(['waits for weather', 'session ends: suspended']);
  // Absent arguments get the defaults of the schema.
  expect(result.pending.map(({ name, args }) => ({ name, args }))).toEqual([
    { name: 'weather', args: { place: 'Oslo', days: 3 } },
  ]);
  expect(server.rejections).toBe(0);
});

test('a call without arguments hands out an empty object', async () => {
  const tool = remoteTool({ name: 'now', description: 'The time.', schema: { type: 'object' } });
  const { run } = await agentOn({ answers: [{ calls: [{ name: 'now', args: {} }] }] }, { tools: [tool] });
  expect((await run('go')).result.pending[0]?.args).toEqual({});
  expect(tool.parse(null)).toEqual({ ok: true, input: {} });
});

test('a rule that denies a remote tool holds, and its call is not handed out', async () => {
  const { run } = await agentOn(
    { answers: [{ calls: [{ name: 'weather', args: { place: 'Oslo' } }] }, { text: 'ok' }] },
    { tools: [weather], judge: async ({ name }) => ({ effect: 'deny', why: `no ${name}` }) },
  );
  const { result } = await run('go');
  expect([result.outcome.status, result.pending, result.denials]).toEqual([
    'done',
    [],
    [{ name: 'weather', subject: '{"place":"Oslo","days":3}', why: 'no weather' }],
  ]);
});

const cyclic: Record<string, unknown> = { type: 'object' };
cyclic['self'] = cyclic;

test.each<[string, unknown, string]>([
  ['no object', { type: 'string' }, 'must be a JSON Schema with "type": "object"'],
  ['nothing', undefined, 'must be a JSON Schema with "type": "object"'],
  ['a list', [], 'must be a JSON Schema with "type": "object"'],
  ['an unknown type', { type: 'object', properties: { a: { type: 'money' } } }, 'Unsupported type: money'],
  [
    'a pattern that is none',
    { type: 'object', properties: { a: { type: 'string', pattern: '(' } } },
    "can't be checked",
  ],
  ['a condition', { type: 'object', if: {}, else: {} }, 'if/then/else'],
  ['a reference to nowhere', { type: 'object', properties: { a: { $ref: '#/$defs/b' } } }, 'Reference not found'],
  ['a reference to elsewhere', { type: 'object', properties: { a: { $ref: 'https://x/y' } } }, 'External $ref'],
  ['a circle', cyclic, 'is no JSON'],
  ['too long', { type: 'object', description: 'x'.repeat(100_001) }, 'is longer than 100000 characters'],
])('a schema that is %s is refused at declaration', (_, schema, problem) => {
  const declare = () => remoteTool({ name: 'odd', description: '', schema: schema as JsonObject });
  expect(declare).toThrow(UsageError);
  expect(declare).toThrow(problem);
});

test('excessive nesting is refused, in a schema and in arguments', () => {
  const nested = (inner: JsonObject, wrap: (inside: JsonObject) => JsonObject): JsonObject =>
    Array.from({ length: 2_000 }).reduce<JsonObject>(wrap, inner);
  const schema = nested({ type: 'object' }, (a) => ({ type: 'object', properties: { a } }));
  expect(() => remoteTool({ name: 'deep', description: '', schema })).toThrow(UsageError);
  const circular = { type: 'object', properties: { a: { $ref: '#' } } };
  const tool = remoteTool({ name: 'deep', description: '', schema: circular });
  expect(tool.parse({ a: { a: {} } })).toEqual({ ok: true, input: { a: { a: {} } } });
  expect(tool.parse(nested({}, (a) => ({ a })))).toEqual({ ok: false, problem: 'they are nested too deep' });
});

test.each(['', '1st', 'has space', 'ä', 'x'.repeat(65), 'a.b'])('%j is refused as a name', (name) => {
  expect(() => remoteTool({ name, description: '', schema: SCHEMA })).toThrow('is no name for a tool');
});

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 604_800_001])(
  'a remote call can’t take %d ms',
  async (timeoutMs) => {
    const problem = 'how long a remote call may take';
    expect(() => remoteTool({ name: 'a', description: '', schema: SCHEMA, timeoutMs })).toThrow(problem);
    await expect(agentOn({}, { remoteTimeoutMs: timeoutMs })).rejects.toThrow(problem);
  },
);

test('a declared tool does not change with the caller’s object', () => {
  const schema = structuredClone(SCHEMA) as { type: string };
  const tool = remoteTool({ name: 'a', description: '', schema });
  schema.type = 'string';
  expect(tool.schema).toEqual(SCHEMA);
});

test('a tool with no runner, or with two, is an error in the program', async () => {
  const { execute: _, ...bodiless } = sample;
  await expect(agentOn({}, { tools: [bodiless] })).rejects.toThrow(
    new TypeError('the tool sample has no execute, and is not declared remote'),
  );
  await expect(agentOn({}, { tools: [{ ...sample, remote: true }] })).rejects.toThrow(
    new TypeError('the tool sample is remote, and has an execute'),
  );
});

test.each([
  ['a remote one of the same name', 'sample'],
  ['one whose name differs only in case', 'SAMPLE'],
])('a local tool can’t be redefined by %s', async (_, name) => {
  const tools = [sample, remoteTool({ name, description: '', schema: SCHEMA })];
  await expect(agentOn({}, { tools })).rejects.toThrow(new UsageError(`there are two tools with the name ${name}`));
});
