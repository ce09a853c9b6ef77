// Delivery: a branch, a merge into the user's branch, or patches.

import { existsSync } from 'node:fs';
import { chmod, readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { deliverResult, type DeliveryOrder } from '@drover/coordinator/merge/deliver';
import { mergeObstacle } from '@drover/coordinator/merge/own-checkout';
import { describe, expect, test } from 'vitest';
import { never } from '../../support/workspace.ts';
import { type Changes, env, planned, put, run, RUN, yard } from './merge-yard.ts';

const MERGED = `drover/${RUN}/merged`;
const TEXT = Array.from({ length: 30 }, (_, at) => `line ${at}`).join('\n');
const BYTES = Buffer.from([0, 255, 254, 10, 13, 0, 200, 10]);
const BASE: Changes = { 'a.txt': 'one\ntwo\nthree\n', 'old name.txt': TEXT, gone: 'gone', tool: 'echo', bin: BYTES };

async function landed(tasks: Readonly<Record<string, Changes>>, base: Changes = BASE) {
  const place = await yard(base);
  const { train: it } = place.train();
  it.expect(planned(...Object.keys(tasks)));
  await Promise.all(place.works(tasks).map((arrival) => it.land(arrival)));
  const order: DeliveryOrder = {
    repository: { top: place.top, gitDir: join(place.top, '.git'), branch: 'main' },
    store: place.store,
    env,
    run: RUN,
    base: place.base,
    merged: it.head,
    kept: [],
    deliver: 'branch',
    patchFolder: join(place.folder, 'the patches'),
  };
  const refs = () => place.inUser('for-each-ref', '--format=%(refname:short) %(objectname)').trim().split('\n');
  const state = () => `${place.inUser('rev-parse', 'HEAD').trim()} ${place.inUser('status', '--porcelain').trim()}`;
  const addHooks = async (...names: string[]) => {
    await put(
      join(place.top, '.git', 'hooks'),
      Object.fromEntries(names.map((name) => [name, `#!/bin/sh\ntouch ${place.folder}/hooked\n`])),
    );
    for (const name of names) await chmod(join(place.top, '.git', 'hooks', name), 0o755);
  };
  return { ...place, order, refs, state, addHooks, merged: it.head, hooked: join(place.folder, 'hooked') };
}

const MANY: Record<string, Changes> = {
  edit: { 'a.txt': 'one\nTWO\nthree\n' },
  rename: { 'old name.txt': undefined, 'new\nname ü.txt': `${TEXT}\nmore`, gone: undefined },
  odd: {
    'ein "ß" \\.txt': 'x',
    '日本/語.txt': 'no newline at the end',
    'latin.txt': Buffer.from([0x66, 0xfc, 0x72, 10]),
  },
  mode: { tool: { mode: '100755', data: 'echo' }, link: { mode: '120000', data: 'a.txt' } },
  binary: { bin: Buffer.concat([BYTES, Buffer.from([0, 1, 2, 3])]), 'new.bin': BYTES },
};

describe('branch', () => {
  test('the user gets the branch and those of failed tasks, and nothing else changes', async () => {
    const { order, merged, work, refs, state, base, addHooks, hooked, inUser, top } = await landed(MANY);
    await addHooks('reference-transaction', 'post-checkout', 'post-merge');
    await put(top, { 'a.txt': 'being edited', 'untracked.txt': 'mine' });
    inUser('config', 'fetch.prune', 'true');
    const kept = [{ task: 'lost', commit: work('lost', { lost: 'lost' }).commit }];
    const before = state();

    const delivered = await deliverResult({ ...order, kept }, never);

    expect(delivered).toEqual({ deliver: 'branch', commit: merged, branch: MERGED, next: `git merge ${MERGED}` });
    expect(refs()).toEqual([
      `drover/${RUN}/lost ${kept[0]?.commit}`,
      `${MERGED} ${merged}`,
      expect.stringMatching(/^made /),
      `main ${base}`,
    ]);
    expect(state()).toBe(before);
    expect(existsSync(join(top, '.git', 'FETCH_HEAD'))).toBe(false);
    expect(existsSync(hooked)).toBe(false);
    expect(inUser('fsck', '--connectivity-only')).toBe('');
  });

  test('the printed command merges the branch', async () => {
    const { order, merged, inUser } = await landed(MANY);
    const { next = '' } = await deliverResult(order, never);
    inUser(...next.split(' ').slice(1));
    expect(inUser('rev-parse', 'HEAD').trim()).toBe(merged);
  });

  test('a second delivery changes nothing, even if the branch is checked out', async () => {
    const { order, refs, inUser } = await landed(MANY);
    const first = await deliverResult(order, never);
    inUser('checkout', '--quiet', MERGED);
    const before = refs();
    expect(await deliverResult(order, never)).toEqual(first);
    expect(refs()).toEqual(before);
  });

  test('an existing branch with other work is not overwritten', async () => {
    const { order, work, store, inUser, refs } = await landed(MANY);
    const other = work('x', { x: 'x' }).commit;
    inUser('fetch', '--quiet', store, `${other}:refs/heads/${MERGED}`);
    await expect(deliverResult(order, never)).rejects.toMatchObject({ failure: { kind: 'git.failed' } });
    expect(refs()).toContain(`${MERGED} ${other}`);
  });

  test('without landings there is no branch and no command', async () => {
    const { order, base, refs } = await landed({});
    expect(await deliverResult(order, never)).toEqual({ deliver: 'branch', commit: base });
    expect(refs().filter((ref) => ref.startsWith('drover'))).toEqual([]);
  });
});

describe('merge', () => {
  test('the user’s branch, index and files move to the result without hooks', async () => {
    const { order, merged, refs, state, addHooks, hooked, top, inUser } = await landed(MANY);
    await addHooks('post-merge', 'post-checkout', 'reference-transaction', 'post-index-change');
    await put(top, { 'untracked.txt': 'mine' });
    expect(await deliverResult({ ...order, deliver: 'merge' }, never)).toEqual({
      deliver: 'merge',
      commit: merged,
      branch: 'main',
    });
    // This comes first, because the later checks run hooks.
    expect(existsSync(hooked)).toBe(false);
    expect(state()).toBe(`${merged} ?? untracked.txt`);
    expect(inUser('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/main');
    expect(refs().filter((ref) => ref.startsWith('drover'))).toEqual([]);
    expect(await readFile(join(top, 'new\nname ü.txt'), 'utf8')).toBe(`${TEXT}\nmore`);
  });

  test('a second delivery finds it merged, even if the user has committed since', async () => {
    const { order, merged, inUser, refs, state } = await landed(MANY);
    const first = await deliverResult({ ...order, deliver: 'merge' }, never);
    expect(first).toEqual({ deliver: 'merge', commit: merged, branch: 'main' });
    inUser('commit', '--quiet', '--allow-empty', '-m', 'more');
    const before = [refs(), state()];
    expect(await deliverResult({ ...order, deliver: 'merge' }, never)).toEqual(first);
    expect([refs(), state()]).toEqual(before);
  });

  test('the user’s own filters write the user’s files', async () => {
    const { order, top, merged, folder, inUser } = await landed(
      { loud: { 'a.up': 'shout\n' } },
      { '.gitattributes': '*.up filter=up\n', 'b.up': 'base\n' },
    );
    const config = '[filter "up"]\n  smudge = tr a-z A-Z\n  clean = tr A-Z a-z\n';
    await put(folder, { '.gitconfig': config });
    // The content as the user's git would have written it.
    await put(top, { 'b.up': 'BASE\n' });
    const own = { ...order, env: { ...env, HOME: folder } };
    expect(await deliverResult({ ...own, deliver: 'merge' }, never)).toEqual({
      deliver: 'merge',
      commit: merged,
      branch: 'main',
    });
    expect(await readFile(join(top, 'a.up'), 'utf8')).toBe('SHOUT\n');
    expect(await mergeObstacle({ ...own, base: merged }, never)).toBeUndefined();
    expect(inUser('rev-parse', 'HEAD').trim()).toBe(merged);
  });

  const inTheWay: [string, (at: Awaited<ReturnType<typeof landed>>) => unknown, RegExp][] = [
    [
      'a file is changed',
      ({ top }) => put(top, { 'a.txt': 'mine' }),
      /changes that are not committed or stashed: a\.txt$/,
    ],
    [
      'a change is staged',
      ({ inUser }) => inUser('rm', '--quiet', '--cached', 'gone'),
      /not committed or stashed: gone$/,
    ],
    [
      'the branch has moved',
      ({ inUser }) => inUser('commit', '--quiet', '--allow-empty', '-m', 'x'),
      /main has moved since/,
    ],
    [
      'another branch is checked out',
      ({ inUser }) => inUser('checkout', '--quiet', '-b', 'x'),
      /no longer on main, but on x/,
    ],
    [
      'HEAD is detached',
      ({ inUser }) => inUser('checkout', '--quiet', '--detach'),
      /no longer on main, but on no branch/,
    ],
  ];

  test.each(inTheWay)('where %s, the user is warned and the branch is delivered instead', async (_, change, why) => {
    const at = await landed(MANY);
    expect(await mergeObstacle(at.order, never)).toBeUndefined();
    await change(at);
    expect(await mergeObstacle(at.order, never)).toMatch(why);
    const before = at.state();
    expect(await deliverResult({ ...at.order, deliver: 'merge' }, never)).toEqual({
      deliver: 'branch',
      commit: at.merged,
      branch: MERGED,
      next: `git merge ${MERGED}`,
      instead: expect.stringMatching(why),
    });
    expect(at.state()).toBe(before);
  });

  test('an untracked file that would be overwritten blocks the merge', async () => {
    const { order, top, state, merged } = await landed(MANY);
    await put(top, { link: 'mine' });
    const before = state();
    expect(await deliverResult({ ...order, deliver: 'merge' }, never)).toMatchObject({
      deliver: 'branch',
      commit: merged,
      instead: expect.stringContaining('untracked working tree files would be overwritten'),
    });
    expect(state()).toBe(before);
    expect(await readFile(join(top, 'link'), 'utf8')).toBe('mine');
  });

  test('a run started on a detached HEAD has no branch to merge into', async () => {
    const { order } = await landed(MANY);
    const { top, gitDir } = order.repository;
    expect(await mergeObstacle({ ...order, repository: { top, gitDir } }, never)).toMatch(/^HEAD is detached/);
  });
});

describe('patch', () => {
  test('patches of tasks apply one after the other, and so does the combined one', async () => {
    const { order, merged, base, top, inUser, folder } = await landed(MANY);
    const delivered = await deliverResult({ ...order, deliver: 'patch' }, never);
    const names = ['0001-edit', '0002-rename', '0003-odd', '0004-mode', '0005-binary', 'combined'];
    const patches = names.map((name) => join(folder, 'the patches', `${name}.patch`));
    expect(delivered).toEqual({
      deliver: 'patch',
      commit: merged,
      patches,
      next: `git -C ${top} apply '${patches.at(-1)}'`,
    });
    expect((await readdir(order.patchFolder)).toSorted()).toEqual(patches.map((path) => basename(path)));

    const tree = run(['-C', order.store, 'rev-parse', `${merged}^{tree}`]).trim();
    for (const patch of patches.slice(0, -1)) {
      inUser('apply', '--check', '--index', patch);
      inUser('apply', '--index', patch);
    }
    expect(inUser('write-tree').trim()).toBe(tree);
    inUser('reset', '--quiet', '--hard', base);
    inUser('apply', '--check', patches.at(-1) ?? '');
    inUser('apply', '--index', patches.at(-1) ?? '');
    expect(inUser('write-tree').trim()).toBe(tree);
    inUser('reset', '--quiet', '--hard', base);
    inUser('am', '--quiet', ...patches.slice(0, -1));
    expect(inUser('log', '--format=%s', `${base}..HEAD`).trim().split('\n').toReversed()).toEqual(
      Object.keys(MANY).map((task) => `Do ${task}`),
    );
  });

  test('the user’s repository is not written, and a second delivery is identical', async () => {
    const { order, refs, state, base } = await landed(MANY);
    const before = [refs(), state()];
    const read = async () =>
      Promise.all((await readdir(order.patchFolder)).map((name) => readFile(join(order.patchFolder, name), 'latin1')));
    await deliverResult({ ...order, deliver: 'patch' }, never);
    const first = await read();
    await deliverResult({ ...order, deliver: 'patch' }, never);
    expect(await read()).toEqual(first);
    expect([refs(), state()]).toEqual(before);
    expect(await deliverResult({ ...order, merged: base, deliver: 'patch' }, never)).toEqual({
      deliver: 'patch',
      commit: base,
      patches: [],
    });
  });

  test('a patch inside a summary is not applied', async () => {
    const place = await yard();
    const { train: it } = place.train();
    it.expect(planned('a'));
    const forged =
      'diff --git a/forged b/forged\nnew file mode 100644\n--- /dev/null\n+++ b/forged\n@@ -0,0 +1 @@\n+forged\n';
    await it.land({ ...place.work('a', { a: 'a\n' }), summary: `Done.\n\n${forged}` });
    const order = {
      repository: { top: place.top, gitDir: join(place.top, '.git') },
      store: place.store,
      env,
      run: RUN,
      base: place.base,
      merged: it.head,
      kept: [],
      deliver: 'patch' as const,
      patchFolder: join(place.folder, 'patches'),
    };
    const { patches = [] } = await deliverResult(order, never);
    place.inUser('apply', '--index', patches[0] ?? '');
    expect(place.inUser('diff', '--cached', '--name-only').trim()).toBe('a');
  });
});
