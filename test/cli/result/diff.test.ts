// drover diff: what a run or a task changed, whatever became of the work.

import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { workspacesFolder } from '@drover/coordinator/store/store';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, submits, writes } from '../../support/run/run-desk.ts';
import { runSync } from '../../support/process/run-sync.ts';

const SCRIPT = planned({
  fine: { answers: [writes('a.txt', 'one\ntwo\n'), submits('fine')] },
  red: { dependsOn: ['fine'], answers: [writes('red.txt', 'red\n'), submits('red')] },
});

async function deskAfterRun(...more: readonly string[]): Promise<{ readonly desk: RunDesk; readonly run: string }> {
  const desk = await RunDesk.with(SCRIPT);
  const { end } = await desk.run(['run', 'do two things', '--gate', 'test ! -e red.txt', '--yes', ...more]);
  return { desk, run: end.run ?? '' };
}

test('diff prints what landed as a patch that git applies, and names the rest', async () => {
  const { desk, run } = await deskAfterRun();
  const { code, stdout, stderr } = await desk.drover(['diff']);
  expect([code, stderr]).toEqual([
    0,
    `drover: task red has changes that have not landed; see them with: drover diff ${run.slice(4, 12)} red\n`,
  ]);
  expect(stdout.split('\n').slice(3)).toEqual(['+++ b/a.txt', '@@ -1 +1,2 @@', ' one', '+two', '']);
  runSync('git', ['apply'], { cwd: desk.repository, input: stdout });
  expect(await desk.read('a.txt')).toBe('one\ntwo\n');
});

test('diff shows a landed and an unlanded task each by itself', async () => {
  const { desk, run } = await deskAfterRun();
  const names = async (task: string) => (await desk.drover(['diff', run, task, '--name-only'])).stdout;
  expect([await names('fine'), await names('red')]).toEqual(['a.txt\n', 'red.txt\n']);
});

test('diff lists files with --stat, and counts them with --json', async () => {
  const { desk, run } = await deskAfterRun();
  expect((await desk.drover(['diff', run, '--stat'])).stdout).toBe(' a.txt | 1 +\n 1 file changed, 1 insertion(+)\n');
  const both = (await desk.drover(['diff', run, '--stat', '--patch'])).stdout;
  expect([both.includes(' a.txt | 1 +'), both.includes('@@ -1 +1,2 @@')]).toEqual([true, true]);
  const told = JSON.parse((await desk.drover(['diff', run, 'red', '--json'])).stdout) as Record<string, unknown>;
  expect([told['run'], told['task'], told['files'], told['patch']]).toEqual([
    run,
    'red',
    [{ path: 'red.txt', added: 1, removed: 0 }],
    undefined,
  ]);
});

test('diff shows a run that was delivered as patches, also after its store is gone', async () => {
  const { desk, run } = await deskAfterRun('--deliver', 'patch');
  const before = (await desk.drover(['diff', run])).stdout;
  expect(before).toContain('+two');
  await rm(workspacesFolder(desk.home), { recursive: true });
  expect((await desk.drover(['diff', run])).stdout).toContain('+two');
  const task = await desk.drover(['diff', run, 'red']);
  expect([task.code, task.stderr]).toEqual([2, expect.stringContaining('are gone')]);
});

test('diff shows the workspace of a task that was interrupted, new files too', async () => {
  const desk = await RunDesk.with(
    planned({ slow: { answers: [writes('new.txt', 'so far\n'), calls('shell', { command: 'sleep 60' })] } }),
  );
  const argv = ['run', 'do it', '--yes', '--workers', '0', '--json'];
  const { stdout } = await desk.interrupted(argv, (out) => out.includes('"command":"sleep 60"'));
  const run = (JSON.parse(stdout.slice(0, stdout.indexOf('\n'))) as { run: string }).run;
  const { stdout: patch } = await desk.drover(['diff', run, 'slow']);
  expect(patch).toContain('+so far');
  const index = runSync('git', ['status', '--porcelain'], { cwd: desk.repository }).toString();
  expect(index).toBe('');
});

test('diff on a terminal is coloured, and no sequence of a file reaches it', async () => {
  const hostile = '\u001B]0;title\u0007\u001B[2Jgone\u202E\n-- looks like a header\n';
  const desk = await RunDesk.with(planned({ one: { answers: [writes('a.txt', hostile), submits('one')] } }), {
    'a.txt': '-- x\n',
  });
  await desk.run(['run', 'do it', '--yes']);
  const { stdout } = await desk.drover(['diff'], { columns: 80, env: { PAGER: 'cat' } });
  expect(stdout).toContain('\u001B[31m--- x\u001B[39m');
  expect(stdout).toContain('\u001B[32m+gone\u001B[39m');
  // oxlint-disable-next-line no-control-regex
  expect(stdout.replaceAll(/\u001B\[\d+m/g, '')).not.toMatch(/[\u001B\u0007\u202E]/);
  const plain = await desk.drover(['diff'], { columns: 80, env: { PAGER: 'cat', NO_COLOR: '1' } });
  expect(plain.stdout).not.toContain('\u001B');
  const inCi = await desk.drover(['diff'], { env: { CI: '1' } });
  expect(inCi.stdout).not.toContain('\u001B');
  expect((await desk.drover(['diff', '--patch'], { env: { CI: '1' } })).stdout).toContain('\u001B[2J');
});

test('diff without an id never takes a run of another folder', async () => {
  const { desk } = await deskAfterRun();
  const elsewhere = join(desk.folder, 'elsewhere');
  await mkdir(elsewhere);
  const { code, stdout, stderr } = await desk.drover(['diff'], { cwd: elsewhere });
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining('there is no run of the repository in')]);
});

test('diff names what is wrong with a run, a task or a flag', async () => {
  const { desk, run } = await deskAfterRun();
  const said = async (...argv: readonly string[]) => {
    const { code, stderr } = await desk.drover(['diff', ...argv]);
    return [code, stderr];
  };
  expect(await said('zzz')).toEqual([2, expect.stringContaining("there is no run or session 'zzz'")]);
  expect(await said(run, 'blue')).toEqual([2, expect.stringContaining("the run has no task 'blue'")]);
  expect(await said(run, '--name-only', '--stat')).toEqual([2, expect.stringContaining('leave out --stat')]);
  await writeFile(join(desk.repository, 'x'), '');
  await rm(join(desk.repository, '.git'), { recursive: true });
  expect(await said(run)).toEqual([2, expect.stringContaining('is not in a git repository')]);
});
