// Journals that end in the middle of an answer: the next process that opens one retracts it.

import type { JsonObject } from '@drover/protocol/json';
import { Journal, readJournalFile } from '@drover/core/journal/file/journal';
import { retellJournal } from '@drover/core/journal/retelling';
import { journalPath, openSessionJournal } from '@drover/core/journal/session-journal';
import { openRunJournal, runJournalPath } from '@drover/coordinator/run/journal';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/agent.ts';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };
const REASON = 'drover was stopped before the answer was whole';

const numbered = (owner: object, records: readonly JsonObject[]): readonly JsonObject[] =>
  records.map((record, at) => ({ v: 1, seq: at + 1, at: '2026-01-01T00:00:00.000Z', ...owner, ...record }));

const START = { type: 'session_start', model: 'a/b', cwd: '/' };
const answering = { type: 'message_start', role: 'assistant', worker: 0, turn: 1, step: 1 };
const beginning = { type: 'text_start', part: 0, worker: 0, turn: 1, step: 1 };
const noted = { type: 'partial', part: 0, kind: 'text', from: 0, text: 'Half a', worker: 0, turn: 1, step: 1 };

async function written(records: readonly JsonObject[]): Promise<string> {
  const home = await temporaryFolder();
  const { journal } = await Journal.open({ path: journalPath(home, 's'), session: 's', ...HOOKS });
  await journal.append(numbered({ session: 's' }, records), true);
  await journal.close();
  return home;
}

test('opening a journal that ends in an answer writes attempt_discarded, once', async () => {
  const home = await written([START, answering, beginning, noted]);
  const first = await openSessionJournal(home, 's', HOOKS);
  await first.close();
  const second = await openSessionJournal(home, 's', HOOKS);
  await second.close();
  const { records } = await readJournalFile(journalPath(home, 's'));
  expect(records.slice(4)).toEqual([
    {
      v: 1,
      session: 's',
      worker: 0,
      turn: 1,
      step: 1,
      seq: 1_000_005,
      at: expect.any(String),
      type: 'attempt_discarded',
      reason: REASON,
    },
  ]);
  expect(first.past?.lastSeq).toBeGreaterThanOrEqual(1_000_005);
});

test('replay emits the recorded part of an answer, then retracts it', async () => {
  const home = await written([START, answering, beginning, noted]);
  const { close } = await openSessionJournal(home, 's', HOOKS);
  await close();
  const { records } = await readJournalFile(journalPath(home, 's'));
  const told = retellJournal(records, false).map((event) => ('delta' in event ? event.delta : event.type));
  expect(told).toEqual(['session_start', 'message_start', 'text_start', 'Half a', 'attempt_discarded']);
});

test.each([
  { after: 'a whole answer', end: { type: 'message_end', worker: 0, message: { role: 'user', content: [] } } },
  { after: 'a discarded answer', end: { type: 'attempt_discarded', worker: 0, reason: 'x' } },
  { after: 'the end of the turn', end: { type: 'cancelled', worker: 0 } },
])('opening a journal after $after writes nothing', async ({ end }) => {
  const home = await written([START, answering, beginning, end]);
  const { close } = await openSessionJournal(home, 's', HOOKS);
  await close();
  expect((await readJournalFile(journalPath(home, 's'))).records).toHaveLength(4);
});

test('opening the journal of a run retracts the open answer of each worker', async () => {
  const home = await temporaryFolder();
  const { journal } = await Journal.open({ path: runJournalPath(home, 'r'), run: 'r', ...HOOKS });
  const worker = (number: number): JsonObject => ({ ...answering, worker: number, task: `t${number}`, attempt: 1 });
  const records = [answering, worker(1), worker(2), { type: 'attempt_discarded', worker: 1, reason: 'x' }];
  await journal.append(numbered({ run: 'r' }, records), true);
  await journal.close();
  const { close } = await openRunJournal(home, 'r', HOOKS);
  await close();
  const kept = (await readJournalFile(runJournalPath(home, 'r'))).records.slice(4);
  expect(kept.map(({ type, worker: by, task, seq }) => ({ type, by, task, seq }))).toEqual([
    { type: 'attempt_discarded', by: 0, task: undefined, seq: 1_000_005 },
    { type: 'attempt_discarded', by: 2, task: 't2', seq: 1_000_006 },
  ]);
});
