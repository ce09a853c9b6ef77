// Prepared workspaces: setup runs once in a slot. A changed lockfile, a changed command or a task that did harm repeats
// it.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, statuses, submits, writes } from '../support/run/run-desk.ts';
import { inSandbox } from '../support/sandbox/box.ts';

const FILES = { '.gitignore': 'deps\n', 'package-lock.json': '{}\n', 'a.txt': 'one\n' };

/** Setup counts its runs in an outside file. In the tree it creates an ignored folder and one more file. */
async function deskWith(command = 'true') {
  const desk = await RunDesk.with(
    planned({ one: { answers: [calls('shell', { command }), writes('b.txt', 'b\n'), submits('b')] } }),
    FILES,
  );
  const count = join(desk.folder, 'count');
  await writeFile(count, '');
  const setup = `echo x >> ${count} && mkdir -p deps/in && echo good > deps/in/lib && ln -s in/lib deps/link && echo m > made.txt`;
  const gate = 'grep -q good deps/link && test -f made.txt && ! ls deps | grep -q new';
  const open = ['--yes', '--sandbox', 'off', '--workers', '0'];
  const run = (more: readonly string[] = [], other = setup) =>
    desk.run(['run', 'go', ...open, '--setup', other, '--gate', gate, ...more]);
  const times = async () => (await readFile(count, 'utf8')).length / 2;
  return { desk, run, setup, times };
}

const commit = (desk: RunDesk) => desk.git('-c', 'user.name=A', '-c', 'user.email=a@b.c', 'commit', '-qam', 'more');

test('setup runs once for the base check, the worker, the gate and the next run', async () => {
  const { desk, run, times } = await deskWith();
  const first = await run();
  expect([first.code, statuses(first.end)]).toEqual([0, { one: 'landed' }]);
  expect(desk.git('diff', '--name-only', 'main', first.end.delivered?.commit ?? '')).toBe('b.txt');
  await desk.write({ 'a.txt': 'two\n' });
  commit(desk);
  expect((await run()).code).toBe(0);
  expect(await times()).toBe(1);
});

test('a changed lockfile or setup command prepares again', async () => {
  const { desk, run, setup, times } = await deskWith();
  await run();
  await desk.write({ 'package-lock.json': '{"x":1}\n' });
  commit(desk);
  expect((await run()).code).toBe(0);
  expect(await times()).toBe(2);
  expect((await run([], `true && ${setup}`)).code).toBe(0);
  expect(await times()).toBe(3);
  expect((await run(['--setup', 'true'])).code).toBe(0);
  expect(await times()).toBe(4);
});

test('a file that a task added to what setup made is removed, and the rest stays', async () => {
  const { run, times } = await deskWith('mkdir deps/new && echo x > deps/new/x && echo x > deps/in/x');
  expect((await run()).code).toBe(0);
  expect(await times()).toBe(1);
});

test.each([
  ['changed with its old time', 'touch -r deps/in/lib ref && echo evil > deps/in/lib && touch -r ref deps/in/lib'],
  ['exchanged', 'echo evil > deps/in/new && mv deps/in/new deps/in/lib'],
  ['removed', 'rm deps/in/lib'],
  ['reached through a link', 'mv deps ../moved && ln -s ../moved deps'],
  ['linked elsewhere', 'ln -sf /etc/hostname deps/link'],
])('a prepared file that a task %s is prepared again for the next', async (_, command) => {
  const { run, times } = await deskWith(command);
  const { code, end } = await run();
  expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
  expect(await times()).toBe(2);
});

test('nothing outside the workspace is removed through a link that a task left', async () => {
  const swaps = 'mv ../moved ../old; mv pkg ../moved && touch ../moved/deps/new && ln -s ../moved pkg';
  const script = planned({
    one: { answers: [calls('shell', { command: swaps }), writes('b.txt', 'b\n'), submits('b')] },
  });
  const desk = await RunDesk.with(script, { ...FILES, 'pkg/a.txt': 'a\n' });
  const typed = [
    'run',
    'go',
    '--yes',
    '--sandbox',
    'off',
    '--workers',
    '0',
    '--setup',
    'mkdir pkg/deps && echo > pkg/deps/x',
  ];
  const slots = join(desk.home, 'workspaces');
  const moved = async () => {
    const names = await readdir(slots, { recursive: true });
    return names.filter((name) => /(?:moved|old)\/deps\/new$/.test(name)).length;
  };
  await desk.run(typed);
  expect(await moved()).toBe(1);
  const { events } = await desk.run([...typed, '--gate', 'test -f pkg/deps/x']);
  expect(events).toContainEqual(expect.objectContaining({ type: 'gate_end', base: true, passed: true }));
  expect(await moved()).toBe(2);
});

test('setup that was interrupted is repeated from a clean tree', async () => {
  const { desk, run, setup, times } = await deskWith();
  const slow = `${setup.replace('echo good', 'echo bad')} && sleep 60`;
  const typed = ['run', 'go', '--yes', '--sandbox', 'off', '--workers', '0', '--json', '--setup', slow];
  let seen = 0;
  const watch = setInterval(() => void times().then((count) => (seen = count)), 10);
  await desk.interrupted(typed, () => seen === 1);
  clearInterval(watch);
  expect((await run()).code).toBe(0);
  expect(await times()).toBe(2);
});

inSandbox('prepared workspaces in the sandbox', () => {
  test.each([
    ['only caches', 'mkdir -p ~/.npm/_logs && echo x > ~/.npm/_logs/x', 1],
    ['other files', 'echo x > ~/needed', 4],
  ])('setup that leaves %s in HOME runs as often as needed', async (_, leaves, expected) => {
    const { desk, setup, times } = await deskWith();
    const count = join(desk.folder, 'counts');
    await mkdir(count);
    const counted = setup.replace(/>> \S+/, `>> ${count}/x`);
    const typed = ['run', 'go', '--yes', '--workers', '0', '--gate', 'true', '--writable', count];
    expect((await desk.run([...typed, '--setup', `${counted}; ${leaves}`])).code).toBe(0);
    expect([await times(), (await readFile(join(count, 'x'), 'utf8')).length / 2]).toEqual([0, expected]);
  });
});
