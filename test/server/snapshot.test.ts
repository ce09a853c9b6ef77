// The snapshot of a session: its length, and how much of the journal it reads.

import { open, stat } from 'node:fs/promises';
import type { SessionSnapshot } from '@drover/client/wire';
import { journalPath } from '@drover/core/journal/session-journal';
import { expect, test } from 'vitest';
import { made, said, serveDesk, type ServeDesk } from '../support/serve/serve-desk.ts';

async function snapshot(desk: ServeDesk, path: string): Promise<SessionSnapshot> {
  return (await (await desk.ask('GET', `/v1/sessions/${path}`)).json()) as SessionSnapshot;
}

test('a snapshot holds the requested number of last messages', async () => {
  const desk = await serveDesk({ answers: [{ text: 'One.' }, { text: 'Two.' }] });
  const id = await made(desk);
  await said(desk, id, 'first');
  await said(desk, id, 'second');
  const all = await snapshot(desk, id);
  expect(all.messages).toHaveLength(4);
  expect(await snapshot(desk, `${id}?messages=1`)).toEqual({ ...all, messages: all.messages.slice(3) });
  expect(await snapshot(desk, `${id}?messages=0`)).toEqual({ ...all, messages: [] });
  expect(await snapshot(desk, `${id}?messages=9`)).toEqual(all);
});

test.each(['x', '-1', '1.5', ''])('messages=%s is refused with 400', async (given) => {
  const desk = await serveDesk({});
  const answer = await desk.ask('GET', `/v1/sessions/${await made(desk)}?messages=${given}`);
  expect([answer.status, await answer.json()]).toMatchObject([400, { type: 'query.malformed' }]);
});

test('an unused session that another server has open is idle', async () => {
  const desk = await serveDesk({});
  const other = await serveDesk({}, { home: desk.home });
  expect((await snapshot(other, await made(desk))).status).toBe('idle');
});

test('the next snapshot reads only what was added to the journal', async () => {
  const desk = await serveDesk({ answers: [{ text: 'One.' }, { text: 'Two.' }] });
  const id = await made(desk);
  await said(desk, id, 'first');
  const before = await snapshot(desk, id);
  // Records already read are not read again, so damage in them goes unnoticed.
  const path = journalPath(desk.home, id);
  const half = Math.floor((await stat(path)).size / 2);
  await using file = await open(path, 'r+');
  await file.write('#', half);
  expect(await snapshot(desk, id)).toEqual(before);
  await said(desk, id, 'second');
  const after = await snapshot(desk, id);
  expect(after.messages.slice(0, 2)).toEqual(before.messages);
  expect(after.messages).toHaveLength(4);
});
