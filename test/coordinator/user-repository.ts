// A user's repository for tests: real files, real git, a home of its own, and no config of this machine.

import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { openRepository, type Repository } from '@drover/coordinator/git/repository';
import { Slots, type Wish, type Workspace } from '@drover/coordinator/slots/slots';
import { onTestFinished } from 'vitest';
import { runSync } from '../support/process/run-sync.ts';
import { never, temporaryFolder } from '../support/workspace.ts';

export type UserRepository = {
  readonly folder: string; // the folder that holds everything
  readonly top: string;
  readonly home: string; // drover's home
  readonly env: Readonly<Record<string, string>>;
  /** The output of git, without its final newline. */
  readonly git: (...args: readonly string[]) => string;
  readonly write: (files: Files) => Promise<void>;
  readonly open: () => Promise<Repository>;
  /** The repository as it was last opened. */
  readonly slots: (run?: string) => Promise<Slots>;
};

export type Files = Readonly<Record<string, string>>;

export const FILES: Files = {
  'README.md': 'hello\n',
  'src/a.ts': 'export const a = 1;\n',
  'src/b.ts': 'export const b = 2;\n',
  'src/deep/c.ts': 'export const c = 3;\n',
  '.gitignore': 'node_modules/\n*.log\n.env\n',
};

/** A repository with one commit of these files. */
export async function userRepository(files: Files = FILES, ...init: readonly string[]): Promise<UserRepository> {
  const folder = await temporaryFolder();
  const top = join(folder, 'project');
  const home = join(folder, 'home');
  await mkdir(top);
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, GIT_CONFIG_NOSYSTEM: '1' };
  const git = (...args: readonly string[]) => gitAs(top, env, args);
  const write = (more: Files) => writeFiles(top, more);
  git('init', '--quiet', '--template=', '--initial-branch=main', ...init);
  await write(files);
  git('add', '--all');
  git('-c', 'user.name=U', '-c', 'user.email=u@example.com', 'commit', '--quiet', '--allow-empty', '--message=first');
  let last: Repository | undefined;
  const open = async () => (last = await openRepository(top, env));
  const slots = async (run = 'run_1') => {
    const opened = await Slots.open({ home, repository: last ?? (await open()), run, env });
    onTestFinished(() => opened.close());
    return opened;
  };
  return { folder, top, home, env, git, write, open, slots };
}

export async function writeFiles(folder: string, files: Files): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

export function gitAs(cwd: string, env: Readonly<Record<string, string>>, args: readonly string[]): string {
  return runSync('git', args, { cwd, env }).toString().replace(/\n$/, '');
}

export function take(slots: Slots, base: string, wish: Partial<Wish> = {}): Promise<Workspace> {
  return slots.take({ worker: 1, task: 'task', attempt: 1, base, signal: never, ...wish });
}

export function order(branch: string): { message: string; when: string; branch: string } {
  return { message: 'what was done', when: '2026-03-04T05:06:07.000Z', branch };
}

/** Everything in a folder except its `.git`: each path with its kind, mode and content. */
export function contents(folder: string): Files {
  const found: Record<string, string> = {};
  const look = (path: string): void => {
    const whole = join(folder, path);
    const stat = lstatSync(whole);
    const mode = (stat.mode & 0o7777).toString(8);
    if (stat.isSymbolicLink()) found[path] = `link to ${readlinkSync(whole)}`;
    else if (stat.isFile()) found[path] = `${mode} ${readFileSync(whole, 'latin1')}`;
    else if (!stat.isDirectory()) found[path] = 'something else';
    else {
      if (path !== '') found[`${path}/`] = mode;
      for (const name of readdirSync(whole)) if (path !== '' || name !== '.git') look(join(path, name));
    }
  };
  look('');
  return Object.fromEntries(Object.entries(found).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Every byte of a folder, `.git` included, and each file's write time. Objects have no times here, because git renews
 * the time of an object that it needs and already has.
 */
export function everyByte(folder: string): Files {
  const found: Record<string, string> = {};
  const look = (path: string): void => {
    const whole = join(folder, path);
    const stat = lstatSync(whole);
    if (stat.isDirectory()) for (const name of readdirSync(whole)) look(join(path, name));
    else
      found[path] =
        `${path.includes('.git/objects/') ? '' : stat.mtimeMs} ${stat.isFile() ? readFileSync(whole, 'latin1') : readlinkSync(whole)}`;
  };
  look('');
  return found;
}
