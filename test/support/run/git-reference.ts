// Random trees, handled by drover and by plain git: what drover does for speed must give what git gives.
//
// For each seed: a random tree is committed, a worker changes it at random, drover commits the changes and cleans the
// slot for the next task. Plain git does the same in a repository of its own, from a copy of the files.

import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { readGitIndex, objectOfIndexEntry } from '@drover/coordinator/git/index-file';
import type { Identity } from '@drover/coordinator/git/repository';
import type { Slots } from '@drover/coordinator/slots/slots';
import { contents, order, take, userRepository, type UserRepository } from '../../coordinator/user-repository.ts';
import { randomFrom, type Random } from '../data/histories.ts';
import { runSync } from '../process/run-sync.ts';

const FOLDERS = ['', '', 'a/', 'a-/', 'a/b/', 'src/', 'ünder/', 'deep/er/and/', 'sp ace/'];
const NAMES = [
  'a',
  'a.ts',
  'a-b',
  'a0',
  'b',
  'ü',
  '😀',
  'li\nne',
  'q"uote',
  "it's",
  '.hidden',
  `${'long'.repeat(40)}.ts`,
];
const SIZES = [0, 1, 12, 300];
const FILES_MAX = 24;
const CHANGES_MAX = 8;

/** Results of drover and of plain git for the same tree, which must be equal. */
export type Compared = { readonly drover: Outcome; readonly git: Outcome };

type Outcome = {
  readonly entries: readonly string[]; // entries of the base index: mode, object and path
  readonly files: readonly string[];
  readonly commit: string;
  readonly clean: Readonly<Record<string, string>>; // the tree that the next task finds
};

/** Handles one random tree for each seed, in the slots of one repository. */
export async function* compareWithGit(seeds: readonly number[]): AsyncGenerator<Compared> {
  const user = await userRepository({ first: 'first' });
  const slots = await user.slots();
  const plain = join(user.folder, 'plain');
  runSync('git', ['clone', '--quiet', '--shared', '--no-checkout', user.top, plain], {
    cwd: user.folder,
    env: user.env,
  });
  for (const seed of seeds) yield await compareOne({ user, slots, plain, random: randomFrom(seed) });
}

type Scene = {
  readonly user: UserRepository;
  readonly slots: Slots;
  readonly plain: string; // the repository in which plain git works
  readonly random: Random;
};

async function compareOne(scene: Scene): Promise<Compared> {
  const { user, slots, plain, random } = scene;
  const base = commitRandomTree(user, random);
  const env = { ...user.env, ...asAuthor((await user.open()).identity) };
  const inPlain = (...args: readonly string[]): string =>
    runSync('git', args, { cwd: plain, env, input: MESSAGE }).toString('latin1');
  inPlain('read-tree', '--reset', '-u', base);
  inPlain('clean', '--quiet', '-ffdx');
  const clean = contents(plain);
  const entries = inPlain('ls-files', '--stage', '-z').split('\0').filter(Boolean);

  const workspace = await take(slots, base);
  const droverEntries = entriesIn(join(workspace.path, '..', 'git', 'index'));
  change(workspace.path, random);
  replaceFiles(workspace.path, plain);
  const made = await workspace.commit(order('drover/run_1/task'));
  await workspace.release(random.chance(0.5) ? 'commit' : undefined);
  const next = await take(slots, base, { task: 'next' });
  const droverClean = contents(next.path);
  await next.release();

  inPlain('add', '--all');
  const changed = inPlain('diff-index', '--cached', '-z', '--name-only', '--no-renames', base);
  const files = Buffer.from(changed, 'latin1').toString().split('\0').filter(Boolean);
  const tree = inPlain('write-tree').trim();
  const commit = files.length === 0 ? base : inPlain('commit-tree', tree, '-p', base, '-F', '-').trim();
  return {
    drover: { entries: droverEntries, files: made?.files ?? [], commit: made?.commit ?? base, clean: droverClean },
    git: { entries, files, commit, clean },
  };
}

const { message: MESSAGE, when: WHEN } = order('any');

function asAuthor({ name, email }: Identity): Readonly<Record<string, string>> {
  const author = { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_AUTHOR_DATE: WHEN };
  return { ...author, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email, GIT_COMMITTER_DATE: WHEN };
}

function commitRandomTree({ top, git }: UserRepository, random: Random): string {
  for (const name of readdirSync(top)) if (name !== '.git') rmSync(join(top, name), { recursive: true });
  for (let n = random.below(FILES_MAX); n >= 0; n--) put(top, randomPath(random), random);
  if (random.chance(0.3)) writeFileSync(join(top, '.gitignore'), 'a0\n*.ts\n!a.ts\n');
  git('add', '--all', '--force');
  git('-c', 'user.name=U', '-c', 'user.email=u@example.com', 'commit', '--quiet', '--allow-empty', '--message=random');
  return git('rev-parse', 'HEAD');
}

/** Changes a tree as a worker may: contents, modes, kinds, names, folders, and times that lie. */
function change(top: string, random: Random): void {
  for (let n = random.below(CHANGES_MAX); n > 0; n--) {
    const path = random.chance(0.6) ? random.pick(['', ...pathsIn(top)]) || randomPath(random) : randomPath(random);
    makeWay(top, dirname(path));
    const place = join(top, path);
    const isFile = lstatSync(place, { throwIfNoEntry: false })?.isFile() === true;
    const kind = random.pick(['remove', 'mode', 'rewrite', 'put'] as const);
    if (kind === 'remove') rmSync(place, { recursive: true, force: true });
    else if (kind === 'mode' && isFile) chmodSync(place, random.pick([0o755, 0o644, 0o600]));
    else if (kind === 'rewrite' && isFile) rewriteInPlace(place);
    else put(top, path, random);
  }
}

/** Writes other bytes of the same length, and restores the file's old times. */
function rewriteInPlace(place: string): void {
  const { atime, mtime, size } = lstatSync(place);
  writeFileSync(place, 'z'.repeat(size));
  utimesSync(place, atime, mtime);
}

function put(top: string, path: string, random: Random): void {
  makeWay(top, dirname(path));
  const place = join(top, path);
  rmSync(place, { recursive: true, force: true });
  const kind = random.below(10);
  if (kind === 0) symlinkSync(random.pick(['a', '../a', 'nowhere', 'src']), place);
  else writeFileSync(place, 'x'.repeat(random.pick(SIZES)) + random.below(4), { mode: kind === 1 ? 0o755 : 0o644 });
}

/** Makes a folder after removing files and links in its place. */
function makeWay(top: string, folder: string): void {
  if (folder === '.') return;
  makeWay(top, dirname(folder));
  const place = join(top, folder);
  if (lstatSync(place, { throwIfNoEntry: false })?.isDirectory() === true) return;
  rmSync(place, { force: true });
  mkdirSync(place);
}

const randomPath = (random: Random): string => `${random.pick(FOLDERS)}${random.pick(NAMES)}`;
const pathsIn = (top: string): readonly string[] => Object.keys(contents(top)).map((path) => path.replace(/\/$/, ''));

/** Replaces the files of one folder by those of another. Both keep their `.git`. */
function replaceFiles(from: string, to: string): void {
  for (const name of readdirSync(to)) if (name !== '.git') rmSync(join(to, name), { recursive: true });
  const names = readdirSync(from).filter((name) => name !== '.git');
  if (names.length > 0) runSync('cp', ['-a', '--', ...names, to], { cwd: from });
}

/** The entries of an index as `git ls-files --stage` writes them. */
function entriesIn(path: string): readonly string[] {
  const index = readGitIndex(readFileSync(path), 'sha1');
  if (index === undefined) throw new Error(`${path} was not understood`);
  return index.entries.map((entry) => {
    const object = objectOfIndexEntry(index.bytes, entry, 'sha1').toString('hex');
    return `${entry.mode.toString(8)} ${object} 0\t${entry.path}`;
  });
}
