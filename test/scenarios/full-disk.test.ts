// A real full disk: a small mount that the agent's command fills, and that is emptied again.
// Machines that cannot mount run test/core/journal/disk-full.test.ts, with a simulated disk.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readJournalFile } from '@drover/core/journal/file/journal';
import { journalPath } from '@drover/core/journal/session-journal';
import { startRehearsal } from '@drover/rehearsal/server';
import { expect, onTestFinished, test } from 'vitest';
import { main } from '../../bin/drover.ts';
import { FakeIo } from '../cli/fake-io.ts';
import { until } from '../support/until.ts';

const DISK = '2m';
const DISK_BYTES = 2 * 1024 * 1024;
// More than the space left in the journal's last block.
const LONG_OUTPUT = 'seq 5000';
// Long enough for every operation that does not wait for the disk.
const WHILE_MS = 500;

const canMount = process.platform === 'linux' && process.getuid?.() === 0 && tried();
if (!canMount) process.stderr.write('SKIPPED: a full disk, since nothing can be mounted here\n');

function tried(): boolean {
  try {
    // In a mount namespace, which ends with the command.
    execFileSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', tmpdir()], { stdio: 'ignore' });
    return true;
  } catch {
    return false; // Not permitted, or not installed.
  }
}

test.runIf(canMount)('a full disk is reported at once, no tool starts, and work resumes with space', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'drover-full-'));
  const [disk, cwd] = [join(folder, 'disk'), join(folder, 'project')];
  await mkdir(disk);
  await mkdir(cwd);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'none', disk]);
  const server = await startRehearsal({
    answers: [
      {
        calls: [
          { name: 'shell', args: { command: `head -c ${DISK_BYTES} /dev/zero > ${disk}/filler; ${LONG_OUTPUT}` } },
        ],
      },
      { calls: [{ name: 'write', args: { path: 'effect.txt', content: 'done' } }] },
      { text: 'All is well.' },
    ],
  });
  onTestFinished(async () => {
    execFileSync('umount', ['-l', disk]); // also after a failure that left its journal open
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });
  const env = { DROVER_HOME: join(disk, 'home'), ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.url };
  const fake = new FakeIo({ cwd, env });
  const argv = ['exec', 'go', '--session', 's', '--model', 'anthropic/any', '--yes', '--json'];
  const working = main(argv, fake.io);

  await until(() => fake.stderr.includes('ENOSPC'));
  await sleep(WHILE_MS);
  expect(fake.stderr).toMatch(/cannot be written \(ENOSPC\): nothing new is started until it can\n$/);
  expect(existsSync(join(cwd, 'effect.txt'))).toBe(false);
  // The results of the first call are written while the model is asked, and that write fails.
  expect(server.requests.length).toBeLessThanOrEqual(2);

  await rm(join(disk, 'filler'));
  expect(await working).toBe(0);
  expect(await readFile(join(cwd, 'effect.txt'), 'utf8')).toBe('done');
  const told = fake.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly seq: number; readonly type: string })
    .filter(({ type }) => !type.endsWith('_delta'));
  const kept = (await readJournalFile(journalPath(env.DROVER_HOME, 's'))).records;
  expect(kept.map(({ seq, type }) => ({ seq, type }))).toEqual(told.map(({ seq, type }) => ({ seq, type })));
});
