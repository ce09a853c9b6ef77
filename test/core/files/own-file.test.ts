// Files that drover reads by itself: regular, bounded, inside the repository, and never waited for.

import { appendFile, mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { readOwnFile, requireOwnFile } from '@drover/core/files/own-file';
import { expect, test } from 'vitest';
import { HANG_MS, LARGE_FILE, LINK_OUT, ODD_FILES } from '../../support/data/odd-files.ts';
import { temporaryFolder } from '../../support/workspace.ts';

const refusal = (problem: string) => ({ kind: 'refused', problem, fix: expect.stringMatching(/^\w/) });

test.each([...ODD_FILES, LARGE_FILE])('$name is refused at once', { timeout: HANG_MS }, async ({ make, problem }) => {
  const path = join(await temporaryFolder(), 'file');
  await make(path);
  expect(await readOwnFile({ path })).toEqual(refusal(problem));
});

test.each([...ODD_FILES, LARGE_FILE, LINK_OUT])(
  '$name in a repository is refused at once',
  { timeout: HANG_MS },
  async ({ make, problem }) => {
    const within = await temporaryFolder();
    const path = join(within, 'file');
    await make(path);
    expect(await readOwnFile({ path, within })).toEqual(refusal(problem));
  },
);

test('a file of exactly 1 MB is read, and one byte more is not', async () => {
  const path = join(await temporaryFolder(), 'file');
  await writeFile(path, Buffer.alloc(1024 * 1024, 'a'));
  expect(await readOwnFile({ path })).toEqual({ kind: 'read', bytes: Buffer.alloc(1024 * 1024, 'a') });
  await appendFile(path, 'b');
  expect(await readOwnFile({ path })).toEqual(refusal('is larger than 1 MB'));
  expect(await readOwnFile({ path, bytesMax: 2 * 1024 * 1024 })).toMatchObject({ kind: 'read' });
});

test('a file without a stated size is read, still bounded', async () => {
  expect(await readOwnFile({ path: '/proc/self/status' })).toMatchObject({ kind: 'read' });
  expect(await readOwnFile({ path: '/proc/self/status', bytesMax: 100 })).toMatchObject({ kind: 'refused' });
});

test('a missing file is not a refusal', async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'file'), '');
  const missing = (code: string) => ({ kind: 'missing', problem: `cannot be read (${code})`, fix: 'check the path' });
  expect(await readOwnFile({ path: join(folder, 'none') })).toEqual(missing('ENOENT'));
  expect(await readOwnFile({ path: join(folder, 'file/none') })).toEqual(missing('ENOTDIR'));
});

test('a link inside the repository is followed, also from a repository behind a link', async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'real/sub'), { recursive: true });
  await writeFile(join(folder, 'real/AGENTS.md'), 'text');
  await symlink('../AGENTS.md', join(folder, 'real/sub/CLAUDE.md'));
  await symlink('real', join(folder, 'alias'));
  for (const top of ['real', 'alias']) {
    const within = join(folder, top);
    const read = { kind: 'read', bytes: Buffer.from('text') };
    expect(await readOwnFile({ path: join(within, 'sub/CLAUDE.md'), within })).toEqual(read);
  }
});

test('a folder that is a link out of the repository leads out of it too', async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'top'));
  await mkdir(join(folder, 'top-secret'));
  await writeFile(join(folder, 'top-secret/config.yaml'), 'text');
  await symlink('../top-secret', join(folder, 'top/.drover'));
  const within = join(folder, 'top');
  const found = await readOwnFile({ path: join(within, '.drover/config.yaml'), within });
  expect(found).toEqual(refusal('is a link that leads out of the repository'));
});

test('a path that is swapped constantly never reads outside files', async () => {
  const folder = await temporaryFolder();
  const within = join(folder, 'top');
  await mkdir(within);
  await writeFile(join(folder, 'secret'), 'outside');
  const path = join(within, 'file');
  let isOver = false;
  const swapping = (async () => {
    for (let at = 0; !isOver; at++) {
      if (at % 2 === 0) await writeFile(join(within, 'next'), 'inside');
      else await symlink('../secret', join(within, 'next'));
      await rename(join(within, 'next'), path);
    }
  })();
  const seen = new Set<string>();
  for (let at = 0; at < 2_000; at++) {
    const found = await readOwnFile({ path, within });
    seen.add(found.kind === 'read' ? found.bytes.toString('utf8') : found.kind);
  }
  isOver = true;
  await swapping;
  expect([...seen].filter((text) => text !== 'inside' && text !== 'missing').toSorted()).toEqual(['refused']);
});

test('an unreadable required file is a UsageError with the caller’s sentence', async () => {
  const path = join(await temporaryFolder(), 'none');
  const asked = requireOwnFile({ path }, ({ problem, fix }) => `the plan ${problem}; ${fix}`);
  await expect(asked).rejects.toThrow(new UsageError('the plan cannot be read (ENOENT); check the path'));
});
