// The launcher: the death of either side, and input for a process.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { Launcher } from '@drover/core/tools/process/launcher';
import { launchProcessesWith, startProcess } from '@drover/core/tools/process/start';
import { endOrphanProcesses } from '@drover/core/tools/process/tree';
import { shell } from '@drover/core/tools/shell';
import { runTool } from '@drover/core/tools/tool';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openLauncher, type RunLauncher } from '../../../bin/run/open-launcher.ts';
import { LAUNCHER as DROVER, processesWith } from '../../cli/program.ts';
import { listening } from '../../support/serve/listening.ts';
import { runSync } from '../../support/process/run-sync.ts';
import { temporaryFolder, workspace } from '../../support/workspace.ts';
import { until } from '../../support/until.ts';

const waiter = fileURLToPath(new URL('../../support/process/launcher-waiter.ts', import.meta.url));
const owner = fileURLToPath(new URL('../../support/process/launcher-owner.ts', import.meta.url));
const env = childProcessEnvironment(process.env);

const opened: RunLauncher[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});

async function launcher(): Promise<RunLauncher & { readonly pid: number }> {
  const { pid, ...rest } = openLauncher(env);
  if (pid === undefined) throw new Error('there is no launcher');
  opened.push({ pid, ...rest });
  await listening(rest.address.path);
  return { ...rest, pid };
}

/** Dead processes that wait to be reaped do not count. */
function isThere(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

async function gone(pid: number): Promise<void> {
  await until(() => !isThere(pid));
}

const program = (file: string, ...args: string[]) => ({ file, args, cwd: '/', env, detached: true });

test('a launcher that dies ends its command, and the next one starts without it', async () => {
  const { pid } = await launcher();
  const { call, context } = await workspace();
  let told = '';
  const command = 'setsid sleep 97 & echo $$ $!; sleep 97';
  const running = runTool(shell, { command }, { ...context(), onDelta: (delta) => (told += delta) });
  await until(() => told.includes('\n'));
  process.kill(pid, 'SIGKILL');

  expect(await running).toEqual({
    output: `${told}the process that starts commands was lost, and bash was ended before it was done`,
    isError: true,
  });
  for (const each of told.trim().split(' ')) expect(isThere(Number(each))).toBe(false);
  expect(await call(shell, { command: 'echo $PPID' })).toMatchObject({ output: String(process.pid) });
});

test('a process that only waits for a command stays until the command ends', async () => {
  const { address } = await launcher();
  const child = spawn(process.execPath, [waiter, address.path, address.secret], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  expect(JSON.parse((await text(child.stdout)) || '{}')).toMatchObject({ exitCode: 7 });
});

test('without a launcher a command starts directly', async () => {
  const { address, close } = await launcher();
  await close();
  launchProcessesWith(address);
  const { call } = await workspace();
  expect(await call(shell, { command: 'echo $PPID' })).toMatchObject({ output: String(process.pid) });
  launchProcessesWith(undefined);
});

test('an unresponsive launcher counts as lost, and starts nothing later', async () => {
  const { address, pid } = await launcher();
  const { cwd } = await workspace();
  const thread = new Launcher(address, { replyMs: 300 });
  await (
    await thread.start(program('true'), undefined)
  )?.ended;
  process.kill(pid, 'SIGSTOP');
  await expect(thread.start({ ...program('touch', 'late'), cwd }, undefined)).rejects.toThrow('lost');
  process.kill(pid, 'SIGCONT');
  await (
    await startProcess(program('true'))
  ).ended;
  expect(existsSync(join(cwd, 'late'))).toBe(false);
  expect(await thread.start(program('true'), undefined)).toBeUndefined();
});

test('the launcher serves no connection without its secret', async () => {
  const { address } = await launcher();
  const { cwd } = await workspace();
  const { path } = address;
  const ask = { ...program('touch', 'taken'), cwd, id: 'x', pipes: [] };
  for (const first of [ask, { secret: '' }, { secret: 'guess' }, { secret: address.secret.slice(1) }, 'no object']) {
    const socket = connect(path);
    socket.on('error', () => undefined);
    socket.write(`${JSON.stringify(first)}\n${JSON.stringify(ask)}\n`);
    socket.resume();
    await once(socket, 'close');
  }
  await (
    await startProcess(program('true'))
  ).ended;
  expect(existsSync(join(cwd, 'taken'))).toBe(false);
  expect(readFileSync(`/proc/${opened.at(-1)?.pid}/cmdline`, 'latin1')).not.toContain(address.secret);
});

test('a process gets files to read, and reports on the next descriptor', async () => {
  await launcher();
  const { cwd } = await workspace({ 'a.txt': 'from a', 'b.txt': 'from b' });
  const files = [join(cwd, 'a.txt'), join(cwd, 'b.txt')];
  const args = ['-c', 'cat <&3 >&5; cat <&4 >&5; exit 3'];
  const started = await startProcess({ ...program('bash', ...args), files, report: true });
  started.stdout.resume();
  started.stderr.resume();
  expect(await started.ended).toEqual({ exitCode: 3, report: 'from afrom b' });
});

test('signals that end other processes do not end the launcher; its owner does', async () => {
  const { pid, address, close } = await launcher();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal);
  const { call } = await workspace();
  expect(await call(shell, { command: 'echo $PPID' })).toMatchObject({ output: String(pid) });
  await close();
  expect([isThere(pid), existsSync(dirname(address.path))]).toEqual([false, false]);
});

test('a killed owner takes the launcher along, and its processes are found by mark', async () => {
  const child = spawn(process.execPath, [owner], { stdio: ['ignore', 'pipe', 'inherit'] });
  let told = '';
  child.stdout.on('data', (chunk: Buffer) => (told += chunk.toString()));
  await until(() => told.endsWith('\n'));
  const {
    callId,
    command,
    launcher: pid,
    path,
  } = JSON.parse(told) as Record<'callId' | 'path', string> & Record<'command' | 'launcher', number>;
  child.kill('SIGKILL');
  await gone(pid);
  await delay(100);
  expect([existsSync(dirname(path)), isThere(command)]).toEqual([false, true]);
  expect(endOrphanProcesses(callId)).toBe(1);
  await gone(command);
});

test('a run leaves no launcher behind and keeps its exit code', async () => {
  const { cwd } = await workspace({
    'script.yaml': 'order: conversation\nanswers: [{fault: {fault: status, status: 401}}]',
    'plan.yaml': 'tasks: [{id: a, title: A, prompt: do a}, {id: b, title: B, prompt: do b}]',
  });
  const git = (...args: readonly string[]) =>
    runSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd });
  git('init', '-q');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  const temporary = await temporaryFolder();
  const args = ['run', 'go', '--plan', 'plan.yaml', '--workers', '2', '--yes', '--model', 'rehearsal/script.yaml'];
  const child = spawn(process.execPath, [DROVER, ...args], {
    cwd,
    env: { PATH: process.env['PATH'], HOME: temporary, TMPDIR: temporary },
    stdio: 'ignore',
  });
  let hadOne = false;
  const look = setInterval(() => (hadOne ||= processesWith(`${temporary}/drover-launcher-`).length > 0), 10);
  const [code] = (await once(child, 'exit')) as [number];
  clearInterval(look);
  const left = readdirSync(temporary).filter((name) => name.startsWith('drover-launcher-'));
  expect({ code, hadOne, left }).toEqual({ code: 9, hadOne: true, left: [] });
  expect(processesWith(`${temporary}/drover-launcher-`)).toEqual([]);
});

test('the processes of a lost thread are ended', async () => {
  const { address } = await launcher();
  const thread = new Launcher(address);
  const started = await thread.start(program('sleep', '97'), undefined);
  expect(started).toBeDefined();
  thread.close();
  await gone(started?.pid ?? 0);
  await expect(started?.ended).rejects.toThrow('lost');
});

describe.each([
  ['here', () => void launchProcessesWith(undefined)],
  ['by a launcher', () => openLauncher(env)],
])('started %s', (_, open: () => RunLauncher | undefined) => {
  let ours: RunLauncher | undefined;
  beforeAll(async () => {
    ours = open();
    if (ours !== undefined) await listening(ours.address.path);
  });
  afterAll(() => ours?.close());

  test.each([
    ['nothing', undefined, ''],
    ['an empty text', '', ''],
    ['a text', 'one\nzwölf\n', 'one\nzwölf\n'],
    ['more than a pipe holds', 'x'.repeat(3_000_000), 'x'.repeat(3_000_000)],
  ])('a process is given %s to read', async (__, input, expected) => {
    const { stdout, ended } = await startProcess(program('cat'), input);
    expect(await text(stdout)).toBe(expected);
    expect(await ended).toEqual({ exitCode: 0 });
  });

  test('a process need not read what it is given', async () => {
    const { stdout, stderr, ended } = await startProcess(
      program('sh', '-c', 'echo no >&2; exit 7'),
      'x'.repeat(3_000_000),
    );
    expect(await Promise.all([text(stdout), text(stderr), ended])).toEqual(['', 'no\n', { exitCode: 7 }]);
  });

  test.each([
    ['a program that is missing', { ...program('no-such-program') }, 'ENOENT'],
    ['a folder that is missing', { ...program('true'), cwd: '/no-such-folder' }, 'ENOENT'],
    ['a file that is no program', { ...program('/etc/passwd') }, 'EACCES'],
    ['arguments that are too long', { ...program('true', 'x'.repeat(3_000_000)) }, 'E2BIG'],
    ['an argument that no program can be given', { ...program('true', 'a\0b') }, 'ERR_INVALID_ARG_VALUE'],
  ])('%s is refused', async (__, spec, code) => {
    await expect(startProcess(spec)).rejects.toMatchObject({ code });
  });
});
