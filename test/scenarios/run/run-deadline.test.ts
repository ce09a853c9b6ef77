// The time limit of a run counts all its parts, and not the gaps between them.

import { readFileSync, writeFileSync } from 'node:fs';
import { runJournalPath } from '@drover/coordinator/run/journal';
import type { JsonObject } from '@drover/protocol/json';
import { journalFileHead, readJournalContents, sealJournalRecord } from '@drover/core/journal/file/format';
import { expect, test } from 'vitest';
import { planned, RunDesk, says, statuses, submits, told, writes } from '../../support/run/run-desk.ts';

const MINUTE_MS = 60_000;

/** An interrupted run whose coordinator began this long before the other events, and which ended this long ago. */
async function interruptedAfter(workedMs: number, agoMs: number): Promise<{ desk: RunDesk; id: string }> {
  const desk = await RunDesk.with(
    planned({
      quick: { answers: [writes('quick.txt', 'quick\n'), submits('quick')] },
      slow: { dependsOn: ['quick'], answers: [{ ...says('at last'), delayMs: 600_000 }] },
    }),
  );
  const argv = ['run', 'do it', '--timeout', '60m', '--workers', '0', '--json'];
  const first = told(await desk.interrupted(argv, () => desk.server.requests.some(({ agent }) => agent === 'slow')));
  const id = first.end.run ?? '';
  const path = runJournalPath(desk.home, id);
  const records = readJournalContents(readFileSync(path)).records as readonly (JsonObject & { at: string })[];
  const back = (at: string, ms: number) => new Date(Date.parse(at) - ms).toISOString();
  const aged = records.map((each, n) => ({ ...each, at: back(each.at, agoMs + (n === 0 ? workedMs : 0)) }));
  let sum = '';
  const lines = [journalFileHead({ run: id }), ...aged].map((record) => {
    const line = sealJournalRecord(record, sum);
    sum = line.sum;
    return `${line.text}\n`;
  });
  writeFileSync(path, lines.join(''));
  return { desk, id };
}

test('a resumed run has the remaining time, and then exits 7', async () => {
  const { desk, id } = await interruptedAfter(60 * MINUTE_MS - 3_000, 0);
  const { code, end } = await desk.run(['resume', id]);
  expect([code, end.failure?.kind, statuses(end)]).toEqual([
    7,
    'limit.reached',
    { quick: 'landed', slow: 'cancelled' },
  ]);
  expect(Object.keys(desk.delivered(id))).toEqual(['a.txt', 'quick.txt']);
});

test('a run without time left is not resumed, and idle time does not count', async () => {
  const over = await interruptedAfter(61 * MINUTE_MS, 0);
  expect(await over.desk.drover(['resume', over.id])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/ has worked for 61 m \d\d s, and its time limit is 60 m 00 s; resume with more: /),
  });
  const { desk, id } = await interruptedAfter(0, 600 * MINUTE_MS);
  const again = told(
    await desk.interrupted(
      ['resume', id, '--json'],
      () => desk.server.requests.filter(({ agent }) => agent === 'slow').length > 1,
    ),
  );
  expect([again.code, again.end.outcome]).toEqual([130, 'cancelled']);
});
