// The fast lane: everything but test/slow.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/slow/**', '**/node_modules/**'],
    pool: 'forks',
    // Most tests wait for a process or a socket most of the time.
    maxWorkers: 3,
    testTimeout: 30_000,
  },
});
