// Tricks by which a worker could pass its own files for drover's.

import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Slots, Workspace } from '@drover/coordinator/slots/slots';
import { contents, type Files, gitAs, take, type UserRepository, userRepository } from '../user-repository.ts';

export type Scene = {
  readonly user: UserRepository;
  readonly path: string;
  readonly slot: string;
  readonly base: string;
  readonly outside: string;
};

const SECOND = 1_000_000_000n;

export const rewrite = (path: string): void => {
  const { atime, mtime } = statSync(path);
  writeFileSync(path, readFileSync(path, 'utf8').replace(/\d/, '7'));
  utimesSync(path, atime, mtime);
};

/** Makes the slot's index say that drover wrote src/a.ts as it is now. */
export const forge = ({ path, slot }: Scene, partsOfSeconds = 1n): void => {
  const index = readFileSync(join(slot, 'git/index'));
  const { ctimeNs, mtimeNs, ino } = statSync(join(path, 'src/a.ts'), { bigint: true });
  const fields = [ctimeNs, mtimeNs].flatMap((ns) => [ns / SECOND, (ns % SECOND) * partsOfSeconds]);
  const at = index.indexOf('src/a.ts') - 62;
  fields.forEach((value, n) => index.writeUInt32BE(Number(value), at + 4 * n));
  index.writeUInt32BE(Number(ino & 0xffffffffn), at + 20);
  const digest = createHash('sha1').update(index.subarray(0, -20)).digest();
  digest.copy(index, index.length - 20);
  writeFileSync(join(slot, 'git/index'), index);
  const [base] = readFileSync(join(slot, 'git/base'), 'utf8').split(' ');
  writeFileSync(join(slot, 'git/base'), `${base} ${digest.toString('hex')}`);
};

export const DECEPTIONS: [string, (scene: Scene) => void][] = [
  ['a file rewritten to the same length, its time set back', ({ path }) => rewrite(join(path, 'src/a.ts'))],
  [
    'a file more in a folder, whose time is set back',
    ({ path }) => {
      const folder = join(path, 'src/deep');
      const { atime, mtime } = statSync(folder);
      writeFileSync(join(folder, 'more'), 'x');
      utimesSync(folder, atime, mtime);
    },
  ],
  [
    'a file replaced by an older one of the same size and time',
    ({ path, outside }) => {
      const file = join(path, 'src/a.ts');
      const { atime, mtime } = statSync(file);
      const other = join(outside, 'other');
      copyFileSync(file, other);
      rewrite(other);
      utimesSync(other, atime, mtime);
      renameSync(other, file);
    },
  ],
  ['other permissions of a file', ({ path }) => chmodSync(join(path, 'src/a.ts'), 0o777)],
  ['other permissions of a folder', ({ path }) => chmodSync(join(path, 'src/deep'), 0o777)],
  ['another name for a file', ({ path, outside }) => linkSync(join(path, 'src/a.ts'), join(outside, 'same'))],
  [
    'a folder moved away and a link to it in its place',
    ({ path, outside }) => {
      renameSync(join(path, 'src/deep'), join(outside, 'deep'));
      symlinkSync(join(outside, 'deep'), join(path, 'src/deep'));
    },
  ],
  [
    'a folder moved away and back, with another file in it',
    ({ path, outside }) => {
      renameSync(join(path, 'src/deep'), join(outside, 'deep'));
      writeFileSync(join(outside, 'deep/.git'), 'gitdir: elsewhere');
      renameSync(join(outside, 'deep'), join(path, 'src/deep'));
    },
  ],
  ['a repository deep inside', ({ user, path }) => void gitAs(join(path, 'src/deep'), user.env, ['init', '--quiet'])],
  [
    'an index of the slot that was changed and ends as before',
    (scene) => {
      rewrite(join(scene.path, 'src/a.ts'));
      const file = join(scene.slot, 'git/index');
      const end = readFileSync(file).subarray(-20);
      forge(scene);
      writeFileSync(file, Buffer.concat([readFileSync(file).subarray(0, -20), end]));
      writeFileSync(join(scene.slot, 'git/base'), `${scene.base} ${end.toString('hex')}`);
      const later = Date.now() / 1_000 + 60;
      utimesSync(file, later, later);
    },
  ],
  [
    'an index of the slot in which the changed file is the right one',
    (scene) => {
      rewrite(join(scene.path, 'src/a.ts'));
      forge(scene);
      // Makes it look as if drover alone had used the tree for a long time.
      const later = Date.now() / 1_000 + 60;
      utimesSync(join(scene.slot, 'git/index'), later, later);
    },
  ],
];

export type Known = {
  readonly scene: Scene;
  readonly slots: Slots;
  readonly workspace: Workspace;
  readonly clean: Files;
};

/** A workspace whose files drover has all checked a while ago. */
export async function known(): Promise<Known> {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const first = await take(slots, head);
  await settled();
  await first.release();
  const workspace = await take(slots, head, { task: 'next' });
  const outside = join(user.folder, 'outside');
  mkdirSync(outside);
  const scene = { user, path: workspace.path, slot: join(workspace.path, '..'), base: head, outside };
  return { scene, slots, workspace, clean: contents(workspace.path) };
}

/** Waits until new writes get a later timestamp than all earlier ones. */
export async function settled(): Promise<void> {
  await delay(150);
}
