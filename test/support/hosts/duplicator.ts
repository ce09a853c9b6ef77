// Delivers every message and every job of a Redis once more, as a client that retries too often would.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { connectRedis } from '@drover/hosts/line/redis';
import { onTestFinished } from 'vitest';
import type { Redis } from './redis.ts';

export type Duplicator = {
  readonly count: () => number;
  /** Adds every job that there was again. */
  readonly jobsAgain: () => void;
};

export async function duplicateAll(redis: Redis): Promise<Duplicator> {
  const monitor = spawn('redis-cli', ['-p', `${redis.port}`, 'monitor'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const again = connectRedis({ url: redis.url, key: undefined });
  onTestFinished(() => {
    again.disconnect();
    monitor.kill('SIGKILL');
  });
  const jobs: string[] = [];
  const send = (text: string) => {
    const [name = '', ...args] = argumentsIn(text);
    // Redis refuses a copy for an inbox that is gone.
    void again.call(name.toString(), ...args).catch(() => undefined);
  };
  const seen = new Set<string>(); // the copies are monitored too
  const started = Promise.withResolvers<void>();
  createInterface(monitor.stdout).on('line', (line) => {
    started.resolve();
    const text = line.replace(/^[^"]*/, '');
    const isMessage = /^"xadd" "drover:inbox:/i.test(text);
    const isJob = /^"eval(sha)?" .*\\xa9placement/i.test(text); // packed: a text of 9 bytes
    if ((!isMessage && !isJob) || seen.has(text)) return;
    seen.add(text);
    if (isJob) jobs.push(text);
    else send(text);
  });
  await started.promise;
  return {
    count: () => seen.size,
    // A job that is still there would not be added again.
    jobsAgain: () => {
      for (const job of jobs) send(job);
    },
  };
}

/** The arguments of a command as MONITOR shows it. */
function argumentsIn(text: string): readonly Buffer[] {
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, quoted = '']) =>
    Buffer.from(
      quoted.replace(/\\(x[0-9a-f]{2}|.)/g, (_, escaped: string) => unescaped(escaped)),
      'latin1',
    ),
  );
}

function unescaped(escaped: string): string {
  if (escaped.length === 3) return String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' }[escaped] ?? escaped;
}
