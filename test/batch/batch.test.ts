// drover batch end to end: one task per file, results, patches, reports.

import { expect, test } from 'vitest';
import { BatchDesk, noisyFiles, SPEC, tidying } from '../support/run/batch-desk.ts';

test('the spec sets concurrency and delivery; flags override it', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(1), `${SPEC}workers: 0\ndeliver: patch\n`);
  const started = async (...typed: readonly string[]) => {
    const { stdout } = await batch.desk.drover([
      'batch',
      '../spec.yaml',
      '--model',
      'anthropic/scripted',
      '--json',
      ...typed,
    ]);
    const [first] = stdout
      .split('\n')
      .map((line) => JSON.parse(line || '{}') as { workers?: number; deliver?: string });
    return [first?.workers, first?.deliver];
  };
  expect(await started()).toEqual([0, 'patch']);
  expect(await started('--workers', '1', '--deliver', 'branch')).toEqual([1, 'branch']);
});

test('each matching file becomes a task, with its result and patch', async () => {
  const batch = await BatchDesk.with(tidying(), {
    ...noisyFiles(3),
    'src/quiet.ts': 'export {};\n',
    'a.md': 'console.\n',
  });
  const { code, end } = await batch.run();
  expect([code, end.outcome]).toEqual([0, 'done']);
  expect(await batch.statuses()).toEqual({
    'src-file1.ts': 'landed',
    'src-file2.ts': 'landed',
    'src-file3.ts': 'landed',
  });
  expect(await batch.patches()).toEqual(['src-file1.ts.patch', 'src-file2.ts.patch', 'src-file3.ts.patch']);
  batch.desk.git('apply', '.drover/out/combined.patch');
  expect(await batch.desk.read('src/file2.ts')).toBe('log(2);\n');
});
