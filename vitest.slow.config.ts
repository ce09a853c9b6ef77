// The slow lane: soak, large property tests, memory. Run before closing an issue about them.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['test/slow/**/*.test.ts'], pool: 'forks', testTimeout: 1_200_000, fileParallelism: false },
});
