// Concurrent requests to one session: they are serialized, and one at a bad time is refused and changes nothing.

import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionSnapshot } from '@drover/client/wire';
import { journalPath } from '@drover/core/journal/session-journal';
import { defineTool } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { eventsOf, eventsUntil, isKept, made, said, serveDesk, type ServeDesk } from '../support/serve/serve-desk.ts';

const FAR = { name: 'far', description: 'Runs at the client.', schema: { type: 'object', properties: {} } };

/** A tool that runs until the test lets it go. */
function gate() {
  const [begun, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const tool = defineTool({
    name: 'gate',
    description: 'Waits.',
    input: z.object({}),
    access: 'none',
    subject: () => '',
    async run(_, { signal }) {
      begun.resolve();
      signal.addEventListener('abort', () => opened.resolve());
      await opened.promise;
      return 'open';
    },
  });
  return { tool, begun: begun.promise, open: () => opened.resolve() };
}

async function atWork(): Promise<{
  readonly desk: ServeDesk;
  readonly id: string;
  readonly stream: Response;
  readonly open: () => void;
}> {
  const { tool, begun, open } = gate();
  const desk = await serveDesk({ answers: [{ calls: [{ name: 'gate' }] }, { text: 'Through.' }] }, { tools: [tool] });
  const id = await made(desk, { tools: [FAR] });
  const stream = await desk.ask('POST', `/v1/sessions/${id}/execute`, { content: 'Go.' });
  await begun;
  return { desk, id, stream, open };
}

const typeOf = async (response: Response): Promise<unknown> => [
  response.status,
  ((await response.json()) as { type: string }).type,
];

test('an active session refuses messages, results and removal, and its turn continues', async () => {
  const { desk, id, stream, open } = await atWork();
  const path = journalPath(desk.home, id);
  const before = await readFile(path);
  const results = [{ callId: 'call_0', output: '' }];
  expect([
    await typeOf(await desk.ask('POST', `/v1/sessions/${id}/execute`, { content: 'And?' })),
    await typeOf(await desk.ask('POST', `/v1/sessions/${id}/execute`, { content: 'And?', cancelPending: true })),
    await typeOf(await desk.ask('POST', `/v1/sessions/${id}/tool-results`, { results })),
    await typeOf(await desk.ask('DELETE', `/v1/sessions/${id}`)),
  ]).toEqual([
    [409, 'session.running'],
    [409, 'session.running'],
    [404, 'call.unknown'],
    [409, 'session.running'],
  ]);
  expect(await readFile(path)).toEqual(before);
  open();
  const events = await eventsUntil(stream);
  expect(events.at(-1)?.data).toMatchObject({ type: 'session_end', outcome: 'done' });
  expect(desk.model.requests).toHaveLength(2);
});

test('of many concurrent messages one is accepted', async () => {
  const desk = await serveDesk({ answers: [{ text: 'One.', delayMs: 50 }] });
  const id = await made(desk);
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => desk.ask('POST', `/v1/sessions/${id}/execute`, { content: `${n}` })),
  );
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    200,
    ...Array.from({ length: 9 }, () => 409),
  ]);
  const taken = answers.find(({ status }) => status === 200);
  expect((await eventsUntil(taken ?? Response.error())).at(-1)?.event).toBe('session_end');
  expect(desk.model.requests).toHaveLength(1);
});

test('of many concurrent deliveries of one result one is accepted', async () => {
  const desk = await serveDesk({ answers: [{ calls: [{ name: 'far' }] }, { text: 'Done.' }] });
  const id = await made(desk, { tools: [FAR] });
  await said(desk, id, 'Go.');
  const { pending, seq } = (await (await desk.ask('GET', `/v1/sessions/${id}`)).json()) as SessionSnapshot;
  const results = pending.map(({ callId }) => ({ callId, output: 'once' }));
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => desk.ask('POST', `/v1/sessions/${id}/tool-results`, { results })),
  );
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    200,
    ...Array.from({ length: 9 }, () => 409),
  ]);
  const after = await desk.ask('GET', `/v1/sessions/${id}/events`, undefined, { 'last-event-id': String(seq) });
  const events = (await eventsUntil(after, 'session_end')).filter(isKept);
  expect(events.filter(({ event }) => event === 'tool_execution_end')).toHaveLength(1);
});

test('cancel ends the turn for all readers, and does nothing without a turn', async () => {
  const { desk, id, stream } = await atWork();
  const listening = await desk.ask('GET', `/v1/sessions/${id}/events`);
  const cancel = async (): Promise<unknown> => (await desk.ask('POST', `/v1/sessions/${id}/cancel`, {})).json();
  expect(await cancel()).toEqual({ status: 'idle' });
  for (const each of [stream, listening])
    expect((await eventsUntil(each, 'session_end')).at(-1)?.data).toMatchObject({ reason: 'interrupted' });
  const before = await readFile(journalPath(desk.home, id));
  expect(await cancel()).toEqual({ status: 'idle' });
  expect(await readFile(journalPath(desk.home, id))).toEqual(before);
});

test('a message right after a cancel waits for it, and is accepted', async () => {
  const desk = await serveDesk({ answers: [{ calls: [{ name: 'far' }] }, { text: 'Never mind.' }] });
  const id = await made(desk, { tools: [FAR] });
  await said(desk, id, 'Go.');
  const [cancelled, taken] = await Promise.all([
    desk.ask('POST', `/v1/sessions/${id}/cancel`, {}),
    desk.ask('POST', `/v1/sessions/${id}/execute`, { content: 'Something else.' }),
  ]);
  expect([await cancelled.json(), taken.status]).toEqual([{ status: 'idle' }, 200]);
  expect((await eventsUntil(taken)).at(-1)?.data).toMatchObject({ outcome: 'done' });
});

test('leaving the stream of a turn does not stop the turn', async () => {
  const { desk, id, stream, open } = await atWork();
  await stream.body?.cancel();
  open();
  const events = await eventsUntil(await desk.ask('GET', `/v1/sessions/${id}/events`), 'session_end');
  expect(events.at(-1)?.data).toMatchObject({ outcome: 'done' });
});

test('a session owned by another process is read-only', async () => {
  const { desk, id, open } = await atWork();
  const other = await serveDesk({}, { home: desk.home });
  const before = await readFile(journalPath(desk.home, id));
  expect(await (await other.ask('GET', `/v1/sessions/${id}`)).json()).toMatchObject({ id, status: 'running' });
  expect(await typeOf(await other.ask('POST', `/v1/sessions/${id}/execute`, { content: 'x' }))).toEqual([
    409,
    'journal.busy',
  ]);
  expect(await typeOf(await other.ask('DELETE', `/v1/sessions/${id}`))).toEqual([409, 'journal.busy']);
  expect(await readFile(journalPath(desk.home, id))).toEqual(before);
  const listening = await other.ask('GET', `/v1/sessions/${id}/events`);
  open();
  for await (const { data } of eventsOf(listening)) if (data.type === 'session_end') break;
});

test.each<[string, object, string]>([
  ['a model that there is not', { model: 'nobody/any' }, 'there is no model nobody/any'],
  ['a folder outside', { cwd: '..' }, 'cwd: there is no such folder inside of the one that is served'],
  ['a folder that is not there', { cwd: 'nowhere' }, 'cwd: there is no such folder inside of the one that is served'],
  ['a time that nobody waits', { remoteTimeoutMs: 0 }, 'remoteTimeoutMs'],
  ['a field that nobody knows', { modle: 'x' }, 'modle: there is no such field'],
])('%s starts no session and leaves nothing behind', async (_, wanted, words) => {
  const desk = await serveDesk({});
  const answer = await desk.ask('POST', '/v1/sessions', wanted);
  expect([answer.status, ((await answer.json()) as { detail: string }).detail]).toEqual([
    422,
    expect.stringContaining(words) as string,
  ]);
  expect(await readdir(join(desk.home, 'sessions')).catch(() => [])).toEqual([]);
});

test('sessions over the limit are told to retry', async () => {
  const desk = await serveDesk({ otherwise: { text: 'Hello.' } }, { bounds: { sessionsMax: 1, sessionIdleMs: 0 } });
  const [one, two] = await Promise.all([desk.ask('POST', '/v1/sessions', {}), desk.ask('POST', '/v1/sessions', {})]);
  expect([one.status, two.status].toSorted((a, b) => a - b)).toEqual([201, 503]);
  await expect.poll(async () => (await desk.ask('POST', '/v1/sessions', {})).status).toBe(201);
});

/** Imitates a server that was killed right after the question. */
async function cutAfterQuestion(home: string, id: string): Promise<void> {
  const path = journalPath(home, id);
  const lines = (await readFile(path, 'utf8')).split('\n');
  const asked = lines.findIndex((line) => line.includes('"type":"message_end"'));
  await writeFile(path, `${lines.slice(0, asked + 1).join('\n')}\n`);
}

test('turns that a killed server left are resumed, even above the open limit', async () => {
  const desk = await serveDesk({ answers: [{ text: 'First.' }], loop: true });
  const ids = [await made(desk), await made(desk), await made(desk)];
  for (const id of ids) await said(desk, id, 'Go.');
  await desk.app.close();
  for (const id of ids) await cutAfterQuestion(desk.home, id);
  const next = await serveDesk(
    { answers: [{ text: 'After all.' }], loop: true },
    { home: desk.home, bounds: { sessionsMax: 1, sessionIdleMs: 0 } },
  );
  await next.app.start();
  for (const id of ids) {
    const events = await eventsUntil(await next.ask('GET', `/v1/sessions/${id}/events`), 'session_end');
    expect(events.at(-1)?.data).toMatchObject({ outcome: 'done', messages: [{ content: [{ text: 'After all.' }] }] });
  }
});

test('an unresumable session does not keep the server from starting', async () => {
  const desk = await serveDesk({ answers: [{ text: 'First.' }] });
  const id = await made(desk);
  await said(desk, id, 'Go.');
  await desk.app.close();
  await cutAfterQuestion(desk.home, id);
  const next = await serveDesk({ otherwise: { text: 'Hello.' } }, { home: desk.home, brokenSession: id });
  await next.app.start();
  expect(next.diagnoses).toEqual([
    `a session could not go on ${JSON.stringify({ session: id, error: 'TypeError: nobody thought of this' })}`,
  ]);
  expect((await said(next, await made(next), 'Hello')).at(-1)?.event).toBe('session_end');
});
