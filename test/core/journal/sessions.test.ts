// The list of sessions: made from the journals, cached in an index, and rebuilt when that is lost.

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Journal, readJournalFile } from '@drover/core/journal/file/journal';
import type { JsonObject } from '@drover/protocol/json';
import { retellJournal } from '@drover/core/journal/retelling';
import { journalPath, openSessionJournal } from '@drover/core/journal/session-journal';
import { isSessionLive, listSessions } from '@drover/core/journal/sessions';
import { expect, test } from 'vitest';
import { agentOn, temporaryFolder } from '../../support/agent.ts';
import { story } from '../../support/story.ts';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };

async function lived(home: string, id: string, prompt: string, status: number): Promise<void> {
  const { store, past, close } = await openSessionJournal(home, id, HOOKS);
  const { run } = await agentOn(
    { answers: [{ text: 'ok', ...(status !== 200 && { fault: { fault: 'status' as const, status } }) }] },
    { id, store, ...(past && { past }) },
  );
  await run(prompt);
  await close();
}

test('sessions are listed newest first, with prompt and ending', async () => {
  const home = await temporaryFolder();
  await lived(home, 'ses_a', 'first task\nwith details', 200);
  await lived(home, 'ses_b', 'second task', 401);
  expect(listSessions(home).map(({ id, title, state, turns, model }) => [id, title, state, turns, model])).toEqual([
    ['ses_b', 'second task', 'error', 1, 'anthropic/scripted'],
    ['ses_a', 'first task', 'done', 1, 'anthropic/scripted'],
  ]);
  expect(listSessions(join(home, 'nowhere'))).toEqual([]);
});

test('the index is only a cache: without it the list is the same', async () => {
  const home = await temporaryFolder();
  await lived(home, 'ses_a', 'a task', 200);
  const rows = listSessions(home);
  await writeFile(join(home, 'index.sqlite'), 'this is no database'.repeat(100));
  expect(listSessions(home)).toEqual(rows);
  await rm(join(home, 'index.sqlite'));
  expect(listSessions(home)).toEqual(rows);
  await lived(home, 'ses_a', 'more', 200);
  expect(listSessions(home)[0]?.turns).toBe(2);
});

test('without a writable index the list is made from the journals', async () => {
  const home = await temporaryFolder();
  await lived(home, 'ses_a', 'a task', 200);
  await mkdir(join(home, 'index.sqlite'));
  expect(listSessions(home).map(({ id }) => id)).toEqual(['ses_a']);
});

test('a damaged journal is listed as such', async () => {
  const home = await temporaryFolder();
  await lived(home, 'ses_a', 'a task', 200);
  const text = await readFile(journalPath(home, 'ses_a'), 'utf8');
  await writeFile(journalPath(home, 'ses_a'), text.replace('"done"', '"gone"'));
  expect(listSessions(home)[0]?.state).toBe('damaged');
});

test('a session is live while a process writes it', async () => {
  const home = await temporaryFolder();
  const { journal } = await Journal.open({ path: journalPath(home, 's'), session: 's', ...HOOKS });
  expect([isSessionLive(home, 's'), isSessionLive(home, 'nobody')]).toEqual([true, false]);
  await journal.close();
  expect(isSessionLive(home, 's')).toBe(false);
});

test('a new model on resume is reported and becomes the session’s model', async () => {
  const home = await temporaryFolder();
  const first = await openSessionJournal(home, 's', HOOKS);
  const { run } = await agentOn({ answers: [{ text: 'ok' }] }, { id: 's', store: first.store });
  await run('go');
  await first.close();
  const { store, past, close } = await openSessionJournal(home, 's', HOOKS);
  const second = await agentOn({ answers: [{ text: 'ok' }] }, { id: 's', store, api: 'openai', ...(past && { past }) });
  const { events } = await second.run('more');
  await close();
  expect(events[0]).toMatchObject({ type: 'session_start', model: 'openai/scripted' });
  expect(listSessions(home)[0]).toMatchObject({ model: 'openai/scripted', turns: 2 });
});

test('reading a journal twice gives the same events', async () => {
  const home = await temporaryFolder();
  const { store, close } = await openSessionJournal(home, 's', HOOKS);
  const { run } = await agentOn(
    { answers: [{ thinking: 'hm', text: 'Looking.', calls: [{ name: 'list', args: {} }] }, { text: 'Done.' }] },
    { id: 's', store },
  );
  const { events } = await run('go');
  await close();
  const { records } = await readJournalFile(journalPath(home, 's'));
  const told = retellJournal(records);
  expect(story(told)).toEqual(story(events));
  expect(told.flatMap((event) => (event.type === 'text_delta' ? [event.delta] : []))).toEqual(['Looking.', 'Done.']);
});

test('notes of an answer are told only after a crash, and then retracted', () => {
  const at = { v: 1, at: 'now', session: 's', turn: 1, step: 1 };
  const begun = [
    { ...at, seq: 1, type: 'session_start', model: 'a/b', cwd: '/' },
    { ...at, seq: 2, type: 'message_start', role: 'assistant' },
  ];
  const note = { ...at, seq: 3, type: 'partial', part: 0, kind: 'text', from: 0, text: 'half an ans' };
  const told = (...more: JsonObject[]) => retellJournal([...begun, ...more]).slice(2);
  expect(told(note)).toMatchObject([{ type: 'text_delta', delta: 'half an ans' }, { type: 'attempt_discarded' }]);
  expect(told(note, { ...at, seq: 4, type: 'attempt_discarded', reason: 'cut' })).toMatchObject([
    { type: 'attempt_discarded', reason: 'cut' },
  ]);
  const whole = { role: 'assistant', content: [{ type: 'text', text: 'half an answer' }] };
  expect(told(note, { ...at, seq: 4, type: 'message_end', message: whole })).toMatchObject([{ type: 'message_end' }]);
});
