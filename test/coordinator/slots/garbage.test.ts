// Garbage collection: finds what no run needs, and keeps every only copy of work.

import { existsSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findGarbage, removeGarbage, type GarbageSurvey } from '@drover/coordinator/gc/garbage';
import type { Slots } from '@drover/coordinator/slots/slots';
import { expect, test } from 'vitest';
import { gitAs, order, take, type UserRepository, userRepository, writeFiles } from '../user-repository.ts';
import { proves } from '../../support/proves.ts';

type Past = { readonly user: UserRepository; readonly slots: Slots; readonly commits: readonly string[] };

/** A finished run with two tasks, of which the first is delivered. */
async function past(): Promise<Past> {
  const user = await userRepository();
  const { head } = await user.open();
  const slots = await user.slots();
  const commits: string[] = [];
  for (const task of ['one', 'two']) {
    const workspace = await take(slots, head, { task });
    await writeFiles(workspace.path, { [task]: task });
    commits.push((await workspace.commit(order(`drover/run_1/${task}`)))?.commit ?? '');
    await workspace.release();
  }
  await slots.close();
  user.git('fetch', '--quiet', slots.store.gitDir, 'drover/run_1/one:drover/run_1/merged');
  return { user, slots, commits };
}

const options = (user: UserRepository, ...unfinished: readonly string[]) => ({
  home: user.home,
  env: user.env,
  unfinished: new Set(unfinished),
});

/** Paths relative to the store's folder, for comparison. */
function inWords({ garbage, kept }: GarbageSurvey, slots: Slots) {
  const short = (text: string) => text.replaceAll(`${slots.store.folder}/`, '').replaceAll(/ \S*\/project/g, ' it');
  return {
    garbage: garbage.map(({ what, why }) => `${short(what)}: ${short(why)}`),
    kept: kept.map(({ what, why }) => `${short(what)}: ${short(why)}`),
  };
}

proves('merge.keeps-work', 'delivered branches and unused slots are removable; undelivered branches stay', async () => {
  const { user, slots } = await past();
  const survey = await findGarbage(options(user));
  expect(inWords(survey, slots)).toEqual({
    garbage: ['slots/1: a workspace of it that no run uses', 'drover/run_1/one in store.git: its work is in it'],
    kept: ['drover/run_1/two in store.git: its work is in no branch of it'],
  });
  expect(survey.garbage[0]?.bytes).toBeGreaterThan(100);
});

test('exactly the listed items are removed, and the next run works', async () => {
  const { user, slots, commits } = await past();
  const { garbage } = await findGarbage(options(user));
  expect(await removeGarbage(garbage, options(user))).toEqual([]);
  expect(gitAs(slots.store.gitDir, user.env, ['for-each-ref', '--format=%(refname)'])).toBe(
    'refs/heads/drover/run_1/two',
  );
  expect(readdirSync(slots.store.slotsFolder)).toEqual(['1.lock', '1.lock.owner']);
  expect(await findGarbage(options(user))).toEqual({ garbage: [], kept: [expect.anything()] });

  const next = await user.slots('run_2');
  const workspace = await take(next, commits[1] ?? '');
  expect(existsSync(join(workspace.path, 'two'))).toBe(true);
});

test('everything of a resumable run stays, in the store and in slots', async () => {
  const { user, slots } = await past();
  const again = await user.slots('run_2');
  await take(again, (await user.open()).head, { task: 'three' });
  expect(inWords(await findGarbage(options(user, 'run_1', 'run_2')), slots)).toEqual({
    garbage: [],
    kept: [
      'slots/1: a run is at work in it',
      'drover/run_1/one in store.git: run_1 can be resumed',
      'drover/run_1/two in store.git: run_1 can be resumed',
    ],
  });
  await again.close();
  expect(inWords(await findGarbage(options(user, 'run_2')), slots).kept[0]).toBe(
    'slots/1: task three of run_2 can be resumed in it',
  );
});

test('a workspace with changes stays, even of a finished run; one without is removable', async () => {
  const { user, slots } = await past();
  const again = await user.slots('run_2');
  const { path } = await take(again, (await user.open()).head, { task: 'three' });
  await again.close();
  expect(inWords(await findGarbage(options(user)), slots).garbage[0]).toContain('slots/1');
  await writeFiles(path, { 'src/a.ts': 'the only copy' });
  expect(inWords(await findGarbage(options(user)), slots).kept[0]).toBe(
    'slots/1: it holds changes of task three of run_2 that may be nowhere else',
  );
});

test('a branch that is no longer delivered at removal time stays', async () => {
  const { user, slots } = await past();
  const { garbage } = await findGarbage(options(user));
  user.git('branch', '--quiet', '-D', 'drover/run_1/merged');
  expect(await removeGarbage(garbage, options(user))).toEqual([
    { what: `drover/run_1/one in ${slots.store.gitDir}`, why: 'it is in use by now, or has changed' },
  ]);
});

test('a slot that is in use at removal time stays', async () => {
  const { user } = await past();
  const { garbage } = await findGarbage(options(user));
  const other = await user.slots('run_2');
  const { path } = await take(other, (await user.open()).head);
  expect((await removeGarbage(garbage, options(user))).map(({ what }) => what)).toEqual([join(path, '..')]);
  expect(existsSync(join(path, 'src/a.ts'))).toBe(true);
});

test('everything stays if git fails', async () => {
  const { user, slots } = await past();
  writeFileSync(join(user.top, '.git/refs/heads/broken'), 'rubbish\n');
  writeFileSync(join(slots.store.gitDir, 'refs/heads/drover/run_1/one'), `${'1'.repeat(40)}\n`);
  const { garbage, kept } = await findGarbage(options(user));
  expect(garbage).toEqual([]);
  expect(kept).toEqual([{ what: slots.store.folder, why: expect.stringContaining('git') }]);
});

test('unreachable objects are removable after a day', async () => {
  const { user, slots } = await past();
  const objects = join(slots.store.gitDir, 'objects');
  const old = Date.now() / 1_000 - 2 * 24 * 60 * 60;
  for (const folder of readdirSync(objects).filter((name) => name.length === 2)) {
    for (const name of readdirSync(join(objects, folder))) utimesSync(join(objects, folder, name), old, old);
  }
  const { garbage } = await findGarbage(options(user));
  const item = garbage.find(({ target }) => target.kind === 'objects');
  // The delivered task's commit, tree and file.
  expect(item?.target.kind === 'objects' && item.target.paths.length).toBe(3);
  expect(await removeGarbage(garbage, options(user))).toEqual([]);
  expect(gitAs(slots.store.gitDir, user.env, ['fsck', '--full', '--no-dangling'])).toBe('');
  expect(await findGarbage(options(user))).toEqual({ garbage: [], kept: [expect.anything()] });
});

test('branches of a missing repository stay as the only copy; an empty store goes', async () => {
  const { user, slots } = await past();
  const empty = await userRepository();
  const opened = await empty.slots();
  await (await take(opened, (await empty.open()).head)).release();
  await opened.close();
  for (const gone of [user, empty]) rmSync(gone.top, { recursive: true });

  expect(inWords(await findGarbage(options(user)), slots)).toEqual({
    garbage: ['slots/1: a workspace of it that no run uses'],
    kept: ['one', 'two'].map(
      (task) => `drover/run_1/${task} in store.git: its repository it is gone, so it may be the only copy`,
    ),
  });
  const { garbage } = await findGarbage(options(empty));
  expect(garbage.map(({ what }) => what)).toEqual([opened.store.folder]);
  expect(await removeGarbage(garbage, options(empty))).toEqual([]);
  expect(existsSync(opened.store.folder)).toBe(false);
});

test('without a home there is nothing to remove', async () => {
  const user = await userRepository();
  expect(await findGarbage(options(user))).toEqual({ garbage: [], kept: [] });
});
