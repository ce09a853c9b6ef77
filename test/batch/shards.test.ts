// A batch over several machines: each runs its shard, and the shards are merged.

import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Answer } from '@drover/rehearsal/script';
import { mostSevereBatchExitCode } from '../../bin/batch/results/join.ts';
import { BatchDesk, noisyFiles, tidying } from '../support/run/batch-desk.ts';
import { readJunit } from '../support/data/junit-schema.ts';
import { calls } from '../support/run/run-desk.ts';

async function sharded(count: number, instead?: (path: string) => Answer | undefined): Promise<BatchDesk> {
  const batch = await BatchDesk.with(tidying(instead), noisyFiles(3));
  for (let at = 1; at <= count; at++) await batch.run(['--shard', `${at}/${count}`, '--out', `../shards/shard-${at}`]);
  return batch;
}

test('shards run each task once, and merged they are the whole batch', async () => {
  const batch = await sharded(2);
  expect(batch.requests).toBe(3 * 3);
  const { code, stdout } = await batch.desk.drover([
    'show',
    '--merge',
    '../shards',
    '--out',
    '../all',
    '--junit',
    '../all.xml',
  ]);
  const all = join(batch.desk.folder, 'all');
  const summary = join(batch.desk.folder, 'step.md');
  await batch.desk.drover(['show', '--merge', '../shards', '--out', '../again'], {
    env: { GITHUB_STEP_SUMMARY: summary },
  });
  expect(await readFile(summary, 'utf8')).toContain('no-console');
  expect([code, stdout]).toEqual([0, expect.stringContaining('no-console: 3 of 3 tasks are done (3 landed,')]);
  expect(Object.entries(await batch.statuses(all))).toEqual([1, 2, 3].map((at) => [`src-file${at}.ts`, 'landed']));
  batch.desk.git('apply', '../all/combined.patch');
  expect([await batch.desk.read('src/file1.ts'), await batch.desk.read('src/file3.ts')]).toEqual([
    'log(1);\n',
    'log(3);\n',
  ]);
  batch.desk.git('checkout', '-q', '.');
  for (let at = 1; at <= 3; at++) batch.desk.git('apply', `../all/patches/src-file${at}.ts.patch`);
});

test('merged shards exit with the most serious code, not the highest', () => {
  expect([
    mostSevereBatchExitCode([0, 0]),
    mostSevereBatchExitCode([0, 3]),
    mostSevereBatchExitCode([7, 6, 3]),
    mostSevereBatchExitCode([9, 1]),
    mostSevereBatchExitCode([5, 130]),
  ]).toEqual([0, 3, 6, 1, 130]);
});

test('merged shards exit 3 if a gate left out one whole shard and others landed', async () => {
  const gate = ['--gate', '! grep -q ^log src/file1.ts'];
  const batch = await BatchDesk.with(tidying(), noisyFiles(2));
  const codes: number[] = [];
  for (const shard of [1, 2]) {
    const out = ['--out', `../shards/shard-${shard}`];
    codes.push((await batch.run(['--shard', `${shard}/2`, ...out, ...gate])).code);
  }
  expect(new Set(codes)).toEqual(new Set([0, 4]));
  const { code } = await batch.desk.drover(['show', '--merge', '../shards', '--out', '../all']);
  expect(code).toBe(3);
});

test('a missing shard counts as failed work, and a failure in one fails the merge', async () => {
  const batch = await sharded(2, (path) => (path === 'src/file3.ts' ? { stop: 'refusal', text: 'no' } : undefined));
  const show = async (...argv: readonly string[]) => {
    const { code, stdout, stderr } = await batch.desk.drover(['show', ...argv, '--out', '../all', '--json']);
    return [code, stdout === '' ? stderr : (JSON.parse(stdout) as { reason?: string }).reason];
  };
  expect((await show('--merge', '../shards'))[0]).toBe(3);
  readJunit(await batch.text('../../../all/junit.xml'));
  expect(await show('--merge', '../shards/shard-1', '--merge', '../shards/shard-1')).toEqual([
    2,
    expect.stringContaining('hold the same shard 1/2'),
  ]);
  expect(await show('--merge', '../shards/shard-1', '../shards/shard-2')).toEqual([
    2,
    expect.stringContaining('--merge ../shards/shard-1 --merge ../shards/shard-2'),
  ]);
  expect(await show('--merge', '../nowhere')).toEqual([2, expect.stringContaining('nowhere cannot be read')]);
  await rm(join(batch.desk.folder, 'shards', 'shard-2'), { recursive: true });
  expect(await show('--merge', '../shards')).toEqual([3, expect.stringContaining('shard 2/2 is missing')]);
});

test('results that name a patch outside their folder are refused; nothing is written', async () => {
  const batch = await sharded(1);
  const shard = join(batch.desk.folder, 'shards', 'shard-1');
  const rows = await batch.results(shard);
  for (const patch of [
    '../escaped.patch',
    'patches/../../escaped.patch',
    join(batch.desk.folder, 'escaped.patch'),
    'results.ndjson',
  ]) {
    const spoilt = rows.map((row, at) => JSON.stringify(at === 0 ? { ...row, patch } : row));
    await writeFile(join(shard, 'results.ndjson'), `${spoilt.join('\n')}\n`);
    await writeFile(join(batch.desk.folder, 'shards', 'escaped.patch'), 'from outside\n');
    const { code, stderr } = await batch.desk.drover(['show', '--merge', '../shards', '--out', '../all/out']);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`results.ndjson names the patch "${patch}"`)]);
    expect(existsSync(join(batch.desk.folder, 'all'))).toBe(false);
  }
});

test('merging shards that change the same file prints a note', async () => {
  const shared = (path: string, step: number): Answer | undefined =>
    step === 1 ? calls('write', { path: 'shared.txt', content: `${path}\n` }) : undefined;
  const batch = await BatchDesk.with(
    tidying(
      (path, step) => shared(path, step) ?? (step === 2 ? calls('submit_result', { summary: 'done' }) : undefined),
    ),
    { ...noisyFiles(2), 'shared.txt': 'nobody\n' },
  );
  for (const at of [1, 2]) await batch.run(['--shard', `${at}/2`, '--out', `../shards/shard-${at}`]);
  const { stdout } = await batch.desk.drover(['show', '--merge', '../shards', '--out', '../all']);
  const said =
    'several shards change shared.txt, so combined.patch may not apply: apply their patches one by one with git apply --3way';
  expect(stdout).toContain(said);
  expect(await batch.text('../../../all/report.md')).toContain(said);
  expect(JSON.parse(await batch.text('../../../all/summary.json'))).toMatchObject({ reason: said });
});
