// Runs that are killed while they use workspaces, and checks of the runs after them.

import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import {
  contents,
  everyByte,
  FILES,
  gitAs,
  order,
  take,
  type UserRepository,
  userRepository,
  writeFiles,
} from '../user-repository.ts';

const GIT = execFileSync('which', ['git']).toString().trim();
const CHILD = join(import.meta.dirname, 'workspace-child.ts');

export type Child = {
  readonly ended: Promise<void>;
  readonly ready: Promise<void>;
  readonly kill: () => void;
  said: string;
};

export function start(user: UserRepository, { env = user.env, waits = false } = {}): Child {
  const given = JSON.stringify({ home: user.home, top: user.top, run: 'run_1', env, waits });
  const process_ = spawn(process.execPath, [CHILD, given], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ready = Promise.withResolvers<void>();
  const child = { said: '', ready: ready.promise, kill: () => void process_.kill('SIGKILL') };
  process_.stdout.on('data', (chunk: Buffer) => {
    child.said += chunk.toString();
    ready.resolve();
  });
  const ended = new Promise<void>((resolve) => process_.once('close', () => resolve()));
  return Object.assign(child, { ended });
}

/** A PATH whose git runs these shell lines first. */
export function fakeGit(user: UserRepository, ...lines: readonly string[]): string {
  const folder = join(user.folder, 'fake');
  mkdirSync(folder, { recursive: true });
  const script = ['#!/bin/sh', ...lines, `exec ${GIT} "$@"`];
  writeFileSync(join(folder, 'git'), `${script.join('\n')}\n`);
  chmodSync(join(folder, 'git'), 0o755);
  return `${folder}:${user.env['PATH']}`;
}

/** The nth git that works on the store kills drover, before it starts or after it ends. */
function deadly(user: UserRepository, at: number, when: 'before' | 'after'): string {
  const calls = join(user.folder, 'calls');
  mkdirSync(calls);
  return fakeGit(
    user,
    `case "$GIT_DIR" in */store.git) ;; *) exec ${GIT} "$@";; esac`,
    `n=1; while ! mkdir ${calls}/$n 2>/dev/null; do n=$((n + 1)); done`,
    `[ "$n" = ${at} ] || exec ${GIT} "$@"`,
    ...(when === 'before' ? ['kill -9 $PPID'] : [`${GIT} "$@"; code=$?`, 'kill -9 $PPID', 'exit $code']),
  );
}

/** The state that the next run finds. */
export async function expectUsable(user: UserRepository): Promise<void> {
  const { head } = await user.open();
  const slots = await user.slots('run_2');
  slots.prepare(1);
  for (const task of ['one', 'two']) {
    const workspace = await take(slots, head, { task });
    const files = Object.entries(contents(workspace.path)).filter(([path]) => !path.endsWith('/'));
    expect(Object.fromEntries(files)).toEqual(
      Object.fromEntries(Object.entries(FILES).map(([path, text]) => [path, `644 ${text}`])),
    );
    await writeFiles(workspace.path, { 'src/a.ts': task });
    expect((await workspace.commit(order(`drover/run_2/${task}`)))?.files).toEqual(['src/a.ts']);
    await workspace.release();
  }
  await slots.close();
}

/** Resumes the first task of the killed run, and checks its state. */
async function expectToGoOn(user: UserRepository): Promise<void> {
  const slots = await user.slots('run_1');
  const found = await slots.again({ task: 'first', attempt: 1 });
  const { head } = await user.open();
  const workspace = found ?? (await take(slots, head, { task: 'first' }));
  // Either as the worker left it, or as before it started.
  const isLeft = existsSync(join(workspace.path, 'x.log'));
  expect(contents(workspace.path)['src/a.ts']).toBe(`644 ${isLeft ? 'by the first' : FILES['src/a.ts']}`);
  await writeFiles(workspace.path, { 'src/a.ts': 'by the first', 'x.log': '' });
  const again = { message: 'first', when: '2026-03-04T05:06:07Z', branch: 'drover/run_1/first' };
  expect((await workspace.commit(again))?.files).toEqual(['src/a.ts']);
  await workspace.release();
  await slots.close();
}

export type Cut = { readonly isThrough: boolean; readonly work: string };

/** Kills a run at that git, and checks what it and other runs find afterwards. */
export async function cut(at: number, when: 'before' | 'after'): Promise<Cut> {
  const user = await userRepository();
  const before = everyByte(user.top);
  const child = start(user, { env: { ...user.env, PATH: deadly(user, at, when) } });
  await child.ended;
  expect(everyByte(user.top)).toEqual(before);
  await expectUsable(user);
  await expectToGoOn(user);
  const store = join(user.home, 'workspaces', readdirSync(join(user.home, 'workspaces'))[0] ?? '', 'store.git');
  const work = gitAs(store, user.env, ['log', '-1', '--format=%T %s', 'drover/run_1/first']);
  return { isThrough: child.said.includes('done'), work };
}
