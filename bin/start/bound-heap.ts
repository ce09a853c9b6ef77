// Bounds the memory that garbage takes in this process and its threads.
//
// V8 sizes its heap for throughput: the young generation grows to 128 MB on a large machine, and the old one to a
// multiple of what is in use. A run with 32 workers keeps 30 MB in use, so both are mostly garbage.

import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

// A smaller one saves 10 MB more, and is collected twice as often.
const YOUNG_BYTES_MAX = 16 * 1024 * 1024;
const OLD_GROWTH_PERCENT = 50;

/** V8 reads both flags at each collection, so they count for a heap that exists already. */
export function boundHeap(): void {
  setFlagsFromString(`--heap-growing-percent=${OLD_GROWTH_PERCENT}`);
  const collections = new PerformanceObserver(() => {
    if (youngBytes() < YOUNG_BYTES_MAX) return;
    setFlagsFromString('--semi-space-growth-factor=1');
    collections.disconnect();
  });
  collections.observe({ entryTypes: ['gc'] });
}

function youngBytes(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0;
}
