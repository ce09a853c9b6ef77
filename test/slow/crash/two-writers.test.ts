// Two processes that compete for one session: one gets it, and a dead owner's lock is free.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/agent.ts';

const ROUNDS = 200;
const SCRIPT = `
  import { Lock } from ${JSON.stringify(import.meta.resolve('@drover/core/journal/file/lock'))};
  const lock = Lock.take(process.argv[1]);
  process.stdout.write(lock === undefined ? 'refused' : 'taken');
  process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL')).resume();`;

test('in 200 rounds there are never two writers, and a dead owner’s lock is taken over', async () => {
  const path = join(await temporaryFolder(), 'journal.jsonl.lock');
  let longestMs = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const children = [0, 1].map(() =>
      spawn(process.execPath, ['--input-type=module', '-e', SCRIPT, path], { stdio: ['pipe', 'pipe', 'inherit'] }),
    );
    const words = await Promise.all(
      children.map(
        (child) =>
          new Promise<string>((resolve) => child.stdout.once('data', (data: Buffer) => resolve(data.toString()))),
      ),
    );
    expect(words.sort()).toEqual(['refused', 'taken']);
    await Promise.all(
      children.map((child) => {
        child.stdin.end();
        return new Promise((resolve) => child.once('exit', resolve));
      }),
    );
    const begun = performance.now();
    const { Lock } = await import('@drover/core/journal/file/lock');
    const lock = Lock.take(path);
    longestMs = Math.max(longestMs, performance.now() - begun);
    expect(lock).toBeDefined();
    lock?.release();
  }
  process.stdout.write(
    `two writers: ${ROUNDS} rounds, a dead one's lock taken over within ${longestMs.toFixed(1)} ms\n`,
  );
  expect(longestMs).toBeLessThan(5_000);
});
