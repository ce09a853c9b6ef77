// The fast lane: every part of drover by itself. The whole product has a lane of its own (vitest.whole.config.ts).

import { defineConfig } from 'vitest/config';
import all from './vitest.config.ts';
import { WHOLE_PRODUCT } from './vitest.whole.config.ts';

export default defineConfig({
  ...all,
  test: { ...all.test, exclude: [...(all.test?.exclude ?? []), ...WHOLE_PRODUCT] },
});
