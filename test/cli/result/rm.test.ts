// drover rm: a run goes with its workspaces and branches; work that exists nowhere else needs consent.

import { existsSync } from 'node:fs';
import { runFolder, runJournalPath } from '@drover/coordinator/run/journal';
import { Lock } from '@drover/core/journal/file/lock';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, statuses, submits, writes } from '../../support/run/run-desk.ts';

const SCRIPT = planned({
  fine: { answers: [writes('fine.txt', 'fine\n'), submits('fine')] },
  red: { dependsOn: ['fine'], answers: [writes('red.txt', 'red\n'), submits('red')] },
});

async function deskAfterRun(...more: readonly string[]): Promise<{ readonly desk: RunDesk; readonly run: string }> {
  const desk = await RunDesk.with(SCRIPT);
  const { end } = await desk.run(['run', 'do two', '--gate', 'test ! -e red.txt', '--yes', ...more]);
  return { desk, run: end.run ?? '' };
}

const isThere = (desk: RunDesk, run: string) => existsSync(runFolder(desk.home, run));

test('rm keeps a run with the only copy of work unless the user agrees', async () => {
  const { desk, run } = await deskAfterRun();
  const short = run.slice(4, 12);
  const { code, stdout, stderr } = await desk.drover(['rm', run]);
  expect(code).toBe(2);
  expect(stdout).toContain(
    'Lost with it, since it exists nowhere else:\n  the work of task red, which did not land: 1 file\n',
  );
  expect(stderr).toContain(`remove it with: drover rm ${short} --yes`);
  expect([isThere(desk, run), desk.git('branch', '--list', `drover/${run}/*`)]).toEqual([true, `  drover/${run}/red`]);
  const no = await desk.drover(['rm', run], { typed: ['n'] });
  expect([no.code, isThere(desk, run)]).toEqual([2, true]);
  const yes = await desk.drover(['rm', run], { typed: ['y'] });
  expect([yes.code, isThere(desk, run), yes.stdout]).toEqual([
    0,
    false,
    expect.stringContaining(`Removed run ${short}.`),
  ]);
  expect(desk.git('branch', '--list', `drover/${run}/*`)).toBe('');
  // The delivered branch stays.
  expect(desk.git('branch', '--list', 'drover/do-two-*')).not.toBe('');
  expect((await desk.drover(['gc', '--json'])).stdout).not.toContain(run);
});

test('rm removes a run at once if everything is in the repository', async () => {
  const { desk, run } = await deskAfterRun();
  desk.git('branch', 'mine', `drover/${run}/red`);
  const { code, stdout } = await desk.drover(['rm', run, '--json']);
  expect([code, JSON.parse(stdout)]).toEqual([0, { run, removed: true, lost: [], stayed: [] }]);
  expect(isThere(desk, run)).toBe(false);
});

test('rm names landed work that is on no branch, and patches that go with it', async () => {
  const { desk, run } = await deskAfterRun('--deliver', 'patch');
  const { code, stdout } = await desk.drover(['rm', run]);
  expect([code, stdout]).toEqual([
    2,
    expect.stringMatching(/the task that landed: on no branch of .*only in its patches/),
  ]);
});

test('rm removes the branch of a first attempt, too', async () => {
  const second = [calls('shell', { command: 'true' }), submits('better')];
  const desk = await RunDesk.with(
    planned({ red: { answers: [writes('red.txt', 'red\n'), submits('red')], again: second } }),
  );
  const { end } = await desk.run(['run', 'do one', '--gate', 'test ! -e red.txt', '--yes']);
  const run = end.run ?? '';
  expect(statuses((await desk.run(['retry', run, '--yes'])).end)).toEqual({ red: 'done' });
  expect(desk.git('branch', '--list', `drover/${run}/*`)).toBe(`  drover/${run}/red`);
  const { stdout } = await desk.drover(['rm', run, '--yes', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ removed: true, stayed: [] });
  expect(desk.git('branch', '--list', `drover/${run}/*`)).toBe('');
});

test('rm lists the work of a first attempt among what is lost', async () => {
  const second = [writes('two.txt', 'two\n'), submits('better')];
  const desk = await RunDesk.with(
    planned({ red: { answers: [writes('red.txt', 'red\n'), submits('red')], again: second } }),
  );
  const { end } = await desk.run(['run', 'do one', '--gate', 'test ! -e red.txt', '--yes']);
  const run = end.run ?? '';
  expect(statuses((await desk.run(['retry', run, '--yes'])).end)).toEqual({ red: 'landed' });
  const { code, stdout } = await desk.drover(['rm', run]);
  expect([code, stdout]).toEqual([2, expect.stringContaining('the work of an earlier attempt at task red')]);
});

test('rm keeps a branch that the user moved or has checked out', async () => {
  const { desk, run } = await deskAfterRun();
  desk.git('checkout', '-q', `drover/${run}/red`);
  const { stdout } = await desk.drover(['rm', run, '--yes', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ removed: true, stayed: [`drover/${run}/red`] });
  expect(desk.git('show', `drover/${run}/red:red.txt`)).toBe('red');
});

test('rm refuses a run that a process works on', async () => {
  const { desk, run } = await deskAfterRun();
  const lock = Lock.take(`${runJournalPath(desk.home, run)}.lock`);
  const { code, stderr } = await desk.drover(['rm', run, '--yes']);
  lock?.release();
  expect([code, stderr, isThere(desk, run)]).toEqual([2, expect.stringContaining('is at work; stop it first'), true]);
});
