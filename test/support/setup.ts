// Setup of every test file: small processes start the others, since a start costs time by the parent's memory.
// drover's processes use a launcher as in a run, and git in tests uses a shell. Tests about starting processes choose
// for themselves.

import { launchProcessesWith } from '@drover/core/tools/process/start';
import { openLauncher, type RunLauncher } from '../../bin/run/open-launcher.ts';
import { shell } from './process/run-sync.ts';

const SHARED = Symbol.for('drover.test.launcher');
const shared = globalThis as { [SHARED]?: RunLauncher };

shell();
shared[SHARED] ??= openLauncher({ PATH: process.env['PATH'] ?? '' });
launchProcessesWith(shared[SHARED].address);
