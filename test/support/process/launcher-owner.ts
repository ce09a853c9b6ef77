// A process with a launcher that starts a command, prints their pids, and waits to be killed.

import { runChildProcess } from '@drover/core/tools/process/child';
import { openLauncher } from '../../../bin/run/open-launcher.ts';
import { listening } from '../serve/listening.ts';

const {
  address: { path },
  pid,
} = openLauncher({ PATH: process.env['PATH'] ?? '' });
await listening(path);

const callId = `owner-${process.pid}`;
await runChildProcess(
  {
    file: 'sh',
    args: ['-c', 'echo $$; exec sleep 97'],
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '' },
    callId,
    timeoutMs: 60_000,
    onStderr: () => undefined,
    onStdout: (chunk) => {
      process.stdout.write(`${JSON.stringify({ callId, command: Number(chunk.toString()), launcher: pid, path })}\n`);
      return undefined;
    },
  },
  new AbortController().signal,
);
