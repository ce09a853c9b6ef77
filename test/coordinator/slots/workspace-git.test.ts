// The git folder of a worker: as good as new, whatever the previous worker left, and reused if untouched.

import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gitAs, take, type UserRepository, userRepository, writeFiles } from '../user-repository.ts';
import { proves } from '../../support/proves.ts';

type Scene = {
  readonly user: UserRepository;
  readonly path: string;
  readonly git: string; // the worker's git folder
  readonly outside: string;
};

async function scene() {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const workspace = await take(slots, head, { task: 'same' });
  const outside = join(user.folder, 'outside');
  await writeFiles(outside, { 'precious.txt': 'precious' });
  const given: Scene = { user, path: workspace.path, git: join(workspace.path, '.git'), outside };
  const again = async () => {
    await workspace.release();
    return take(slots, head, { task: 'same' });
  };
  return { given, slots, again };
}

/** Everything in a git folder: names, kinds, modes, hard links and contents, but not the index's times. */
function everything(git: string): Readonly<Record<string, string>> {
  const names = readdirSync(git, { recursive: true, encoding: 'utf8' }).toSorted();
  const shown = ['', ...names].map((name) => {
    const { mode, nlink } = lstatSync(join(git, name));
    const isFolder = (mode & 0o170000) === 0o040000;
    const content = isFolder || name === 'index' ? '' : readFileSync(join(git, name), 'latin1');
    return [name, `${mode.toString(8)} ${isFolder ? '' : nlink} ${content}`];
  });
  return Object.fromEntries(shown);
}

const LEFT: [string, (scene: Scene) => void][] = [
  ['nothing', () => undefined],
  ['a hook', ({ git }) => (mkdirSync(join(git, 'hooks')), writeFileSync(join(git, 'hooks/pre-commit'), 'exit 1'))],
  ['a setting', ({ git }) => appendFileSync(join(git, 'config'), '[core]\n\tfsmonitor = trap\n')],
  [
    'a setting of the same length',
    ({ git }) => {
      const text = readFileSync(join(git, 'config'), 'utf8');
      writeFileSync(join(git, 'config'), text.replace('filemode = true', 'fsmonitor = sh.'));
    },
  ],
  ['an ignored name', ({ git }) => writeFileSync(join(git, 'info/exclude'), 'src/\n')],
  ['attributes', ({ git }) => writeFileSync(join(git, 'info/attributes'), '* filter=evil\n')],
  ['objects from elsewhere', ({ git, outside }) => appendFileSync(join(git, 'objects/info/alternates'), outside)],
  ['a commit', ({ user, path }) => commit(user, path, 'by the worker')],
  ['another branch', ({ user, path }) => void gitAs(path, user.env, ['checkout', '--quiet', '-b', 'other'])],
  ['a stash', ({ user, path }) => (commit(user, path, 'one'), stash(user, path))],
  ['a graft and a shallow end', ({ git }) => writeFileSync(join(git, 'shallow'), `${'1'.repeat(40)}\n`)],
  ['a lock', ({ git }) => writeFileSync(join(git, 'config.lock'), '')],
  ['a second name for a file', ({ git, outside }) => linkSync(join(git, 'config'), join(outside, 'config'))],
  [
    'a second name for the file of somebody else',
    ({ git, outside }) => (unlinkSync(join(git, 'HEAD')), linkSync(join(outside, 'precious.txt'), join(git, 'HEAD'))),
  ],
  [
    'a link in place of a file',
    ({ git, outside }) => (
      unlinkSync(join(git, 'packed-refs')),
      symlinkSync(join(outside, 'precious.txt'), join(git, 'packed-refs'))
    ),
  ],
  [
    'a link in place of a folder, with the very same files',
    ({ git, outside }) => {
      renameSync(join(git, 'info'), join(outside, 'info'));
      symlinkSync(join(outside, 'info'), join(git, 'info'));
    },
  ],
  [
    'a folder in place of a file',
    ({ git }) => (unlinkSync(join(git, 'index')), mkdirSync(join(git, 'index/x'), { recursive: true })),
  ],
  [
    'a file in place of a folder',
    ({ git }) => (rmSync(join(git, 'refs'), { recursive: true }), writeFileSync(join(git, 'refs'), 'x')),
  ],
  ['other permissions of a file', ({ git }) => chmodSync(join(git, 'config'), 0o777)],
  ['a file that may not be read', ({ git }) => chmodSync(join(git, 'index'), 0)],
  ['other permissions of a folder', ({ git }) => chmodSync(join(git, 'objects'), 0o777)],
  ['a folder that may not be read', ({ git }) => chmodSync(git, 0)],
  [
    'files missing',
    ({ git }) => ['HEAD', 'config', 'index', 'info/exclude'].forEach((name) => unlinkSync(join(git, name))),
  ],
  ['a folder missing', ({ git }) => rmSync(join(git, 'objects'), { recursive: true })],
];

function commit(user: UserRepository, path: string, text: string): void {
  writeFileSync(join(path, 'src/a.ts'), text);
  gitAs(path, user.env, ['commit', '--quiet', '--all', '--message', text]);
}

function stash(user: UserRepository, path: string): void {
  writeFileSync(join(path, 'src/a.ts'), 'hidden away');
  gitAs(path, user.env, ['stash', '--quiet']);
}

describe('the next worker gets a fresh git folder after the previous one left', () => {
  test.each(LEFT)('%s', async (_, leave) => {
    const { given, again } = await scene();
    const fresh = everything(given.git);
    leave(given);
    await again();
    expect(everything(given.git)).toEqual(fresh);
    expect(gitAs(given.path, given.user.env, ['status', '--porcelain', '--ignored'])).toBe('');
    expect(readFileSync(join(given.outside, 'precious.txt'), 'utf8')).toBe('precious');
  });
});

test('an untouched git folder is not made again', async () => {
  const { given, again } = await scene();
  const folders = ['', 'refs', 'info', 'objects', 'objects/info'].map((name) => join(given.git, name));
  const before = folders.map((place) => lstatSync(place).ino);
  // This command writes a new index.
  gitAs(given.path, given.user.env, ['update-index', '--refresh', '--force-write-index']);
  await again();
  expect(folders.map((place) => lstatSync(place).ino)).toEqual(before);
});

proves('workspace.clean', 'a link in place of a folder set aside is not followed on removal', async () => {
  const { given, slots, again } = await scene();
  const trash = join(given.path, '../trash');
  rmSync(trash, { recursive: true, force: true });
  symlinkSync(given.outside, trash);
  writeFileSync(join(given.path, 'new.ts'), 'new');
  await again();
  await slots.close();
  expect(existsSync(join(given.path, 'new.ts'))).toBe(false);
  expect(readdirSync(given.outside)).toEqual(['precious.txt']);
});
