// The history in a journal: a fast fold that tolerates unknown records.

import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionOptions } from '@drover/core/session/session-options';
import { readJournalContents } from '@drover/core/journal/file/format';
import { foldSessionHistory } from '@drover/core/journal/history';
import { Journal, type JournalFile } from '@drover/core/journal/file/journal';
import { Recorder } from '@drover/core/journal/recorder';
import { journalPath, openSessionJournal } from '@drover/core/journal/session-journal';
import type { JsonObject } from '@drover/protocol/json';
import type { Script } from '@drover/rehearsal/script';
import { expect, onTestFinished, test } from 'vitest';
import { agentOn, temporaryFolder, type Rehearsed, type Settings } from '../../support/agent.ts';
import { story } from '../../support/story.ts';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };
const WRITTEN = { text: '<invoke name="list">\n<parameter name="path">.</parameter>\n</invoke>' };
const LISTS = { calls: [{ name: 'list', args: {} }] };
const DOWN = { fault: { fault: 'status' as const, status: 401 } };

type Life = Rehearsed & { readonly die: () => Promise<void> };

async function begin(home: string, script: Script, settings: Settings = {}): Promise<Life> {
  const { store, past, close } = await openSessionJournal(home, 's', HOOKS);
  onTestFinished(close);
  const options: Partial<SessionOptions> = { id: 's', store, ...(past && { past }) };
  return { ...(await agentOn(script, { ...settings, ...options })), die: close };
}

async function recordsOf(script: Script): Promise<readonly JsonObject[]> {
  const home = await temporaryFolder();
  const life = await begin(home, script);
  await life.run('go');
  await life.die();
  return readJournalContents(await readFile(journalPath(home, 's'))).records;
}

test('unknown record types do not change the history', async () => {
  const records = await recordsOf({ answers: [LISTS, { text: 'ok' }] });
  const strange = { v: 1, seq: 1, at: 'now', session: 's', type: 'from_the_future', message: 5, kept: 'perhaps' };
  const mixed = records.flatMap((record) => [strange, record]);
  expect(foldSessionHistory(mixed)).toEqual(foldSessionHistory(records));
});

test('a call written as text is not searched for again after a restart', async () => {
  const home = await temporaryFolder();
  const first = await begin(home, { answers: [WRITTEN] }, { limits: { stepsMax: 9, textCallRetriesMax: 0 } });
  await first.run('go');
  await first.die();
  const second = await begin(home, { answers: [{ text: 'ok' }] });
  expect(second.session.conversation.messages).toEqual(first.session.conversation.messages);
  const { events } = await second.run('and?');
  expect(events.filter(({ type }) => type === 'attempt_discarded')).toEqual([]);
});

test('a retracted call written as text is in no later history', async () => {
  const home = await temporaryFolder();
  const first = await begin(home, { answers: [WRITTEN, { text: 'Properly.' }] });
  await first.run('go');
  await first.die();
  const second = await begin(home, { answers: [] });
  expect(second.session.conversation.messages).toEqual(first.session.conversation.messages);
  expect(JSON.stringify(second.session.conversation.messages)).not.toContain('invoke');
});

test('a text call is retracted after resume too, and earlier work still counts', async () => {
  const home = await temporaryFolder();
  const first = await begin(home, { answers: [LISTS], otherwise: DOWN });
  await first.run('go');
  await first.die();
  const second = await begin(home, { answers: [WRITTEN], loop: true });
  const { events, result } = await second.run({ resume: true });
  expect(story(events).slice(0, 3)).toEqual(
    Array.from({ length: 3 }, () => 'discards an attempt: a call of list was written as text (invoke)'),
  );
  expect(result.outcome).toEqual({
    status: 'incomplete',
    failure: { kind: 'answer.text_call', tool: 'list', limit: 2 },
  });
});

test('a new message after a crash: started calls are uncertain, others did not run', async () => {
  const records = await recordsOf({ answers: [{ calls: [...LISTS.calls, ...LISTS.calls] }, { text: 'ok' }] });
  const at = records.findIndex(({ type }) => type === 'tool_execution_start');
  const past = foldSessionHistory(records.slice(0, at + 1));
  const { run, session } = await agentOn({ answers: [{ text: 'ok' }] }, { id: 's', ...(past && { past }) });
  await run('something else');
  const results = session.conversation.messages.flatMap((message) => (message.role === 'tool' ? message.results : []));
  expect(results.map(({ output }) => output)).toEqual([
    expect.stringMatching(/^UNCERTAIN: .*may or may not have taken effect/),
    'Not run: interrupted before it was started.',
  ]);
});

test('after a crash no event number is reused, not even that of an unstored delta', async () => {
  const home = await temporaryFolder();
  const first = await begin(home, { answers: [{ text: 'word '.repeat(100), tokensPerSecond: 1_000 }], chunkChars: 5 });
  const { events } = await first.run('go');
  await first.die();
  const { records } = readJournalContents(await readFile(journalPath(home, 's')));
  const at = records.findIndex(({ type, role }) => type === 'message_start' && role === 'assistant');
  const past = foldSessionHistory(records.slice(0, at + 1));
  const told = events.filter(({ type }) => type === 'text_delta').map(({ seq }) => seq);
  expect(told.length).toBeGreaterThan(1);
  expect(past?.lastSeq).toBeGreaterThan(Math.max(...told));
});

test('the end of an interrupted turn is durable before it is told, on any disk', async () => {
  const path = join(await temporaryFolder(), 'journal.jsonl');
  const openFile = async (name: string): Promise<JournalFile> => {
    const file = await open(name, 'w+');
    const write = async (...args: [Buffer, number, number, number]) => {
      await sleep(60);
      return file.write(...args);
    };
    return {
      write,
      datasync: () => file.datasync(),
      truncate: (size) => file.truncate(size),
      close: () => file.close(),
    } as JournalFile;
  };
  const { journal } = await Journal.open({ path, session: 's', ...HOOKS, openFile });
  onTestFinished(() => journal.close());
  const { session } = await agentOn(
    { answers: [{ text: 'word '.repeat(2_000), tokensPerSecond: 50 }, { text: 'ok' }] },
    { id: 's', store: new Recorder({ journal, diagnose: () => undefined }) },
  );
  const controller = new AbortController();
  const running = session.execute({ content: 'one' }, controller.signal);
  setTimeout(() => controller.abort(), 400);
  await running.result();
  expect(readJournalContents(await readFile(path)).records.at(-1)).toMatchObject({ type: 'session_end' });
  await session.execute({ content: 'two' }, new AbortController().signal).result();
  const ends = readJournalContents(await readFile(path)).records.filter(({ type }) => type === 'session_end');
  expect(ends.map(({ outcome }) => outcome)).toEqual(['cancelled', 'done']);
});

test('a session of ten thousand events is resumed within two seconds of CPU time', async () => {
  const step = (await recordsOf({ answers: [LISTS, { text: 'ok' }] })).filter(({ step }) => step === 1);
  const start = { v: 1, seq: 1, at: 'now', session: 's', type: 'session_start', model: 'a/b', cwd: '/' };
  const records = Array.from({ length: Math.ceil(10_000 / step.length) }, () => step).flat();
  const home = await temporaryFolder();
  const { journal } = await Journal.open({ path: journalPath(home, 's'), session: 's', ...HOOKS });
  await journal.append([start, ...records], true);
  await journal.close();
  // CPU time of this process, since the machine may be busy.
  const before = process.cpuUsage();
  const life = await begin(home, { answers: [] });
  const { user, system } = process.cpuUsage(before);
  expect(life.session.conversation.messages.length).toBeGreaterThan(1_000);
  expect((user + system) / 1e6).toBeLessThan(2);
});
