// Remote tools over HTTP: calls are handed out, results return in any order, and invalid ones change nothing.

import { readFile } from 'node:fs/promises';
import type { SessionSnapshot } from '@drover/client/wire';
import { journalPath } from '@drover/core/journal/session-journal';
import { expect, test } from 'vitest';
import { proves } from '../support/proves.ts';
import { eventsUntil, made, said, type ServeDesk, serveDesk } from '../support/serve/serve-desk.ts';
import { TOKEN } from '../support/serve/serve-host.ts';

const TOOL = { name: 'elsewhere', description: 'Runs at the client.', schema: { type: 'object', properties: {} } };
const TWO_CALLS = { answers: [{ calls: [{ name: 'elsewhere' }, { name: 'elsewhere' }] }, { text: 'Both are done.' }] };

type Waiting = { readonly desk: ServeDesk; readonly id: string; readonly calls: readonly string[] };

/** A session that waits for the results of two calls. */
async function waiting(settings: object = {}, script: Parameters<typeof serveDesk>[0] = TWO_CALLS): Promise<Waiting> {
  const desk = await serveDesk(script);
  const id = await made(desk, { tools: [TOOL], ...settings });
  const events = await said(desk, id, 'Go.');
  const awaited = events.find(({ event }) => event === 'awaiting_tool_execution')?.data;
  const calls = awaited?.type === 'awaiting_tool_execution' ? awaited.calls.map(({ callId }) => callId) : [];
  expect(calls).toHaveLength(2);
  expect(events.at(-1)?.data).toMatchObject({ type: 'session_end', outcome: 'suspended' });
  return { desk, id, calls };
}

const deliver = ({ desk, id }: Waiting, ...results: object[]): Promise<Response> =>
  desk.ask('POST', `/v1/sessions/${id}/tool-results`, { results });

const snapshot = async ({ desk, id }: Waiting): Promise<SessionSnapshot> =>
  (await (await desk.ask('GET', `/v1/sessions/${id}`)).json()) as SessionSnapshot;

test('results come one by one in any order; the last one continues the turn', async () => {
  const session = await waiting();
  const { desk, id, calls } = session;
  const { seq, status, pending } = await snapshot(session);
  expect({ status, pending: pending.map(({ callId }) => callId) }).toEqual({
    status: 'awaiting_tool_execution',
    pending: calls,
  });

  const first = await deliver(session, { callId: calls[1], output: 'second' });
  expect(await first.json()).toMatchObject({ status: 'awaiting_tool_execution', pending: [{ callId: calls[0] }] });
  const last = await deliver(session, { callId: calls[0], output: 'first', isError: true });
  expect(await last.json()).toEqual({ status: 'running', pending: [] });

  const listening = await desk.ask('GET', `/v1/sessions/${id}/events`, undefined, { 'last-event-id': String(seq) });
  const events = await eventsUntil(listening, 'session_end');
  expect(events.filter(({ event }) => event === 'tool_execution_end').map(({ data }) => data)).toMatchObject([
    { callId: calls[1], output: 'second', isError: false },
    { callId: calls[0], output: 'first', isError: true },
  ]);
  expect(events.at(-1)?.data).toMatchObject({ type: 'session_end', outcome: 'done' });
  expect(desk.model.requests.at(-1)?.body).toMatchObject({
    messages: [{}, {}, { content: [{ content: 'first' }, { content: 'second' }] }],
  });
});

test('a client can’t declare a tool with a server tool’s name, or an invalid one', async () => {
  const desk = await serveDesk({});
  const refused = async (tool: object): Promise<unknown> => {
    const response = await desk.ask('POST', '/v1/sessions', { tools: [tool] });
    const { detail } = (await response.json()) as { detail: string };
    return [response.status, detail];
  };
  expect(await refused({ ...TOOL, name: 'shell' })).toEqual([422, 'there are two tools with the name shell']);
  expect(await refused({ ...TOOL, schema: { type: 'string' } })).toEqual([
    422,
    'the schema of elsewhere must be a JSON Schema with "type": "object"',
  ]);
  expect(await (await desk.ask('GET', '/v1/sessions')).json()).toEqual({ sessions: [] });
});

test('a call without a result in time gets an error result, and the turn continues', async () => {
  const session = await waiting({ remoteTimeoutMs: 300 });
  const { desk, id } = session;
  const { seq } = await snapshot(session);
  const listening = await desk.ask('GET', `/v1/sessions/${id}/events`, undefined, { 'last-event-id': String(seq) });
  const events = await eventsUntil(listening, 'session_end');
  expect(events.filter(({ event }) => event === 'tool_execution_end').map(({ data }) => data)).toMatchObject([
    { output: expect.stringContaining('nothing came back in time') as string, isError: true },
    { isError: true },
  ]);
  expect(events.at(-1)?.data).toMatchObject({ outcome: 'done' });
});

test('a deadline holds for the next server too', async () => {
  const session = await waiting({ remoteTimeoutMs: 400 });
  await session.desk.app.close();
  const next = await serveDesk({ answers: [{ text: 'Without them.' }] }, { home: session.desk.home });
  await next.app.start();
  const listening = await next.ask('GET', `/v1/sessions/${session.id}/events`);
  const events: Awaited<ReturnType<typeof eventsUntil>>[number][] = [];
  for (let end = 0; end < 2; end++)
    events.push(
      ...(await eventsUntil(
        await next.ask('GET', `/v1/sessions/${session.id}/events`, undefined, {
          'last-event-id': String(events.at(-1)?.id ?? 0),
        }),
        'session_end',
      )),
    );
  await listening.body?.cancel();
  expect(events.at(-1)?.data).toMatchObject({ type: 'session_end', outcome: 'done' });
});

test('cancel gives up pending calls, and the turn', async () => {
  const session = await waiting();
  const response = await session.desk.ask('POST', `/v1/sessions/${session.id}/cancel`, {});
  expect([response.status, await response.json()]).toEqual([200, { status: 'idle' }]);
  expect(await snapshot(session)).toMatchObject({ status: 'idle', ending: 'cancelled', pending: [] });
  expect((await deliver(session, { callId: session.calls[0], output: '' })).status).toBe(409);
});

test('a message gives up pending calls only on request', async () => {
  const session = await waiting({}, { answers: [...TWO_CALLS.answers.slice(0, 1), { text: 'Never mind.' }] });
  const { desk, id } = session;
  const path = `/v1/sessions/${id}/execute`;
  expect((await desk.ask('POST', path, { content: 'Hello?' })).status).toBe(409);
  const events = await eventsUntil(await desk.ask('POST', path, { content: 'Stop that.', cancelPending: true }));
  expect(events.at(-1)?.data).toMatchObject({ outcome: 'done' });
});

type Case = [string, number, string, (session: Waiting) => Promise<Response>];
const raw = ({ desk, id }: Waiting, type: string, body: string | Uint8Array<ArrayBuffer>): Promise<Response> =>
  desk.app.fetch(
    new Request(`http://127.0.0.1:4700/v1/sessions/${id}/tool-results`, {
      method: 'POST',
      headers: { host: '127.0.0.1:4700', authorization: `Bearer ${TOKEN}`, 'content-type': type },
      body,
    }),
  );

const cases: readonly Case[] = [
  ['JSON that is none', 400, 'body.malformed', (session) => raw(session, 'application/json', '{"results": [')],
  [
    'bytes that are no text',
    400,
    'body.malformed',
    (session) => raw(session, 'application/json', new Uint8Array([0x22, 0xff, 0x22])),
  ],
  ['another content type', 415, 'content_type.unfit', (session) => raw(session, 'text/plain', '{"results": []}')],
  [
    'an unknown field',
    422,
    'body.unfit',
    (session) => deliver(session, { callId: session.calls[0], output: '', more: 1 }),
  ],
  ['a wrong type', 422, 'body.unfit', (session) => deliver(session, { callId: session.calls[0], output: 1 })],
  ['no result at all', 422, 'body.unfit', (session) => deliver(session)],
  [
    'a result for an unknown call',
    404,
    'call.unknown',
    (session) => deliver(session, { callId: 'call_0', output: '' }),
  ],
  [
    'one good result and one for an unknown call',
    404,
    'call.unknown',
    (session) => deliver(session, { callId: session.calls[0], output: '' }, { callId: 'call_0', output: '' }),
  ],
  [
    'two results for one call',
    409,
    'call.answered',
    (session) => deliver(session, { callId: session.calls[0], output: '' }, { callId: session.calls[0], output: '' }),
  ],
  [
    'a result that is too large',
    413,
    'result.too_large',
    (session) => deliver(session, { callId: session.calls[0], output: 'x'.repeat(1024 * 1024 + 1) }),
  ],
  [
    'a body that is too large',
    413,
    'body.too_large',
    (session) => deliver(session, { callId: session.calls[0], output: 'x'.repeat(9 * 1024 * 1024) }),
  ],
  [
    'a message while it waits',
    409,
    'session.awaiting',
    ({ desk, id }) => desk.ask('POST', `/v1/sessions/${id}/execute`, { content: 'Hello?' }),
  ],
  [
    'an empty message',
    422,
    'body.unfit',
    ({ desk, id }) => desk.ask('POST', `/v1/sessions/${id}/execute`, { content: '', cancelPending: true }),
  ],
  [
    'an answer that nobody asked for',
    404,
    'question.unknown',
    ({ desk, id }) => desk.ask('POST', `/v1/sessions/${id}/permissions/ask_0`, { allowed: true }),
  ],
];

for (const [name, status, type, act] of cases)
  proves(
    'server.refused-changes-nothing',
    `${name} is refused with ${status} and a problem document, and changes nothing`,
    async () => {
      const session = await waiting();
      const path = journalPath(session.desk.home, session.id);
      const before = await readFile(path);

      const response = await act(session);

      expect(response.status).toBe(status);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      expect(await response.json()).toMatchObject({ type, status, title: expect.any(String) as string });
      expect(await readFile(path)).toEqual(before);
      expect(await snapshot(session)).toMatchObject({ status: 'awaiting_tool_execution', pending: [{}, {}] });
    },
  );

test('a mistake in a body is reported with its place', async () => {
  const session = await waiting();
  const response = await deliver(session, { callId: 1, output: '', more: 1 });
  expect(await response.json()).toMatchObject({
    errors: [
      { path: 'results.0.callId', message: expect.any(String) as string },
      { path: 'results.0.more', message: 'there is no such field' },
    ],
  });
});

test('a call of another session is unknown, and so is its question', async () => {
  const one = await waiting();
  const other = await made(one.desk, { tools: [TOOL] });
  const response = await one.desk.ask('POST', `/v1/sessions/${other}/tool-results`, {
    results: [{ callId: one.calls[0], output: 'stolen' }],
  });
  expect(response.status).toBe(404);
  expect(await snapshot(one)).toMatchObject({ status: 'awaiting_tool_execution', pending: [{}, {}] });
});

test('a second result for one call is refused, even long after its turn', async () => {
  const session = await waiting();
  const { desk, id, calls } = session;
  const { seq } = await snapshot(session);
  await deliver(session, ...calls.map((callId) => ({ callId, output: 'ok' })));
  await eventsUntil(
    await desk.ask('GET', `/v1/sessions/${id}/events`, undefined, { 'last-event-id': String(seq) }),
    'session_end',
  );
  const again = await deliver(session, { callId: calls[0], output: 'again' });
  expect([again.status, ((await again.json()) as { type: string }).type]).toEqual([409, 'call.answered']);
});
