// The batch cache: keyed by content; cached results land and are tested like new work.

import { expect, test } from 'vitest';
import type { Answer } from '@drover/rehearsal/script';
import { BatchDesk, noisyFiles, SPEC, tidying } from '../support/run/batch-desk.ts';

const states = async (batch: BatchDesk) =>
  (await batch.results()).map(({ task, status, cached }) => `${task} ${status}${cached ? ' cached' : ''}`);

test('a second run sends no request; after three edits it redoes those three files', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(4));
  await batch.run();
  const first = batch.requests;
  const combined = await batch.text('combined.patch');
  expect(first).toBe(4 * 3);

  const again = await batch.run();
  expect([again.code, batch.requests]).toEqual([0, first]);
  expect(new Set((await states(batch)).map((state) => state.split(' ').slice(1).join(' ')))).toEqual(
    new Set(['landed cached']),
  );
  expect(await batch.text('combined.patch')).toBe(combined);

  const touched = Object.fromEntries(
    [1, 2, 3].map((at) => [`src/file${at}.ts`, `console.log('${at}');\n// touched\n`]),
  );
  await batch.desk.write({ ...touched, 'README.md': 'not of this batch\n' });
  batch.commit();
  const third = await batch.run();
  expect(third.code).toBe(0);
  expect(batch.requests - first).toBe(3 * 3);
  expect(await states(batch)).toEqual([
    'src-file1.ts landed',
    'src-file2.ts landed',
    'src-file3.ts landed',
    'src-file4.ts landed cached',
  ]);
  batch.desk.git('apply', '.drover/out/combined.patch');
  expect(await batch.desk.read('src/file3.ts')).toBe("log('3');\n// touched\n");
  expect(await batch.desk.read('src/file4.ts')).toBe('log(4);\n');
});

test('a new prompt, a new gate or --fresh misses the cache; order and workers don’t', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(1));
  const asked = async (spec: string, argv: readonly string[] = []) => {
    await batch.spec(spec);
    const before = batch.requests;
    await batch.run(argv);
    return (batch.requests - before) / 3;
  };
  expect(await asked(SPEC)).toBe(1);
  expect(await asked(SPEC.replace('version: 1', 'version: 1\nworkers: 3\nlimits: { budget: 10mtok }'))).toBe(0);
  expect(await asked(SPEC.replace('Replace', 'Please replace'))).toBe(1);
  expect(await asked(`${SPEC}  gate: ["true"]\n`)).toBe(1);
  expect(await asked(SPEC, ['--fresh'])).toBe(1);
});

test('results of another model are a cache miss', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(1));
  await batch.run();
  await batch.run(['--model', 'anthropic/another']);
  expect(batch.requests).toBe(2 * 3);
});

test('a cached change beyond the task’s files applies only if those are unchanged', async () => {
  const listing: (path: string, step: number) => Answer | undefined = (path, step) =>
    step === 2
      ? { calls: [path, 'LIST'].map((each) => ({ name: 'write', args: { path: each, content: 'log(1);\n' } })) }
      : undefined;
  const batch = await BatchDesk.with(tidying(listing), { ...noisyFiles(1), LIST: 'none\n' });
  await batch.run();
  await batch.run();
  expect(batch.requests).toBe(3);
  await batch.desk.write({ LIST: 'somebody else was here\n' });
  batch.commit();
  await batch.run();
  expect(batch.requests).toBe(2 * 3);
});

test('cached results still pass the gates on the merged tree', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(2));
  await batch.run();
  const { code } = await batch.run(['--gate', '! grep -q "^log(2)" src/file2.ts']);
  expect([code, await batch.statuses()]).toEqual([3, { 'src-file1.ts': 'landed', 'src-file2.ts': 'gate_failed' }]);
});

test('a result without changes is cached too', async () => {
  const batch = await BatchDesk.with(
    tidying((_, step) => (step === 1 ? { text: 'It is fine as it is.' } : undefined)),
    noisyFiles(1),
  );
  await batch.run();
  const { code } = await batch.run();
  expect([code, batch.requests, await states(batch)]).toEqual([0, 1, ['src-file1.ts no_change cached']]);
  // The cache holds until the file or the prompt changes.
  await batch.desk.write({ 'src/file1.ts': 'console.log(2);\n' });
  batch.commit();
  await batch.run();
  await batch.desk.write({ 'src/AGENTS.md': 'Never use console.\n' });
  batch.commit();
  await batch.run();
  expect([batch.requests, await states(batch)]).toEqual([3, ['src-file1.ts no_change']]);
});

test('a gated task without changes is cached only for the tree its gates saw', async () => {
  const batch = await BatchDesk.with(
    tidying(() => ({ text: 'It is fine as it is.' })),
    { ...noisyFiles(1), flag: 'green\n' },
    `${SPEC}  gate: ["grep -q green flag"]\n`,
  );
  await batch.run();
  await batch.run();
  expect([batch.requests, await states(batch)]).toEqual([1, ['src-file1.ts no_change cached']]);
  await batch.desk.write({ flag: 'red\n' });
  batch.commit();
  const { code } = await batch.run();
  expect([code, batch.requests, await states(batch)]).toEqual([3, 2, ['src-file1.ts failed']]);
});
