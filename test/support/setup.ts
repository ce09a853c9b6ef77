// What every test file begins with: processes are started by small ones, since a process that has run many test
// files is big, and starting one costs by that. Drover's own go through a launcher, as those of a run do; what
// tests do with git goes through a shell. A test that is about starting processes says for itself how.

import { launchWith } from '@drover/core/tools/process/start';
import { openLauncher, type RunLauncher } from '../../bin/run/open-launcher.ts';
import { shell } from './process/run-sync.ts';

const SHARED = Symbol.for('drover.test.launcher');
const shared = globalThis as { [SHARED]?: RunLauncher };

shell();
shared[SHARED] ??= openLauncher({ PATH: process.env['PATH'] ?? '' });
launchWith(shared[SHARED].address);
