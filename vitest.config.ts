// All tests but the slow ones and those in a browser: `pnpm exec vitest run test/core/bus.test.ts` runs one file.
// CI runs them in two lanes: the parts (vitest.fast.config.ts) and the whole product (vitest.whole.config.ts).

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
