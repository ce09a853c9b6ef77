// Right after a commit most files need no second look, since git has just seen them. Files that git cannot see are
// checked, and every file is checked unless the caller states that no worker came since.

import { lstatSync, mkdtempSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readGitIndex, indexEntryWrittenMs } from '@drover/coordinator/git/index-file';
import { CLOCK_MS, sweepSlot } from '@drover/coordinator/slots/renewal/sweep';
import { Slots, type Workspace } from '@drover/coordinator/slots/slots';
import { expect, test } from 'vitest';
import { contents, gitAs, order, take, userRepository, writeFiles } from '../user-repository.ts';
import { DECEPTIONS, known, type Known, rewrite, type Scene } from './workspace-deceptions.ts';

const NEXT_SECOND_MS = 1_150;

const MORE: typeof DECEPTIONS = [
  [
    'a file changed beside a repository that git will not look into',
    ({ user, path }: Scene) => {
      rewrite(join(path, 'src/deep/c.ts'));
      gitAs(join(path, 'src/deep'), user.env, ['init', '--quiet']);
    },
  ],
];

/** The same workspace, with files written in an earlier second. */
async function later<T>(given: T): Promise<T> {
  await delay(NEXT_SECOND_MS);
  return given;
}

/** The same workspace, handed over again. */
async function handedOver({ scene, slots, workspace, clean }: Known): Promise<Known> {
  await workspace.release();
  return { scene, slots, clean, workspace: await take(slots, scene.base, { task: 'again' }) };
}

async function commit(workspace: Workspace): Promise<void> {
  // A commit fails if the only change is a nested repository.
  await workspace.commit(order('drover/run_1/next')).catch(() => undefined);
}

test('after any committed work the next worker finds a clean workspace on any base', async () => {
  const places = await Promise.all(
    [...DECEPTIONS, ...MORE].map(async ([name, deceive]) => [name, deceive, await known().then(later)] as const),
  );
  for (const [name, deceive, before] of places) {
    const { user } = before.scene;
    await user.write({ 'src/b.ts': 'later\n' });
    user.git('-c', 'user.name=U', '-c', 'user.email=u@example.com', 'commit', '--quiet', '--all', '--message=later');
    let workspace = before.workspace;
    for (const [base, more] of [
      [before.scene.base, {}],
      [user.git('rev-parse', 'HEAD'), { 'src/b.ts': '644 later\n' }],
    ] as const) {
      const { scene, slots, clean } = before;
      ({ workspace } = await handedOver({ ...before, workspace }));
      deceive({ ...scene, outside: mkdtempSync(join(scene.outside, 'in-')) });
      await commit(workspace);
      await workspace.release('commit');
      workspace = await take(slots, base, { task: 'after' });
      expect([name, contents(workspace.path)]).toEqual([name, { ...clean, ...more }]);
      expect([name, lstatSync(join(workspace.path, 'src/a.ts')).nlink]).toEqual([name, 1]);
      expect([name, gitAs(workspace.path, user.env, ['status', '--porcelain', '--ignored'])]).toEqual([name, '']);
    }
  }
});

test('a file that git saw unchanged is read again only if it may have changed since', async () => {
  const content = async (since: 'commit' | undefined, laterMs: number) => {
    const { scene, slots, workspace } = await known().then(later).then(handedOver);
    await writeFiles(scene.path, { 'src/a.ts': 'work', 'new.ts': 'new' });
    await commit(workspace);
    rewrite(join(scene.path, 'src/b.ts'));
    await delay(laterMs);
    await workspace.release(since);
    return contents((await take(slots, scene.base, { task: 'after' })).path)['src/b.ts'];
  };
  const found = await Promise.all([content('commit', 0), content(undefined, 0), content('commit', 1_050)]);
  expect(found).toEqual(['644 export const b = 7;\n', '644 export const b = 2;\n', '644 export const b = 2;\n']);
});

test.each([
  ['in the same second, is looked at again', 0, ['src/b.ts']],
  ['in a moment of the next one, since clocks of files are late', 'next', ['src/b.ts']],
  ['in a later one, is not', 5_000, []],
] as const)(
  'a file written before a worker came %s: not every git sees parts of seconds',
  async (_, afterMs, found) => {
    const { scene } = await known();
    const indexPath = join(scene.slot, 'git/index');
    const index = readGitIndex(readFileSync(indexPath), 'sha1')!;
    const entry = index.entries.find(({ path }) => path === 'src/b.ts')!;
    const written = indexEntryWrittenMs(index.bytes, entry);
    const next = (Math.floor(written / 1_000) + 1) * 1_000 + CLOCK_MS / 2;
    rewrite(join(scene.path, 'src/b.ts'));
    const missing = await sweepSlot({
      top: scene.path,
      index,
      format: 'sha1',
      indexMs: statSync(indexPath).mtimeMs,
      folders: new Map(),
      mode: statSync(join(scene.path, 'src')).mode & 0o7777,
      trash: join(scene.slot, 'trash'),
      sight: { touched: new Set(), aloneUntilMs: afterMs === 'next' ? next : written + afterMs },
    });
    expect(missing?.map(({ path }) => path)).toEqual(found);
  },
);

test('a commit’s scan is void after another worker had the workspace', async () => {
  const { scene, slots, workspace, clean } = await known().then(later).then(handedOver);
  await commit(workspace);
  await workspace.release('commit');
  const second = await take(slots, scene.base, { task: 'second' });
  rewrite(join(scene.path, 'src/b.ts'));
  // The second task ends without a commit of its own.
  await second.release('commit');
  expect(contents((await take(slots, scene.base, { task: 'third' })).path)).toEqual(clean);
});

test('setup may touch files too: only files from before it count as known', async () => {
  const user = await userRepository();
  const commands = ['test -e ../prepared || { touch ../prepared; sleep 1.2; }'];
  const repository = await user.open();
  const setup = { commands, outputFolder: user.folder };
  const slots = await Slots.open({ home: user.home, repository, run: 'run_1', env: user.env, setup });
  const workspace = await take(slots, repository.head);
  const clean = contents(workspace.path);
  await commit(workspace);
  rewrite(join(workspace.path, 'src/b.ts'));
  await workspace.release('commit');
  expect(contents((await take(slots, repository.head, { task: 'after' })).path)).toEqual(clean);
  await slots.close();
});
