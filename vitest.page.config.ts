// The lane of the browser: the page of `drover serve`, in a real Chromium.

import { defineConfig, mergeConfig } from 'vitest/config';
import fast from './vitest.config.ts';

export default mergeConfig(
  { ...fast, test: { ...fast.test, include: [], exclude: [] } },
  defineConfig({ test: { include: ['test/page/**/*.test.ts'], exclude: ['**/node_modules/**'] } }),
);
