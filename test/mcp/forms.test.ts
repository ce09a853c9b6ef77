// Questions of MCP servers to the user: forms of every kind of field, answered, corrected, declined; addresses.

import { expect, test } from 'vitest';
import type { JsonObject } from '@drover/protocol/json';
import type { Question } from '@drover/core/agent/calls/calls';
import { fieldsOf } from '@drover/mcp/form';
import { askingTools } from '../support/mcp/asking.ts';
import { address, call, desk } from '../support/mcp/brokers.ts';
import { sdkServer } from '../support/mcp/http/sdk-server.ts';

const FORM: JsonObject = {
  type: 'object',
  required: ['name', 'age', 'color'],
  properties: {
    name: { type: 'string', title: 'Your name', minLength: 2 },
    age: { type: 'integer', minimum: 18, maximum: 120 },
    color: { type: 'string', enum: ['r', 'g'], enumNames: ['Red', 'Green'] },
    sides: {
      type: 'array',
      items: {
        anyOf: [
          { const: 'l', title: 'Left' },
          { const: 'r', title: 'Right' },
        ],
      },
    },
    share: { type: 'number', default: 0.5 },
    news: { type: 'boolean', default: false },
    note: { type: 'string', pattern: '^(a+)+$' },
  },
};

/** A server that asks, and a user who answers each question with the next of these words. */
async function asked(params: object, words: readonly (string | false)[]) {
  const server = await sdkServer({ tools: askingTools(params) });
  const left = [...words];
  const answer = ({ field }: Question) => {
    const next = left.shift();
    const isNo = next === false || next === undefined;
    const said = field === undefined || isNo ? {} : { words: next };
    return { allowed: !isNo, by: 'user' as const, always: false, ...said };
  };
  const made = await desk([address(server.url)], { answer });
  const { output } = await call(made.line(), { server: 'remote', tool: 'ask' });
  return { output, ...made };
}

const form = (schema: JsonObject, message = 'Who are you?') => ({ mode: 'form', message, requestedSchema: schema });

test('every kind of field is asked for, and the values reach the server', async () => {
  const { output, questions } = await asked(form(FORM), ['', 'Ada', '36', 'green', '2, left', '', 'yes', '']);
  expect(JSON.parse(output)).toEqual({
    action: 'accept',
    content: { name: 'Ada', age: 36, color: 'g', sides: ['r', 'l'], share: 0.5, news: true },
  });
  expect(questions.map(({ subject, field }) => [subject.split('\n').at(-1), field?.kind])).toEqual([
    ['note: text, optional', undefined],
    ['name (Your name): text', 'text'],
    ['age: number', 'number'],
    ['color: one of 1 Red, 2 Green', 'choice'],
    ['sides: several, with commas, optional of 1 Left, 2 Right', 'choices'],
    ['share: number, optional, default 0.5', 'number'],
    ['news: yes or no, optional, default no', 'yes or no'],
    ['note: text, optional', 'text'],
  ]);
});

test('a value that does not fit is asked for again, with the mistake', async () => {
  const words = ['', 'A', 'Ada', '', 'old', '1.5', '12', '36', 'blue', '1', '', '', 'perhaps', '', ''];
  const { output, questions } = await asked(form(FORM), words);
  expect(JSON.parse(output)).toMatchObject({ action: 'accept', content: { name: 'Ada', age: 36, color: 'r' } });
  const mistakes = questions.flatMap(({ subject, field }) => (field ? subject.split('\n').slice(1, -1) : []));
  expect(mistakes).toEqual([
    'it takes at least 2 characters.',
    'it needs an answer.',
    'it takes a number.',
    'it takes a whole number.',
    'it takes at least 18.',
    'it takes one of: Red, Green.',
    'say yes or no.',
  ]);
});

test('a field that gets no good answer in five tries declines the form', async () => {
  const { output, events } = await asked(form(FORM), ['', 'A', 'B', 'C', 'D', 'E']);
  expect(JSON.parse(output)).toEqual({ action: 'decline' });
  expect(events.at(-1)).toMatchObject({ type: 'warning', message: expect.stringContaining('in 5 tries') as string });
});

test.each([
  ['the form', [false]],
  ['a field', ['', 'Ada', false]],
] as const)('a no to %s declines it', async (_, words) => {
  expect(JSON.parse((await asked(form(FORM), words)).output)).toEqual({ action: 'decline' });
});

test('a yes answers a lone yes or no', async () => {
  const schema = { type: 'object', required: ['sure'], properties: { sure: { type: 'boolean' } } };
  const { output, questions } = await asked(form(schema, 'Delete it?'), ['']);
  expect(JSON.parse(output)).toEqual({ action: 'accept', content: { sure: true } });
  expect(questions.map(({ subject }) => subject)).toEqual(['remote.ask asks: Delete it?\nsure: true']);
});

test('what the user fills in is in no event', async () => {
  const { output, events } = await asked(form(FORM), ['', 'Ada-Lovelace', '36', '1', '', '', '', '']);
  expect(output).toContain('Ada-Lovelace');
  expect(events.length).toBe(16);
  expect(JSON.stringify(events)).not.toContain('Ada-Lovelace');
});

test('a question that only an address answers is refused', async () => {
  const params = { mode: 'url', message: 'Pay here', url: 'https://evil.example/pay', elicitationId: 'e1' };
  const { output, questions } = await asked(params, ['', '']);
  expect(output).not.toContain('accept');
  expect(questions).toEqual([]);
});

test('escape sequences and floods in a form are not shown', async () => {
  const about = `\u001b[2J${'x'.repeat(5_000)}`;
  const schema = { type: 'object', required: ['a'], properties: { a: { type: 'string', description: about } } };
  const { questions } = await asked(form(schema, `\u001b]0;pwned\u0007${'y'.repeat(5_000)}`), ['', 'x']);
  expect(questions.length).toBe(2);
  for (const { subject } of questions) {
    expect(subject).not.toContain('\u001b');
    expect(subject.length).toBeLessThan(2_500);
  }
});

test('a form of more than 20 fields is declined with a warning', async () => {
  const properties = Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`f${at}`, { type: 'string' }]));
  const { output, questions, events } = await asked(form({ type: 'object', properties }), ['']);
  expect([JSON.parse(output), questions]).toEqual([{ action: 'decline' }, []]);
  expect(events).toEqual([
    { type: 'warning', message: expect.stringContaining('was declined: Who are you?') as string },
  ]);
});

test.each([{ type: 'object' }, { type: 'array', items: { type: 'string' } }, { type: 'strnig' }, 'string', {}])(
  'a field of %j makes a form that cannot be shown',
  (field) => {
    expect(fieldsOf({ type: 'object', properties: { a: field } })).toBe(undefined);
  },
);
