// drover retry: failed tasks are tried again in the same run, on top of what has landed.

import { readFileSync, statSync } from 'node:fs';
import { runJournalPath } from '@drover/coordinator/run/journal';
import { expect, test } from 'vitest';
import { countReads } from '../../support/process/reads.ts';
import { calls, planned, RunDesk, statuses, submits, writes } from '../../support/run/run-desk.ts';

/** `red` breaks the gate in its first attempt only; `after` waits for it. */
const SCRIPT = planned({
  fine: { answers: [writes('fine.txt', 'fine\n'), submits('fine')] },
  red: {
    answers: [writes('red.txt', 'red\n'), submits('red')],
    again: [calls('shell', { command: 'cat fine.txt > seen.txt' }), submits('better')],
  },
  after: { dependsOn: ['red'], answers: [writes('after.txt', 'after\n'), submits('after')] },
});

const RUN = ['run', 'do three things', '--gate', 'test ! -e red.txt', '--yes'];

async function deskAfterRun(...more: readonly string[]): Promise<{ readonly desk: RunDesk; readonly run: string }> {
  const desk = await RunDesk.with(SCRIPT);
  const { end, code } = await desk.run([...RUN, ...more]);
  expect([code, statuses(end)]).toEqual([3, { fine: 'landed', red: 'gate_failed', after: 'skipped' }]);
  return { desk, run: end.run ?? '' };
}

test('retry lands what failed, from the current head, and what waited for it', async () => {
  const { desk, run } = await deskAfterRun();
  const before = desk.server.requests.length;
  const { code, end, events } = await desk.run(['retry', run, '--yes']);
  expect([code, end.run, statuses(end)]).toEqual([0, run, { fine: 'landed', red: 'landed', after: 'landed' }]);
  // The new attempt saw the landed work, and was told that it is the second attempt.
  expect(desk.delivered(run)).toMatchObject({ 'seen.txt': 'fine', 'after.txt': 'after', 'fine.txt': 'fine' });
  expect(end.tasks.map(({ task, attempts }) => [task, attempts])).toEqual([
    ['fine', 1],
    ['red', 2],
    ['after', 1],
  ]);
  const asked = desk.server.requests.slice(before);
  expect(asked.map(({ agent }) => agent)).not.toContain('fine');
  expect(JSON.stringify(asked.find(({ agent }) => agent === 'red again')?.body)).toContain('asked for another try');
  expect(events.map(({ type }) => type)).not.toContain('tasks_reopened'); // the retry is in the journal before the run resumes
  const logs = await desk.drover(['logs', run]);
  expect(logs.stdout).toMatch(/tasks_reopened +the user retries red, after/);
});

test('retry reads the journal of its run once', async () => {
  const { desk, run } = await deskAfterRun();
  const journal = runJournalPath(desk.home, run);
  const size = statSync(journal).size;
  const read = countReads(journal);
  expect((await desk.drover(['retry', run, '--yes'])).code).toBe(0);
  const bytes = read();
  const lines = readFileSync(journal, 'utf8').split('\n');
  const reopening = lines.find((line) => line.includes('"type":"tasks_reopened"'));
  // It reads what it wrote itself when it opens the journal for the run.
  expect(bytes).toBe(size + Buffer.byteLength(`${reopening}\n`));
});

test('retry of named tasks takes along what they wait for', async () => {
  const { desk, run } = await deskAfterRun();
  const { end } = await desk.run(['retry', run, 'after', '--yes']);
  expect(statuses(end)).toEqual({ fine: 'landed', red: 'landed', after: 'landed' });
});

test('retry refuses a landed task, and a run with nothing to retry', async () => {
  const { desk, run } = await deskAfterRun();
  const said = async (...argv: readonly string[]) => {
    const { code, stderr } = await desk.drover(['retry', ...argv]);
    return [code, stderr];
  };
  const short = run.slice(4, 12);
  expect(await said(run, 'fine')).toEqual([
    2,
    `drover: task fine of run ${short} has landed, so there is nothing to retry\n`,
  ]);
  expect(await said(run, 'red', 'blue')).toEqual([2, expect.stringContaining("no task 'blue'")]);
  await desk.run(['retry', run, '--yes']);
  // Without an id, the newest run of this repository is used.
  for (const typed of [[run], []])
    expect(await said(...typed)).toEqual([
      2,
      `drover: every task of run ${short} is done, so there is nothing to retry\n`,
    ]);
});

test('resume finishes a retry that was interrupted, and the coordinator hears of it', async () => {
  const slow = planned({
    one: {
      answers: [writes('red.txt', 'red\n'), submits('one')],
      again: [calls('shell', { command: 'sleep 60' }), writes('one.txt', 'one\n'), submits('one')],
    },
  });
  const desk = await RunDesk.with(slow);
  const { end } = await desk.run(['run', 'do it', '--gate', 'test ! -e red.txt', '--yes']);
  const run = end.run ?? '';
  expect(statuses(end)).toEqual({ one: 'gate_failed' });
  const cut = await desk.interrupted(['retry', run, '--yes', '--json'], (out) => out.includes('"sleep 60"'));
  expect(cut.code).toBe(130);
  const again = await desk.run(['resume', run, '--yes']);
  expect([again.code, statuses(again.end), again.end.tasks[0]?.attempts]).toEqual([0, { one: 'landed' }, 2]);
  const last = desk.server.requests.findLast(({ agent }) => agent === 'default');
  expect(JSON.stringify(last?.body)).toContain('one: landed');
});

test('retry delivers onto the branch that it delivered before', async () => {
  const { desk, run } = await deskAfterRun();
  const first = desk.git('rev-parse', desk.resultBranch(run));
  await desk.run(['retry', run, '--yes']);
  expect(desk.git('merge-base', '--is-ancestor', first, desk.resultBranch(run))).toBe('');
  const results = desk.git('for-each-ref', '--format=%(refname)', 'refs/heads/drover/do-*').split('\n');
  expect(results).toHaveLength(1);
});

test('retry merges again into a branch that the run has moved itself', async () => {
  const { desk, run } = await deskAfterRun('--deliver', 'merge');
  expect(await desk.read('fine.txt')).toBe('fine\n');
  const { code, end } = await desk.run(['retry', run, '--yes']);
  expect([code, end.delivered?.deliver, end.delivered?.instead]).toEqual([0, 'merge', undefined]);
  expect(await desk.read('after.txt')).toBe('after\n');
});
