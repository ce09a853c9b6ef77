// Sessions that drover serve opens itself: the client's options reach the model.

import type { Message } from '@drover/protocol/messages';
import { startRehearsal, type Rehearsal } from '@drover/rehearsal/server';
import type { Script } from '@drover/rehearsal/script';
import { expect, onTestFinished, test } from 'vitest';
import { desk, servedHere } from './served.ts';

async function servedBy(script: Script) {
  const model = await startRehearsal(script);
  onTestFinished(() => model.close());
  const env = {
    ANTHROPIC_BASE_URL: model.baseUrlFor('anthropic'),
    OPENAI_BASE_URL: model.baseUrlFor('openai'),
    ANTHROPIC_API_KEY: 'x',
    OPENAI_API_KEY: 'x',
  };
  return { model, ...(await servedHere(await desk(), [], env)) };
}

type Body = {
  readonly model: string;
  readonly temperature?: number;
  readonly top_p?: number;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
};

const bodies = ({ requests }: Rehearsal): readonly Body[] => requests.map(({ body }) => body as unknown as Body);
const textOf = ({ content }: Extract<Message, { role: 'user' | 'assistant' }>) =>
  content.map((part) => ('text' in part ? part.text : '')).join('');

test('a session starts with messages and options, and the request holds them', async () => {
  const { client, model } = await servedBy({ answers: [{ text: 'Blue, as I said.' }] });
  const session = await client.session({
    model: 'openai-chat/any',
    messages: [
      { role: 'user', content: 'What colour is the sky?' },
      { role: 'assistant', content: 'Blue.' },
    ],
    options: { temperature: 0.5, topP: 0.9 },
  });
  await (await session.execute('Again?')).result();
  const [body] = bodies(model);
  expect(body).toMatchObject({ model: 'any', temperature: 0.5, top_p: 0.9 });
  expect(body?.messages.slice(1).map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  const { messages } = await session.snapshot();
  expect(messages.map((message) => (message.role === 'tool' ? '' : textOf(message)))).toEqual([
    'What colour is the sky?',
    'Blue.',
    'Again?',
    'Blue, as I said.',
  ]);
});

test.each([
  ['temperature out of range', { options: { temperature: 3 } }, /options.temperature/],
  ['an unknown option', { options: { warmth: 1 } }, /options.warmth/],
  [
    'options that the provider does not take',
    { model: 'anthropic/any', options: { temperature: 1 } },
    /anthropic\/any/,
  ],
  ['a message of an unknown role', { messages: [{ role: 'system', content: 'x' }] }, /messages.0.role/],
])('%s is refused with 400, and no session is created', async (_, wanted, detail) => {
  const { client, where, token } = await servedBy({ answers: [] });
  const answer = await fetch(`${where.url}/v1/sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'openai-chat/any', ...wanted }),
  });
  expect([answer.status, await answer.json()]).toMatchObject([400, { detail: expect.stringMatching(detail) }]);
  expect(await client.sessions()).toEqual({ sessions: [] });
});

test('execute switches the model from that turn on', async () => {
  const { client, model } = await servedBy({ answers: [{ text: 'A.' }, { text: 'B.' }, { text: 'C.' }] });
  const session = await client.session({ model: 'openai-chat/one' });
  await (await session.execute('first')).result();
  await (await session.execute('second', { model: 'anthropic/two' })).result();
  await expect(session.execute('bad', { model: 'nowhere/three' })).rejects.toMatchObject({ status: 422 });
  await (await session.execute('third')).result();
  expect(bodies(model).map((body) => body.model)).toEqual(['one', 'two', 'two']);
  expect((await session.snapshot()).model).toBe('anthropic/two');
});

test('a remote tool has its own timeout, and others use that of their session', async () => {
  const { client } = await servedBy({ answers: [{ calls: [{ name: 'quick' }, { name: 'patient' }] }] });
  const tool = { description: 'Runs elsewhere.', schema: { type: 'object' } };
  const { id } = await client.createSession({
    model: 'openai-chat/any',
    remoteTimeoutMs: 90_000,
    tools: [
      { name: 'quick', ...tool, timeoutMs: 20_000 },
      { name: 'patient', ...tool },
    ],
  });
  for await (const event of client.execute(id, { content: 'Go.' })) {
    if (event.type !== 'awaiting_tool_execution') continue;
    const [quick = 0, patient = 0] = event.calls.map(({ deadline }) => Date.parse(deadline));
    // Both calls are handed out at the same time.
    expect(Math.round((patient - quick) / 10_000)).toBe(7);
    expect(quick - Date.parse(event.at)).toBeLessThanOrEqual(20_000);
  }
  expect((await client.snapshot(id)).tools.map(({ timeoutMs }) => timeoutMs)).toEqual([20_000, undefined]);
  await client.cancel(id);
});
