// --setup: prepares a workspace before workers and gates use it; its files are never committed.

import { expect, test } from 'vitest';
import { BatchDesk, noisyFiles, SPEC, tidying } from '../../support/run/batch-desk.ts';
import { calls, planned, RunDesk, statuses, submits, writes } from '../../support/run/run-desk.ts';

const FILES = { '.gitignore': 'ignored\n', 'a.txt': 'one\n' };
const PREPARE = 'mkdir -p ignored made && echo tool > ignored/tool && echo more > made/more && echo x > beside.txt';
const SCRIPT = planned({
  one: {
    answers: [
      calls('read', { path: 'ignored/tool' }),
      writes('made/mine.txt', 'mine\n'),
      writes('one.txt', 'one\n'),
      submits('done'),
    ],
  },
  two: { answers: [writes('two.txt', 'two\n'), submits('done')] },
});

test('worker and gate find the setup’s files, and only the worker’s files land', async () => {
  const desk = await RunDesk.with(SCRIPT, FILES);
  const { end, code, events } = await desk.run([
    'run',
    'go',
    '--yes',
    '--setup',
    PREPARE,
    '--gate',
    'test -f ignored/tool && test -f made/more',
  ]);
  expect([code, statuses(end)]).toEqual([0, { one: 'landed', two: 'landed' }]);
  const read = events.find((event) => event.type === 'tool_execution_end' && event.name === 'read');
  expect(read).toMatchObject({ output: '1\ttool' });
  const merged = end.delivered?.commit ?? '';
  expect(desk.git('diff', '--name-only', 'main', merged).split('\n')).toEqual(['made/mine.txt', 'one.txt', 'two.txt']);
});

test('a failed setup ends the run once with its output, before any request', async () => {
  const desk = await RunDesk.with(SCRIPT, FILES);
  const { end, code } = await desk.run(['run', 'go', '--yes', '--setup', 'echo no network; exit 7']);
  expect(code).toBe(3);
  expect(end.reason).toBe("the workspace could not be prepared by 'echo no network; exit 7':\nno network\nexit code 7");
  expect(end.tasks.flatMap(({ failure }) => failure ?? [])).toEqual([]);
  expect(desk.server.requests).toEqual([]);
});

test('a setup that changes tracked files is refused', async () => {
  const desk = await RunDesk.with(SCRIPT, FILES);
  const { end } = await desk.run(['run', 'go', '--yes', '--setup', 'echo two > a.txt']);
  expect(end.reason).toBe(
    "the workspace could not be prepared by 'echo two > a.txt':\nit changes files of the repository, which would be taken for the worker's work: a.txt",
  );
});

test('an interrupted worker resumes in its workspace and commits only its work', async () => {
  const desk = await RunDesk.with(SCRIPT, FILES);
  const ran = await desk.interrupted(
    ['run', 'go', '--yes', '--workers', '0', '--setup', PREPARE, '--gate', 'test -f ignored/tool'],
    () => desk.server.requests.length >= 4,
  );
  expect(ran.code).toBe(130);
  const { end, code } = await desk.run(['resume', '--yes', '--workers', '0']);
  expect([code, statuses(end)]).toEqual([0, { one: 'landed', two: 'landed' }]);
  const merged = end.delivered?.commit ?? '';
  expect(desk.git('diff', '--name-only', 'main', merged).split('\n')).toEqual(['made/mine.txt', 'one.txt', 'two.txt']);
});

test('a batch spec may define the setup of its workspaces', async () => {
  const batch = await BatchDesk.with(
    tidying(),
    noisyFiles(1),
    `${SPEC}  gate: ["test -f tool"]\nsetup: ["echo x > tool"]\n`,
  );
  const { code } = await batch.run();
  expect([code, await batch.statuses()]).toEqual([0, { 'src-file1.ts': 'landed' }]);
  expect(await batch.text('combined.patch')).not.toContain('tool');
});
