// Cost of workspaces, compared with eight plain `git worktree add` of the same repository in the same run. Both are
// measured for some rounds, and the best one counts: by the clock, and in CPU time, which load changes less.

import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { differencesOfRepository, fingerprintRepository } from '@drover/coordinator/git/audit';
import { openRepository, type Repository } from '@drover/coordinator/git/repository';
import { Slots, type Workspace } from '@drover/coordinator/slots/slots';
import { newFolder } from './folder.ts';

const WORKERS = 8;
const FOLDERS = 100;
const FILES_A_FOLDER = 20;
const ROUNDS = 3;
const NEXT_SECOND_MS = 1_100;
// The shortest time for which a coordinator plans.
const PLANNING_MS = 1_500;

const run = promisify(execFile);
const env = { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), GIT_CONFIG_NOSYSTEM: '1' };
const { signal } = new AbortController();

type Cost = { readonly wallMs: number; readonly cpuMs: number };
type Round = Readonly<Record<'floor' | 'first' | 'commit' | 'next' | 'prepared' | 'nextRun' | 'audit', Cost>>;

export async function lines(): Promise<readonly string[]> {
  const folder = newFolder();
  const repository = await sample(join(folder, 'project'));
  const rounds: Round[] = [];
  for (let n = 0; n < ROUNDS; n++) rounds.push(await round(repository, join(folder, `round-${n}`)));
  // Other load on the machine can only add to this time.
  const best = (key: keyof Round, cost: keyof Cost) => Math.min(...rounds.map((each) => each[key][cost]));
  const row = (what: string, key: keyof Round, aim: number, more = '') => {
    const [wall, floor] = [best(key, 'wallMs'), best('floor', 'wallMs')];
    const [cpu, cpuFloor] = [best(key, 'cpuMs'), best('floor', 'cpuMs')];
    const processors = `CPU ${cpu.toFixed(0)} against ${cpuFloor.toFixed(0)} ms`;
    return line(
      what,
      wall / floor,
      `${wall.toFixed(0)} ms against ${floor.toFixed(0)} ms, ${processors}, aim ${aim}x${more}`,
      aim,
    );
  };
  const [prepared, cpuFloor] = [best('prepared', 'cpuMs'), best('floor', 'cpuMs')];
  const meanwhile = `; while it was planned they took CPU ${prepared.toFixed(0)} ms, ${(prepared / cpuFloor).toFixed(2)}x`;
  return [
    row(`${WORKERS} first workspaces of 2,000 files`, 'first', 1.5),
    row(`${WORKERS} workspaces, next task in the slot`, 'next', 0.1),
    row(`${WORKERS} workspaces, next run, once it is planned`, 'nextRun', 0.1, meanwhile),
    row(`${WORKERS} commits`, 'commit', 0.5),
    row('two fingerprints of the checkout', 'audit', 0.1),
  ];
}

async function sample(top: string): Promise<Repository> {
  const text = Array.from({ length: 40 }, (_, n) => `export const line${n} = ${n};\n`).join('');
  for (let n = 0; n < FOLDERS; n++) {
    mkdirSync(join(top, `src/folder-${n}`), { recursive: true });
    for (let m = 0; m < FILES_A_FOLDER; m++) {
      writeFileSync(join(top, `src/folder-${n}/file-${m}.ts`), `// ${n} ${m}\n${text}`);
    }
  }
  writeFileSync(join(top, '.gitignore'), '*.log\n');
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: top, env });
  git('init', '--quiet');
  git('add', '--all');
  git('-c', 'user.name=U', '-c', 'user.email=u@example.com', 'commit', '--quiet', '--message=first');
  git('repack', '-adq');
  // The file gets an older time: git reads every file that was written in the same second as its index.
  await delay(NEXT_SECOND_MS);
  git('read-tree', 'HEAD');
  git('update-index', '--refresh');
  return openRepository(top, env);
}

async function round(repository: Repository, folder: string): Promise<Round> {
  mkdirSync(folder);
  const floor = await timed(() =>
    inTurn((n) =>
      run('git', ['worktree', 'add', '--quiet', '--detach', join(folder, `tree-${n}`)], { cwd: repository.top, env }),
    ),
  );
  const atOnce = await open(repository, join(folder, 'at-once'), 'run_1');
  const first = await timed(() => takeAll(atOnce, repository, 'first'));
  await atOnce.close();

  const home = join(folder, 'planned');
  const slots = await open(repository, home, 'run_1');
  slots.prepare(WORKERS);
  await delay(first.wallMs + PLANNING_MS);
  const workspaces = await takeAll(slots, repository, 'first');
  workspaces.forEach(work);
  const commit = await timed(() => inTurn((n) => commitOf(workspaces[n - 1])));
  let again: readonly Workspace[] = [];
  const next = await timed(async () => {
    await Promise.all(workspaces.map((each) => each.release('commit')));
    again = await takeAll(slots, repository, 'next');
  });
  again.forEach(work);
  await releaseAll(again);
  await slots.close();

  let other = slots;
  const prepared = await timed(async () => {
    other = await open(repository, home, 'run_2');
    other.prepare(WORKERS);
    await delay(PLANNING_MS);
  });
  const nextRun = await timed(() => takeAll(other, repository, 'first'));
  await other.close();
  const audit = await timed(async () => {
    const before = await fingerprintRepository(repository, env);
    if (differencesOfRepository(before, await fingerprintRepository(repository, env)).length > 0)
      throw new Error('the checkout was changed');
  });
  return { floor, first, commit, next, prepared, nextRun, audit };
}

// The tasks run in sequence, since concurrent ones would mostly wait for the same processors.
async function inTurn<T>(make: (n: number) => Promise<T>): Promise<readonly T[]> {
  const made: T[] = [];
  for (let n = 1; n <= WORKERS; n++) made.push(await make(n));
  return made;
}

function open(repository: Repository, home: string, id: string): Promise<Slots> {
  return Slots.open({ home, repository, run: id, env });
}

function takeAll(slots: Slots, { head: base }: Repository, name: string): Promise<readonly Workspace[]> {
  return inTurn((worker) => slots.take({ worker, task: `${name}-${worker}`, attempt: 1, base, signal }));
}

function work({ path }: Workspace): void {
  for (let n = 0; n < 5; n++) writeFileSync(join(path, `src/folder-${n}/file-1.ts`), 'changed');
  for (let n = 0; n < 5; n++) writeFileSync(join(path, `src/folder-${n}/new.ts`), 'new');
  writeFileSync(join(path, 'debug.log'), 'ignored');
}

async function commitOf(workspace: Workspace | undefined): Promise<void> {
  await workspace?.commit({ message: 'done', when: '2026-01-01T00:00:00Z', branch: 'drover/run_1/first' });
}

async function releaseAll(workspaces: readonly Workspace[]): Promise<void> {
  await Promise.all(workspaces.map((each) => each.release()));
}

async function timed(work: () => Promise<unknown>): Promise<Cost> {
  const begun = performance.now();
  const own = process.cpuUsage();
  const children = childrenCpuMs();
  await work();
  const wallMs = performance.now() - begun;
  const { user, system } = process.cpuUsage(own);
  return { wallMs, cpuMs: (user + system) / 1_000 + childrenCpuMs() - children };
}

// CPU time of the child processes that ended, in steps of ten milliseconds.
function childrenCpuMs(): number {
  if (!existsSync('/proc/self/stat')) return 0;
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[13]) + Number(fields[14])) * 10;
}

function line(what: string, ratio: number, note: string, aim: number): string {
  return `${what.padEnd(50)} ${`${ratio.toFixed(2)}x`.padStart(10)}   (${note}) ${ratio <= aim ? 'ok' : 'OVER'}`;
}
