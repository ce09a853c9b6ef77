// The lane of the whole product: drover as users run it, with real programs, runs, batches and worker hosts.

import { defineConfig } from 'vitest/config';
import all from './vitest.config.ts';

export const WHOLE_PRODUCT = [
  'test/batch/**/*.test.ts',
  'test/cli/{history,result,serve}/**/*.test.ts',
  'test/examples/**/*.test.ts',
  'test/hosts/**/*.test.ts',
  'test/mcp/**/*.test.ts',
  'test/scenarios/**/*.test.ts',
];

export default defineConfig({ ...all, test: { ...all.test, include: WHOLE_PRODUCT } });
