// The slow lane: soak, large property tests, memory.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/slow/**/*.test.ts'],
    pool: 'forks',
    testTimeout: 1_200_000,
    // Removing the files of a thousand tasks takes more than the default of ten seconds.
    hookTimeout: 300_000,
    fileParallelism: false,
  },
});
