// silent: shows nothing. The exit code says how it ended.

import type { View } from './view.ts';

export const silentView: View = {
  show: async () => undefined,
  say: async () => undefined,
  close: async () => undefined,
};
