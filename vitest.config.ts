// The fast lane: everything but test/slow.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/slow/**', '**/node_modules/**'],
    pool: 'forks',
    testTimeout: 20_000,
  },
});
