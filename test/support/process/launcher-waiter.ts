// A process whose launcher starts a silent command; it waits for the end, and reports it.

import { Launcher } from '@drover/core/tools/process/launcher';

const [path = '', secret = ''] = process.argv.slice(2);
const env = { PATH: process.env['PATH'] ?? '' };
// The command closes its output at once, so only the line to the launcher is left to wait on.
const args = ['-c', 'exec >&- 2>&-; sleep 1; exit 7'];
const started = await new Launcher({ path, secret }).start(
  { file: 'sh', args, cwd: '/', env, detached: true },
  undefined,
);
started?.stdout.resume();
started?.stderr?.resume();
process.stdout.write(JSON.stringify(await started?.ended));
