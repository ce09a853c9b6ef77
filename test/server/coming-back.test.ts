// Readers that reconnect: Last-Event-ID delivers every later event exactly once, whatever happens meanwhile.

import { DroverClient } from '@drover/client/client';
import type { Recorded } from '@drover/protocol/events';
import { readJournalFile } from '@drover/core/journal/file/journal';
import { journalPath } from '@drover/core/journal/session-journal';
import { createSimpleTool } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { comingAndGoing } from '../support/serve/coming-and-going.ts';
import { proves } from '../support/proves.ts';
import { eventsOf, isKept, made, said, serveDesk, type Told } from '../support/serve/serve-desk.ts';
import { TOKEN } from '../support/serve/serve-host.ts';

proves('server.every-event-once', 'reconnecting every 50 ms during events loses and repeats nothing', async () => {
  const { heard, kept, connections } = await comingAndGoing(2_000);
  expect(heard).toEqual(kept);
  expect(connections).toBeGreaterThan(10);
});

const loud = createSimpleTool(
  { name: 'loud', description: 'Loud.', input: z.object({}), access: 'none', subject: () => '' },
  async () => ({ output: 'ok', details: 'x'.repeat(190_000) }),
);

test('a slow client is dropped at the bound, reconnects, and misses nothing', async () => {
  const steps = Array.from({ length: 8 }, () => ({ calls: Array.from({ length: 20 }, () => ({ name: 'loud' })) }));
  const desk = await serveDesk(
    { answers: [...steps, { text: 'Done.' }] },
    { tools: [loud], bounds: { streamBytesMax: 5 * 1024 * 1024 } },
  );
  const { url } = await desk.listen();
  const client = new DroverClient({ baseUrl: url, token: TOKEN });
  const id = await made(desk);
  const lost: string[] = [];
  const events = client.events(id, {
    onConnection: (connection) => void (connection.state === 'lost' && lost.push(connection.reason)),
  });
  const heard: Recorded[] = [];
  const first = await events.next();
  if (first.done !== true) heard.push(first.value);
  // The reader is disconnected while everything happens.
  await said(desk, id, 'Be loud.');
  for await (const event of events) {
    if (!event.type.endsWith('_delta')) heard.push(event);
    if (event.type === 'session_end') break;
  }
  const { records } = await readJournalFile(journalPath(desk.home, id));
  expect(heard).toEqual(records.filter(({ type }) => type !== 'partial'));
  expect(lost).toEqual(['this reader is too slow: come back with the number of the last event']);
});

test('Last-Event-ID holds for the next server, and for a reader of another’s session', async () => {
  const desk = await serveDesk({ answers: [{ text: 'One.' }, { text: 'Two.' }] });
  const id = await made(desk);
  const before = (await said(desk, id, 'first')).filter(isKept);
  await desk.app.close();
  const next = await serveDesk({ answers: [{ text: 'Two.' }] }, { home: desk.home });
  const other = await serveDesk({}, { home: desk.home });
  const from = { 'last-event-id': String(before[2]?.id) };
  const [here, elsewhere] = await Promise.all(
    [next, other].map((each) => each.ask('GET', `/v1/sessions/${id}/events`, undefined, from)),
  );
  const again = (await said(next, id, 'second')).filter(isKept);
  const all = [...before.slice(3), ...again];
  for (const response of [here, elsewhere]) {
    const heard: Told[] = [];
    for await (const told of eventsOf(response ?? Response.error())) {
      if (isKept(told)) heard.push(told);
      if (told.id === all.at(-1)?.id) break;
    }
    expect(heard).toEqual(all);
  }
});

test('a session that moves between servers is heard without a gap', async () => {
  const desk = await serveDesk({ answers: [{ text: 'One.' }] });
  const other = await serveDesk({ answers: [{ text: 'Two.' }] }, { home: desk.home });
  const id = await made(desk);
  const listening = await other.ask('GET', `/v1/sessions/${id}/events`);
  const first = (await said(desk, id, 'first')).filter(isKept);
  await desk.app.close();
  // At once, before the other reader has read the file again.
  const second = (await said(other, id, 'second')).filter(isKept);
  const heard: Told[] = [];
  for await (const told of eventsOf(listening)) {
    if (isKept(told)) heard.push(told);
    if (told.id === second.at(-1)?.id) break;
  }
  expect(heard.slice(1)).toEqual([...first, ...second]);
});

test.each(['x', '-1', '1.5', '9'.repeat(16), '0x1'])('%s is not an event number', async (given) => {
  const desk = await serveDesk({});
  const id = await made(desk);
  const answer = await desk.ask('GET', `/v1/sessions/${id}/events`, undefined, { 'last-event-id': given });
  expect([answer.status, await answer.json()]).toMatchObject([400, { type: 'last_event_id.malformed' }]);
});

test('an idle stream sends heartbeats', async () => {
  const desk = await serveDesk({}, { bounds: { commentMs: 20 } });
  const id = await made(desk);
  const { body } = await desk.ask('GET', `/v1/sessions/${id}/events`);
  let text = '';
  for await (const chunk of body ?? []) {
    text += new TextDecoder().decode(chunk);
    if (text.split(': still here\n\n').length > 2) break;
  }
  expect(text).toMatch(
    /^retry: 1000\n\nid: 1\nevent: session_start\ndata: [^\n]+\n\n: still here\n\n: still here\n\n$/,
  );
});

test.each([
  ['the session is open', false],
  ['the session is closed', true],
])('a reader that names an unknown event restarts from the last one: %s', async (_, isNext) => {
  const before = await serveDesk({ answers: [{ text: 'One.' }, { text: 'Two.' }] });
  const id = await made(before);
  const last = (await said(before, id, 'first')).at(-1)?.data.seq ?? 0;
  if (isNext) await before.app.close();
  const desk = isNext ? await serveDesk({ answers: [{ text: 'Two.' }] }, { home: before.home }) : before;
  const path = `/v1/sessions/${id}/events`;
  const answer = await desk.ask('GET', path, undefined, { 'last-event-id': '999999999' });
  const reason = `event 999999999 was never told, the last one is ${last}: come back with that number`;
  const resync = JSON.stringify({ type: 'resync', seq: last, reason });
  expect(await answer.text()).toBe(`retry: 1000\n\nid: ${last}\nevent: resync\ndata: ${resync}\n\n`);

  const { url } = await desk.listen();
  const lost: string[] = [];
  const isBack = Promise.withResolvers<void>();
  const events = new DroverClient({ baseUrl: url, token: TOKEN }).events(id, {
    after: 999_999_999,
    onConnection: (connection) => {
      if (connection.state === 'lost') lost.push(connection.reason);
      else if (lost.length > 0) isBack.resolve();
    },
  });
  const heard: Recorded[] = [];
  const hearing = (async () => {
    for await (const event of events) {
      heard.push(event);
      if (event.type === 'session_end') return;
    }
  })();
  await isBack.promise;
  const told = (await said(desk, id, 'second')).filter(isKept);
  await hearing;
  expect(lost).toEqual([reason]);
  expect(heard.filter(({ type }) => !type.endsWith('_delta'))).toEqual(told.map(({ data }) => data));
});
