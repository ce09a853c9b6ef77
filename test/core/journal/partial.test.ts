// Partial answers are noted once a second, and the whole answer replaces them.

import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Recorded } from '@drover/protocol/events';
import { readJournalContents } from '@drover/core/journal/file/format';
import { foldSessionHistory } from '@drover/core/journal/history';
import { Recorder } from '@drover/core/journal/recorder';
import { journalPath, openSessionJournal } from '@drover/core/journal/session-journal';
import type { JsonObject } from '@drover/protocol/json';
import { EventRedaction } from '@drover/core/redaction/event-redaction';
import { Redactor } from '@drover/core/redaction/redactor';
import { expect, test } from 'vitest';
import { agentOn, temporaryFolder } from '../../support/agent.ts';
import { stoppedClock } from '../../support/clock.ts';

const at = { v: 1, seq: 1, at: 'now', session: 's', turn: 1, step: 1 } as const;
const delta = (text: string, part = 0): Recorded => ({ ...at, type: 'text_delta', part, delta: text });
const thought = (text: string): Recorded => ({ ...at, type: 'thinking_delta', part: 0, delta: text });
const whole = (text: string): Recorded => ({
  ...at,
  type: 'message_end',
  message: {
    role: 'assistant',
    content: [{ type: 'text', text }],
    stop: 'stop',
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  },
});

/** An in-memory journal, as slow as a bad disk. */
function slowJournal(delayMs: () => number) {
  const records: JsonObject[] = [];
  let last = Promise.resolve();
  const append = (more: readonly JsonObject[]): Promise<void> => {
    last = last
      .then(() => new Promise<void>((resolve) => void setTimeout(resolve, delayMs())))
      .then(() => void records.push(...more));
    return last;
  };
  return { records, append };
}

test('notes come at most once a period, with only new text', async () => {
  const pass = stoppedClock();
  const journal = slowJournal(() => 0);
  const recorder = new Recorder({ journal, noteMs: 100, diagnose: () => undefined });
  for (let n = 0; n < 45; n++) {
    recorder.note(delta(`${n} `));
    await pass(10);
  }
  await pass(100);
  expect(journal.records).toHaveLength(5);
  let text = '';
  for (const record of journal.records) {
    expect(record['from']).toBe(text.length);
    text += typeof record['text'] === 'string' ? record['text'] : '';
  }
  expect(text).toMatch(/^0 1 2 .* 44 $/);
});

test('a note carries the time of its newest piece', async () => {
  const pass = stoppedClock();
  const journal = slowJournal(() => 0);
  const recorder = new Recorder({ journal, noteMs: 20, diagnose: () => undefined });
  recorder.note({ ...delta('one '), at: '12:00' });
  await pass(25);
  recorder.note({ ...delta('two '), at: '12:05' });
  await pass(25);
  expect(journal.records.map((record) => [record['text'], record['at']])).toEqual([
    ['one ', '12:00'],
    ['two ', '12:05'],
  ]);
});

test('only blocks that changed are noted, and thinking is marked as unsigned', async () => {
  const pass = stoppedClock();
  const journal = slowJournal(() => 0);
  const recorder = new Recorder({ journal, noteMs: 20, diagnose: () => undefined });
  recorder.note(thought('hm'));
  recorder.note(delta('a', 1));
  await pass(25);
  recorder.note(delta('b', 1));
  await pass(25);
  expect(journal.records.map(({ part, kind, from, text, unsigned }) => ({ part, kind, from, text, unsigned }))).toEqual(
    [
      { part: 0, kind: 'thinking', from: 0, text: 'hm', unsigned: true },
      { part: 1, kind: 'text', from: 0, text: 'a', unsigned: undefined },
      { part: 1, kind: 'text', from: 1, text: 'b', unsigned: undefined },
    ],
  );
});

test('with a slow disk every note is followed by the whole text, a thousand times', async () => {
  const journals: { readonly records: readonly JsonObject[] }[] = [];
  for (let round = 0; round < 1_000; round++) {
    const journal = slowJournal(() => (round % 3 === 0 ? 1 : 0));
    journals.push(journal);
    const recorder = new Recorder({ journal, noteMs: 0, diagnose: () => undefined });
    recorder.note(delta('half'));
    if (round % 2 === 0) await sleep(round % 4 === 0 ? 1 : 0);
    await recorder.append([whole('the whole')]);
  }
  // All pending writes have arrived by now.
  await sleep(100);
  expect(journals.filter(({ records }) => records.at(-1)?.['type'] !== 'message_end')).toEqual([]);
  expect(journals.filter(({ records }) => records.length > 1).length).toBeGreaterThan(0);
}, 60_000);

test('a failed note is reported, and the next one holds everything', async () => {
  const pass = stoppedClock();
  const records: JsonObject[] = [];
  const told: string[] = [];
  let isBroken = true;
  const append = async (more: readonly JsonObject[]) => {
    if (isBroken) throw new Error('the disk is away');
    records.push(...more);
  };
  const recorder = new Recorder({ journal: { append }, noteMs: 10, diagnose: (message) => told.push(message) });
  recorder.note(delta('one '));
  await pass(15);
  isBroken = false;
  recorder.note(delta('two'));
  await pass(15);
  expect(told).toEqual(['what streams could not be noted: the disk is away']);
  expect(records).toMatchObject([{ from: 0, text: 'one two' }]);
});

test('a real session notes its stream, stores one answer, and leaks no secret', async () => {
  const secret = 'correct-horse-battery-staple-42';
  const home = await temporaryFolder();
  const hooks = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };
  const { store, close } = await openSessionJournal(home, 's', hooks);
  const redaction = new EventRedaction(new Redactor([secret]));
  const { run } = await agentOn(
    {
      answers: [{ text: `It goes on. `.repeat(30) + secret + ' and on'.repeat(2_000), tokensPerSecond: 60 }],
      chunkChars: 4,
    },
    { id: 's', store, pass: (event, place) => redaction.pass(event, place) },
  );
  const controller = new AbortController();
  const running = run('go', controller.signal);
  const noted = async (): Promise<string> => readFile(journalPath(home, 's'), 'utf8');
  // A note taken after the secret was streamed and redacted.
  while (!/"type":"partial".*redacted/.test(await noted())) await sleep(20);
  controller.abort();
  await running;
  await close();
  const text = await readFile(journalPath(home, 's'), 'utf8');
  const { records } = readJournalContents(Buffer.from(text));
  const notes = records.filter(({ type }) => type === 'partial');
  expect(notes.length).toBeGreaterThanOrEqual(1);
  expect(text).not.toContain(secret);
  expect(foldSessionHistory(records)?.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
});
