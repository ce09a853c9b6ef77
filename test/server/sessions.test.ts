// Sessions over HTTP, through the app alone: started, used, streamed and removed.

import { existsSync } from 'node:fs';
import { readJournalFile } from '@drover/core/journal/file/journal';
import { journalPath, sessionFolder } from '@drover/core/journal/session-journal';
import { expect, test } from 'vitest';
import { eventsUntil, isKept, made, said, serveDesk } from '../support/serve/serve-desk.ts';

test('a session is started, gets a message, and answers with the events of its turn', async () => {
  const desk = await serveDesk({ answers: [{ text: 'Hello to you.' }] });
  const response = await desk.ask('POST', '/v1/sessions', {});
  expect(response.status).toBe(201);
  const { id } = (await response.json()) as { id: string };
  expect(id).toMatch(/^ses_[0-9a-f]{32}$/);

  const events = await said(desk, id, 'Hello');

  expect(events.filter(isKept).map(({ event }) => event)).toEqual([
    'message_start',
    'message_end',
    'message_start',
    'text_start',
    'text_end',
    'usage',
    'message_end',
    'done',
    'session_end',
  ]);
  for (const { id: number, event, data } of events) expect([data.seq, data.type]).toEqual([number, event]);
});

test('all durable events are replayed in order, and live ones follow', async () => {
  const desk = await serveDesk({ answers: [{ text: 'One.' }, { text: 'Two.' }] });
  const id = await made(desk);
  const first = await said(desk, id, 'first');
  const listening = await desk.ask('GET', `/v1/sessions/${id}/events`);
  const heard = eventsUntil(listening, 'session_end').then(async (past) => [
    ...past,
    ...(await eventsUntil(
      await desk.ask('GET', `/v1/sessions/${id}/events`, undefined, { 'last-event-id': String(past.at(-1)?.id) }),
      'session_end',
    )),
  ]);
  const second = await said(desk, id, 'second');

  const { records } = await readJournalFile(journalPath(desk.home, id));
  const kept = records.filter(({ type }) => type !== 'partial');
  expect((await heard).filter(isKept).map(({ data }) => data)).toEqual(kept);
  expect(kept.slice(1)).toEqual([...first, ...second].filter(isKept).map(({ data }) => data));
});

test('a reader from before a message gets every delta, however late it reads', async () => {
  const desk = await serveDesk({ answers: [{ text: 'Hello to you.' }] });
  const id = await made(desk);
  const listening = await desk.ask('GET', `/v1/sessions/${id}/events`);
  const told = await said(desk, id, 'Hello');

  const heard = await eventsUntil(listening, 'session_end');

  expect(told.some(({ event }) => event === 'text_delta')).toBe(true);
  expect(heard.slice(1)).toEqual(told);
});

test('a snapshot holds the state of a session and the event to listen from', async () => {
  const desk = await serveDesk({ answers: [{ text: 'Hello to you.' }] });
  const id = await made(desk);
  const before = (await (await desk.ask('GET', `/v1/sessions/${id}`)).json()) as object;
  expect(before).toEqual({
    id,
    seq: 1,
    status: 'idle',
    model: 'test/scripted',
    cwd: desk.root,
    title: '',
    messages: [],
    tools: [],
    pending: [],
    questions: [],
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  });
  const events = await said(desk, id, 'Hello\nthere');
  const after = (await (await desk.ask('GET', `/v1/sessions/${id}`)).json()) as object;
  expect(after).toMatchObject({ seq: events.at(-1)?.id, status: 'idle', ending: 'done', title: 'Hello' });
});

test('a removed session is gone, and so are its streams', async () => {
  const desk = await serveDesk({ answers: [{ text: 'Hello.' }] });
  const id = await made(desk);
  await said(desk, id, 'Hello');
  const stream = await desk.ask('GET', `/v1/sessions/${id}/events`);
  expect((await desk.ask('DELETE', `/v1/sessions/${id}`)).status).toBe(204);
  await eventsUntil(stream);
  expect(existsSync(sessionFolder(desk.home, id))).toBe(false);
  expect((await desk.ask('GET', `/v1/sessions/${id}`)).status).toBe(404);
});

test('a server that closes ends the streams of all sessions', async () => {
  const desk = await serveDesk({});
  const ids = [await made(desk), await made(desk)];
  const streams = await Promise.all(ids.map((id) => desk.ask('GET', `/v1/sessions/${id}/events`)));
  await desk.app.close();
  for (const stream of streams) await eventsUntil(stream);
});

test('the initial messages of a session outlive the server', async () => {
  const messages = [
    { role: 'user', content: 'What colour is the sky?' },
    { role: 'assistant', content: 'Blue.' },
  ];
  const first = await serveDesk({});
  const id = await made(first, { messages });
  await first.app.close();
  const next = await serveDesk({ answers: [{ text: 'Still blue.' }] }, { home: first.home });
  await said(next, id, 'Again?');
  type Sent = { readonly messages: readonly { readonly role: string }[] };
  const sent = next.model.requests.map(({ body }) => body as unknown as Sent);
  expect(sent.map(({ messages: all }) => all.map(({ role }) => role))).toEqual([['user', 'assistant', 'user']]);
});
