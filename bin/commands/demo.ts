// drover demo: an agent mends a small project while you watch.

import { command, flag } from '../command.ts';

export const demo = command({
  options: { keep: flag('Options:', 'Leave the sample project where it is, to look at') },
  examples: [['drover demo', 'No key, no network']],
  run: async () => 0,
});
