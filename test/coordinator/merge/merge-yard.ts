// A fixture for merge trains: a user's repository, the store that borrows its objects, and tasks' commits.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gitAt, type Git } from '@drover/coordinator/git/git';
import { type Checkout, gateResultKey, type GateResult } from '@drover/coordinator/merge/gate';
import { type Arrival, type ExpectedTask, MergeTrain, type TrainEvent } from '@drover/coordinator/merge/train';
import { type NewCommit, writeStoreCommit } from '@drover/coordinator/store/store-writing';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { runSync } from '../../support/process/run-sync.ts';
import { never, temporaryFolder } from '../../support/workspace.ts';

export const RUN = 'run_1';
const WHEN = '2026-03-04T05:06:07.890Z';
export const env = childProcessEnvironment(process.env);

/** The content of a file; undefined removes it, and a mode makes it a link or an executable. */
type Content = string | Buffer | { readonly mode: '100755' | '120000'; readonly data: string } | undefined;
export type Changes = Readonly<Record<string, Content>>;

export type Told = TrainEvent & { readonly task?: string };

export type TrainSettings = {
  readonly gates?: readonly string[];
  readonly head?: string;
  readonly git?: Git;
  readonly known?: ReadonlyMap<string, GateResult>;
  readonly settled?: () => Promise<void>;
  readonly signal?: AbortSignal;
};

export type Yard = Awaited<ReturnType<typeof yard>>;

export async function yard(files: Changes = { 'a.txt': 'one\ntwo\nthree\n' }) {
  const folder = await temporaryFolder();
  const top = join(folder, 'user');
  const store = join(folder, 'store.git');
  const inUser = (...args: string[]) => run(['-C', top, ...args]);
  run(['init', '--quiet', '--template=', '-b', 'main', top]);
  const [base = ''] = commitsIn(join(top, '.git'), undefined, [files]);
  inUser('reset', '--quiet', '--hard', base);
  run(['init', '--quiet', '--template=', '--bare', store]);
  await mkdir(join(store, 'objects', 'info'), { recursive: true });
  await writeFile(join(store, 'objects', 'info', 'alternates'), `${join(top, '.git', 'objects')}\n`);
  const git = gitAt({ gitDir: store, env });
  const checkouts: string[] = [];

  const checkout: Checkout = async (commit) => {
    const path = await mkdtemp(join(folder, 'gate-'));
    checkouts.push(path);
    const work = ['--git-dir', store, '--work-tree', path];
    const surroundings = { cwd: path, env: { ...env, GIT_INDEX_FILE: `${path}.index` } };
    runSync('git', [...work, 'read-tree', commit], surroundings);
    runSync('git', [...work, 'checkout-index', '-a'], surroundings);
    return { path, sandbox: undefined, release: () => rm(path, { recursive: true }) };
  };

  return {
    folder,
    top,
    store,
    base,
    git,
    checkouts,
    inUser,
    /** A task with finished work. */
    work: (task: string, changes: Changes, from = base): Arrival =>
      arrivalOf(task, commitsIn(store, from, [changes])[0] ?? ''),
    works: (tasks: Readonly<Record<string, Changes>>): Arrival[] => {
      const commits = commitsIn(store, base, Object.values(tasks));
      return Object.keys(tasks).map((task, at) => arrivalOf(task, commits[at] ?? ''));
    },
    train: (settings: TrainSettings = {}) => {
      const events: Told[] = [];
      const options = {
        git: settings.git ?? git,
        commit: (commit: NewCommit) => writeStoreCommit({ gitDir: store, objectFormat: 'sha1' }, commit),
        run: RUN,
        base,
        head: settings.head ?? base,
        identity: { name: 'drover', email: 'drover@localhost' },
        when: WHEN,
        gates: settings.gates ?? [],
        checkout,
        env,
        outputFolder: join(folder, 'output'),
        knownGates: settings.known ?? new Map<string, GateResult>(),
        emit: (event: TrainEvent, place: { readonly task?: string }) => void events.push({ ...event, ...place }),
        settled: settings.settled ?? (() => Promise.resolve()),
      };
      return { train: new MergeTrain(options, settings.signal ?? never), events };
    },
    /** Path to content, with the mode of anything but a regular file. */
    files: (commit: string): Record<string, string> => {
      const entries = run(['-C', store, 'ls-tree', '-r', '-z', commit]).split('\0').filter(Boolean);
      return Object.fromEntries(
        entries.map((entry) => {
          const [, mode = '', id = '', path = ''] = /^(\d+) \w+ (\w+)\t([^]*)$/.exec(entry) ?? [];
          const data = run(['-C', store, 'cat-file', 'blob', id]);
          return [path, mode === '100644' ? data : `${mode} ${data}`];
        }),
      );
    },
    ref: (name = 'merged'): string => {
      return run(['-C', store, 'for-each-ref', '--format=%(objectname)', `refs/heads/drover/${RUN}/${name}`]).trim();
    },
    subjects: (commit: string): string[] => {
      return run(['-C', store, 'log', '--reverse', '--format=%s', `${base}..${commit}`])
        .split('\n')
        .filter(Boolean);
    },
  };
}

function arrivalOf(task: string, commit: string): Arrival {
  return { task, commit, title: `Do ${task}`, summary: `Did ${task}.`, mayRetry: true };
}

export function planned(...tasks: readonly (string | readonly [string, ...string[]])[]): ExpectedTask[] {
  return tasks.map((task) => {
    const [id, ...waitsFor] = typeof task === 'string' ? [task] : task;
    return { id, waitsFor };
  });
}

/** The events, one line each. */
export function story(events: readonly Told[]): string[] {
  return events.map((event) => {
    switch (event.type) {
      case 'merge_start':
        return `${event.task} starts`;
      case 'merge_end':
        return `${event.task} ${event.outcome}${event.again ? ', again' : ''}`;
      case 'gate_start':
        return `gate on [${event.tasks.join(' ')}]`;
      case 'gate_end':
        return `gate ${event.passed ? 'green' : 'red'}${event.flaky ? ', flaky' : ''} [${event.tasks.join(' ')}]`;
    }
  });
}

/** The gate results in the journal of an interrupted run. */
export function gatesOf(events: readonly Told[]): Map<string, GateResult> {
  const ends = events.flatMap((event) => (event.type === 'gate_end' ? [event] : []));
  return new Map(ends.map(({ tree, command, passed, output }) => [gateResultKey(tree, command), { passed, output }]));
}

export async function put(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

export function run(args: readonly string[]): string {
  const quiet = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_LITERAL_PATHSPECS: '1' };
  const who = ['-c', 'user.name=someone', '-c', 'user.email=someone@localhost'];
  return runSync('git', [...who, ...args], { cwd: '/', env: { ...env, ...quiet } }).toString();
}

// One git process makes all of these commits.
function commitsIn(gitDir: string, from: string | undefined, commits: readonly Changes[]): string[] {
  const input = commits.flatMap((changes, at): (string | Buffer)[] => [
    `reset refs/heads/made\n${from === undefined ? '' : `from ${from}\n`}\n`,
    `commit refs/heads/made\nmark :${at + 1}\ncommitter someone <someone@localhost> 1700000000 +0000\ndata 4\nwork\n`,
    ...Object.entries(changes).flatMap(([path, content]) => fileCommand(path, content)),
    `\nget-mark :${at + 1}\n`,
  ]);
  const args = ['--git-dir', gitDir, 'fast-import', '--quiet', '--force'];
  const whole = Buffer.concat(input.map((part) => Buffer.from(part)));
  return runSync('git', args, { cwd: '/', env, input: whole }).toString().trim().split('\n');
}

function fileCommand(path: string, content: Content): (string | Buffer)[] {
  const name = `"${path.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`;
  if (content === undefined) return [`D ${name}\n`];
  const isPlain = typeof content === 'string' || Buffer.isBuffer(content);
  const data = Buffer.from(isPlain ? content : content.data);
  return [`M ${isPlain ? '100644' : content.mode} inline ${name}\ndata ${data.length}\n`, data, '\n'];
}
