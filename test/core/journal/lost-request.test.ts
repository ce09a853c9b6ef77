// Sessions with a budget that are killed in the middle of a request: the next process charges the request once.

import type { JsonObject } from '@drover/protocol/json';
import { Journal, readJournalFile } from '@drover/core/journal/file/journal';
import { journalPath, openSessionJournal } from '@drover/core/journal/session-journal';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/agent.ts';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };

const tokens = (input: number, output: number) => ({ input, output, cacheRead: 0, cacheWrite: 0 });
const START = { type: 'session_start', model: 'a/b', cwd: '/' };
const USED = { type: 'usage', usage: tokens(10, 5), total: tokens(10, 5), cost: 0.25, requestCost: 0.25 };
const BALANCE = { type: 'budget', usage: tokens(10, 5), spent: 15, reserved: 0, worker: 0 };
const SENT = { ...BALANCE, most: { ...tokens(100, 900), estimated: true }, mostCost: 4 };

async function reopened(records: readonly JsonObject[]) {
  const home = await temporaryFolder();
  const { journal } = await Journal.open({ path: journalPath(home, 's'), session: 's', ...HOOKS });
  const place = { v: 1, at: '2026-01-01T00:00:00.000Z', session: 's' };
  await journal.append(
    records.map((record, at) => ({ ...place, seq: at + 1, ...record })),
    true,
  );
  await journal.close();
  const first = await openSessionJournal(home, 's', HOOKS);
  await first.close();
  const second = await openSessionJournal(home, 's', HOOKS);
  await second.close();
  const { records: all } = await readJournalFile(journalPath(home, 's'));
  return { past: second.past, added: all.slice(records.length), first };
}

test('a request that a kill cut off is charged its reservation, once', async () => {
  const { past, added, first } = await reopened([START, USED, SENT]);
  const total = { ...tokens(110, 905), estimated: true };
  expect(added).toEqual([
    {
      v: 1,
      session: 's',
      worker: 0,
      seq: 1_000_004,
      at: expect.any(String),
      type: 'usage',
      usage: { ...tokens(100, 900), estimated: true },
      total,
      cost: 4.25,
      requestCost: 4,
    },
  ]);
  expect([past?.usage, past?.cost]).toEqual([total, 4.25]);
  expect([first.past?.usage, first.past?.lastSeq]).toEqual([total, expect.closeTo(2_000_004, -1)]);
});

test('a lost request without a price adds tokens and no dollars', async () => {
  const { mostCost: _, ...unpriced } = SENT;
  const { past } = await reopened([START, unpriced]);
  expect([past?.usage, past?.cost]).toEqual([{ ...tokens(100, 900), estimated: true }, undefined]);
});

test.each<[string, readonly JsonObject[]]>([
  ['has its usage', [START, SENT, USED]],
  ['was never sent', [START, USED, SENT, BALANCE]],
  ['had no budget', [START, USED, { type: 'message_end', message: { role: 'user', content: [] }, turn: 1 }]],
])('a request that %s is not charged again', async (_, records) => {
  const { added, past } = await reopened(records);
  expect([added, past?.cost]).toEqual([[], 0.25]);
});
