// The fast lane: everything but test/slow and the browser's tests (vitest.page.config.ts).

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/slow/**', 'test/page/**', '**/node_modules/**'],
    pool: 'forks',
    // Loading everything anew for each file would take longer than most files do.
    isolate: false,
    globalSetup: ['test/support/lane.ts'],
    setupFiles: ['test/support/setup.ts'],
    // Most tests wait for a process or a socket most of the time; those of the sandbox do not.
    maxWorkers: 4,
    testTimeout: 30_000,
  },
});
