// The heap of the process: how far V8 lets its young generation grow.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const boundHeap = join(import.meta.dirname, '..', '..', '..', 'bin', 'start', 'bound-heap.ts');

// Every wave outlives a collection, which is when V8 doubles its young generation.
const churn = `
import { setImmediate as turn } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import { boundHeap } from ${JSON.stringify(boundHeap)};
if (process.argv[1] === 'bounded') boundHeap();
const kept = [];
for (let wave = 0; wave < 200; wave++) {
  for (let n = 0; n < 5_000; n++) kept.push({ wave, n, text: wave + ' ' + n });
  if (kept.length > 200_000) kept.length = 0;
  await turn();
}
console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size / 2 ** 20);
`;

function youngMb(how: 'bounded' | 'open'): number {
  return Number(execFileSync(process.execPath, ['--input-type=module', '--eval', churn, how], { encoding: 'utf8' }));
}

test('the young generation of the process stays at 16 MB', () => {
  expect(youngMb('bounded')).toBeLessThanOrEqual(16);
  // The bound is worth nothing where V8 stays below it anyway.
  expect(youngMb('open')).toBeGreaterThan(16);
});
