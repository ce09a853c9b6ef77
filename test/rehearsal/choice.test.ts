// How the server chooses the answer to a request.

import { expect, test } from 'vitest';
import type { JsonObject } from '@drover/rehearsal/json';
import type { Script } from '@drover/rehearsal/script';
import { at, post, requestFor, stage, textAt, type Stage } from './clients.ts';

const call = (id: string, name = 'read'): JsonObject => ({
  role: 'assistant',
  content: [{ type: 'tool_use', id, name, input: {} }],
});
const result = (id: string, content: string): JsonObject => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: id, content }],
});

/** The text of the answer to a conversation in Anthropic's API. */
async function reply({ server }: Stage, messages: readonly JsonObject[], more: JsonObject = {}): Promise<unknown> {
  const { json } = await post(server, 'anthropic', requestFor('anthropic', { ...more, messages }));
  return at(json, 'content.0.text') ?? at(json, 'content.0.input') ?? at(json, 'error.message');
}
const says = (content: string): JsonObject => ({ role: 'user', content });

test('an agent is found by name in the system prompt or first user text, or is default', async () => {
  const script: Script = {
    agents: {
      coordinator: [{ text: 'I plan' }],
      'task-1': [{ text: 'I work on 1' }],
      'task-12': [{ text: 'I work on 12' }],
    },
    answers: [{ text: 'I am nobody' }],
  };
  const on = await stage(script);
  expect([
    await reply(on, [says('hello')], { system: 'You are the coordinator.' }),
    await reply(on, [says('do task-12 now')]),
    await reply(on, [says('do task-1 now')]),
    await reply(on, [says('do something')]),
  ]).toEqual(['I plan', 'I work on 12', 'I work on 1', 'I am nobody']);
  expect(on.server.requests.map(({ agent }) => agent)).toEqual(['coordinator', 'task-12', 'task-1', 'default']);
});

test('an agent may have its own marker', async () => {
  const on = await stage({
    agents: { writer: { marker: '/you write/i', answers: [{ text: 'yes' }] } },
    otherwise: { text: 'no' },
  });
  expect([await reply(on, [says('YOU WRITE it')]), await reply(on, [says('writer')])]).toEqual(['yes', 'no']);
});

test('an agent may be found by a later text, and its answers count from there', async () => {
  const on = await stage({
    order: 'conversation',
    agents: {
      one: { assigned: 'Your task is one\\b', answers: [{ text: 'one begins' }, { text: 'one ends' }] },
      coordinator: { marker: 'the goal', answers: [{ text: 'I plan' }, { text: 'I am done' }] },
    },
  });
  const seed = [says('the goal'), { role: 'assistant', content: 'I plan' }];
  const assigned = [...seed, says('Your task is one.')];
  expect([
    await reply(on, [says('the goal')]),
    await reply(on, assigned),
    await reply(on, [...assigned, { role: 'assistant', content: 'one begins' }, says('go on')]),
    await reply(on, [...seed, says('what became of it?')]),
  ]).toEqual(['I plan', 'one begins', 'one ends', 'I am done']);
});

test('a conditional answer is given whenever it matches, and uses up no ordered one', async () => {
  const on = await stage({
    answers: [{ text: 'first' }, { when: { text: 'weather' }, text: 'rain' }, { text: 'second' }],
  });
  expect([
    await reply(on, [says('hi')]),
    await reply(on, [says('the weather?')]),
    await reply(on, [says('and the weather now?')]),
    await reply(on, [says('hi')]),
  ]).toEqual(['first', 'rain', 'rain', 'second']);
});

test('conditions: step, turn, tool, model, system and api', async () => {
  const on = await stage({
    answers: [
      { when: { step: 2, tool: 'grep' }, text: 'after grep' },
      { when: { step: 2 }, text: 'second step' },
      { when: { turn: 2 }, text: 'second turn' },
      { when: { model: '^big' }, text: 'big' },
      { when: { system: 'terse' }, text: 'ok' },
      { when: { api: 'openai' }, text: 'not here' },
      { text: 'plain' },
    ],
  });
  expect([
    await reply(on, [says('go'), call('a', 'grep'), result('a', 'x')]),
    await reply(on, [says('go'), call('a'), result('a', 'x')]),
    await reply(on, [says('go'), { role: 'assistant', content: 'done' }, says('more')]),
    await reply(on, [says('go')], { model: 'bigger' }),
    await reply(on, [says('go')], { system: 'be terse' }),
    await reply(on, [says('go')]),
  ]).toEqual(['after grep', 'second step', 'second turn', 'big', 'ok', 'plain']);
});

test('a conditional answer may be limited in number', async () => {
  const on = await stage({
    answers: [{ when: { text: 'x' }, times: 1, text: 'once' }],
    otherwise: { text: 'no more' },
  });
  expect([await reply(on, [says('x')]), await reply(on, [says('x')])]).toEqual(['once', 'no more']);
});

test('a function answers, or leaves the request to the others', async () => {
  const on = await stage({
    answers: [({ step, tools }) => (step === 2 ? { text: `tools: ${tools.join()}` } : undefined), { text: 'first' }],
  });
  const tools = [{ name: 'read', input_schema: { type: 'object' } }];
  expect([
    await reply(on, [says('go')], { tools }),
    await reply(on, [says('go'), call('a'), result('a', 'x')], { tools }),
  ]).toEqual(['first', 'tools: read']);
});

test('a function that throws is an error for the client, and the server survives', async () => {
  const { server } = await stage({
    answers: [
      (): undefined => {
        throw new Error('oops');
      },
    ],
  });
  const response = await fetch(`${server.url}/v1/responses`, {
    method: 'POST',
    body: JSON.stringify(requestFor('openai')),
  });
  expect([response.status, await response.text()]).toEqual([
    500,
    expect.stringMatching(/^the script failed: Error: oops/),
  ]);
});

test('by conversation, the answer depends on the number of answers in the request', async () => {
  const on = await stage({
    order: 'conversation',
    answers: [{ calls: [{ name: 'read' }] }, { text: 'second' }, { text: 'third' }],
  });
  const first = [says('go'), call('a'), result('a', 'x')];
  expect([
    await reply(on, first),
    await reply(on, first),
    await reply(on, [...first, call('b'), result('b', 'y')]),
    await reply(on, [says('go')]),
  ]).toEqual(['second', 'second', 'third', {}]);
});

test('Responses and Chat Completions read the conversation alike', async () => {
  const { server } = await stage({
    answers: [
      ({ step, turn, answers, results, latest, task, text }) => ({
        text: JSON.stringify({ step, turn, answers, results, latest, task, text }),
      }),
    ],
  });
  const seen = {
    step: 2,
    turn: 1,
    answers: 1,
    results: [
      { id: 'c1', name: 'read', output: 'one' },
      { id: 'c2', name: 'grep', output: 'two' },
    ],
    latest: ['one', 'two'],
    task: 'go',
    text: 'go',
  };
  const chat = await post(server, 'openai-chat', {
    model: 'm',
    messages: [
      { role: 'system', content: 'be good' },
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: 'well',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'read', arguments: '{}' } },
          { id: 'c2', type: 'function', function: { name: 'grep', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'one' },
      { role: 'tool', tool_call_id: 'c2', content: [{ type: 'text', text: 'two' }] },
    ],
  });
  expect(JSON.parse(textAt(chat.json, 'choices.0.message.content'))).toEqual(seen);
  const responses = await post(server, 'openai', {
    model: 'm',
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'go' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'well' }] },
      { type: 'function_call', call_id: 'c1', name: 'read', arguments: '{}' },
      { type: 'function_call', call_id: 'c2', name: 'grep', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'one' },
      { type: 'function_call_output', call_id: 'c2', output: 'two' },
    ],
  });
  expect(JSON.parse(textAt(responses.json, 'output.0.content.0.text'))).toEqual(seen);
});

test('templates are filled in texts and deep in arguments; unknown ones stay', async () => {
  const on = await stage({
    answers: [
      {
        when: { text: /fix (\w+) in (\S+)/ },
        calls: [
          {
            name: 'edit',
            args: {
              path: '{{ match.2 }}',
              deep: [{ all: '{{match.1}} {{ step }} {{ turn }} {{ agent }} {{ text }}' }],
              n: 1,
            },
          },
        ],
      },
      { when: { step: 2 }, text: '{{ lastResult }}/{{ results.0 }}/{{ results.9 }}/{{ unknown }}' },
    ],
  });
  expect(await reply(on, [says('fix typos in a.md')])).toEqual({
    path: 'a.md',
    deep: [{ all: 'typos 1 1 default fix typos in a.md' }],
    n: 1,
  });
  expect(
    await reply(on, [
      says('x'),
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'a', name: 'r', input: {} },
          { type: 'tool_use', id: 'b', name: 'r', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: 'one' },
          { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'two' }] },
        ],
      },
    ]),
  ).toBe('two/one//{{ unknown }}');
});

test('an exhausted script says so', async () => {
  const { server } = await stage({ answers: [{ text: 'only' }] });
  await post(server, 'openai', requestFor('openai'));
  const { status, json } = await post(server, 'openai', requestFor('openai'));
  expect(status).toBe(400);
  expect(json).toEqual({
    error: {
      type: 'rehearsal_script_exhausted',
      message:
        'the script has no answer for request 2 (agent default, turn 1, step 1); add one, or give `loop` or `otherwise`',
      param: null,
      code: null,
    },
  });
  expect(server.rejections).toBe(0);
});

test('`loop` restarts the answers and `otherwise` fills in', async () => {
  const looping = await stage({ answers: [{ text: 'a' }, { text: 'b' }], loop: true });
  expect([
    await reply(looping, [says('x')]),
    await reply(looping, [says('x')]),
    await reply(looping, [says('x')]),
  ]).toEqual(['a', 'b', 'a']);
  const filled = await stage({ answers: [{ text: 'a' }], otherwise: { text: 'z' } });
  expect([
    await reply(filled, [says('x')]),
    await reply(filled, [says('x')]),
    await reply(filled, [says('x')]),
  ]).toEqual(['a', 'z', 'z']);
});

test('an answer spoiled by a listed fault is repeated, but not by its own fault', async () => {
  const ruled = await stage({
    answers: [{ text: 'a' }, { text: 'b' }],
    faults: [
      { at: 1, fault: 'status', status: 529 },
      { at: 2, fault: 'cut' },
    ],
  });
  await reply(ruled, [says('x')]);
  await expect(reply(ruled, [says('x')])).rejects.toThrow();
  expect([await reply(ruled, [says('x')]), await reply(ruled, [says('x')])]).toEqual(['a', 'b']);

  const own = await stage({ answers: [{ text: 'a', fault: 'cut' }, { text: 'b' }] });
  await expect(reply(own, [says('x')])).rejects.toThrow();
  expect(await reply(own, [says('x')])).toBe('b');
});
