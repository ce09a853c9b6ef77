// The lane of the browser: the page of `drover serve`, in a real Chromium.

import { defineConfig } from 'vitest/config';
import all from './vitest.config.ts';

export default defineConfig({
  ...all,
  test: { ...all.test, include: ['test/page/**/*.test.ts'], exclude: ['**/node_modules/**'] },
});
