// Measures what installed dependencies cost in workspaces, next to plain copies of the same folder in the same run.
//
// The project has as many files and bytes as a middling npm project. Both ways of drover are measured: a mount in the
// sandbox, and hard links to a private copy, the first time and when eight workspaces take it from there.

import { cpSync, mkdirSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dependencies } from '@drover/coordinator/dependencies/bring';
import { openRepository, type Repository } from '@drover/coordinator/git/repository';
import { Slots } from '@drover/coordinator/slots/slots';
import { newFolder } from './folder.ts';

const WORKERS = 8;
const PACKAGES = 500;
const FILES_A_PACKAGE = 50;
const BYTES = 270 * 1024 * 1024;
const SECONDS_AIM = 5;
const MB_AIM = 100;
const MB = 1024 * 1024;
const PLANNING_MS = 10_000;

const env = { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), GIT_CONFIG_NOSYSTEM: '1' };
const { signal } = new AbortController();

type Cost = { readonly seconds: number; readonly cpuSeconds: number; readonly mb: number };

export async function lines(): Promise<readonly string[]> {
  const folder = newFolder();
  const repository = await sample(join(folder, 'project'));
  const modules = join(repository.top, 'node_modules');
  const copies = await cost(folder, async () => {
    for (let n = 0; n < WORKERS; n++) cpSync(modules, join(folder, 'copies', String(n)), { recursive: true });
  });
  const ways = [];
  for (const how of ['mount', 'link'] as const) ways.push(...(await way(how, { folder, repository, copies })));
  return [row(`${WORKERS} plain copies of 25,000 files, 270 MB`, copies, 'the floor'), ...ways];
}

type Place = { readonly folder: string; readonly repository: Repository; readonly copies: Cost };

async function way(how: Dependencies['how'], { folder, repository, copies }: Place): Promise<readonly string[]> {
  const home = join(folder, how);
  const words = how === 'mount' ? 'mounts in the sandbox' : 'hard links to a private copy';
  const take = async (run: string, workers: number, at = home): Promise<void> => {
    const slots = await Slots.open({
      home: at,
      repository,
      run,
      env,
      dependencies: { folders: ['node_modules'], how },
    });
    const { head: base } = repository;
    const taken = Array.from({ length: workers }, (_, n) =>
      slots.take({ worker: n + 1, task: `task-${n}`, attempt: 1, base, signal }),
    );
    for (const workspace of await Promise.all(taken)) await workspace.release();
    await slots.close();
  };
  const first = await cost(folder, () => take('run_1', 1));
  const eight = await cost(folder, () => take('run_2', WORKERS));
  const again = await cost(folder, () => take('run_3', WORKERS));
  await take('run_4', 1, `${home}-ahead`);
  const planned = await ahead(`${home}-ahead`, { repository, how });
  const { seconds, mb } = eight;
  const verdict = seconds <= SECONDS_AIM && mb <= MB_AIM ? 'ok' : 'OVER';
  const ratio = `${(seconds / copies.seconds).toFixed(3)}x of copies; aim ${SECONDS_AIM} s and ${MB_AIM} MB`;
  return [
    row(`the first workspace, ${words}`, first),
    row(`then ${WORKERS} workspaces`, eight, `${ratio}: ${verdict}`),
    row(`the same ${WORKERS} in the next run`, again),
    row(`${WORKERS} anew, made while a plan was made`, planned),
  ];
}

/** The time that tasks wait for workspaces which drover began to make before their plan was there. */
async function ahead(home: string, { repository, how }: { repository: Repository; how: Dependencies['how'] }) {
  const slots = await Slots.open({
    home,
    repository,
    run: 'run_5',
    env,
    dependencies: { folders: ['node_modules'], how },
  });
  slots.prepare(WORKERS);
  await delay(PLANNING_MS);
  const { head: base } = repository;
  const wishes = Array.from({ length: WORKERS }, (_, n) => ({ worker: n + 1, task: `task-${n}`, attempt: 1 }));
  const taken = await cost(home, async () => {
    const workspaces = await Promise.all(wishes.map((wish) => slots.take({ ...wish, base, signal })));
    for (const workspace of workspaces) await workspace.release();
  });
  await slots.close();
  return taken;
}

async function sample(top: string): Promise<Repository> {
  const content = Buffer.alloc(Math.round(BYTES / PACKAGES / FILES_A_PACKAGE), 'x');
  for (let n = 0; n < PACKAGES; n++) {
    const folder = join(top, 'node_modules', `package-${n}`, 'lib');
    mkdirSync(folder, { recursive: true });
    for (let m = 0; m < FILES_A_PACKAGE; m++) writeFileSync(join(folder, `file-${m}.js`), content);
  }
  writeFileSync(join(top, '.gitignore'), 'node_modules/\n');
  writeFileSync(join(top, 'package-lock.json'), '{}\n');
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: top, env });
  git('init', '--quiet');
  git('add', '--all');
  git('-c', 'user.name=U', '-c', 'user.email=u@example.com', 'commit', '--quiet', '--message=first');
  return openRepository(top, env);
}

/** The time taken, and the disk space used. */
async function cost(folder: string, work: () => Promise<void>): Promise<Cost> {
  const before = used(folder);
  const [begun, cpu] = [performance.now(), process.cpuUsage()];
  await work();
  const seconds = (performance.now() - begun) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  execFileSync('sync');
  return { seconds, cpuSeconds: (user + system) / 1_000_000, mb: (used(folder) - before) / MB };
}

function used(folder: string): number {
  const { blocks, bfree, bsize } = statfsSync(folder);
  return (blocks - bfree) * bsize;
}

function row(what: string, { seconds, cpuSeconds, mb }: Cost, note = ''): string {
  const cpu = cpuSeconds.toFixed(2).padStart(6);
  return `${what.padEnd(50)} ${seconds.toFixed(2).padStart(8)} s (CPU ${cpu} s) ${mb.toFixed(0).padStart(6)} MB   ${note}`;
}
