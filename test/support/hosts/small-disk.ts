// A disk of a few megabytes, which a test can fill. Only root can mount one.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, onTestFinished } from 'vitest';
import { runSync } from '../process/run-sync.ts';
import { temporaryFolder } from '../workspace.ts';

const SIZE = '96m';
const PART = 4_096;

export type SmallDisk = {
  readonly path: string;
  /** Leaves no free byte. */
  readonly fill: () => void;
};

/** A group of tests that mount a disk. On a machine that refuses it they are left out, and a line says so. */
export function withSmallDisk(title: string, tests: (mounted: () => Promise<SmallDisk>) => void): void {
  const canMount = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0;
  if (!canMount) process.stderr.write(`\n*** LEFT OUT, because only root can mount a disk: ${title}.\n\n`);
  describe.skipIf(!canMount)(title, () => tests(mounted));
}

async function mounted(): Promise<SmallDisk> {
  const path = await temporaryFolder();
  runSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', path], { cwd: '/' });
  onTestFinished(() => void runSync('umount', ['-l', path], { cwd: '/' }));
  return { path, fill: () => fill(join(path, 'filler')) };
}

function fill(file: string): void {
  for (;;) {
    try {
      writeFileSync(file, Buffer.alloc(PART), { flag: 'a' });
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return;
      throw error;
    }
  }
}
