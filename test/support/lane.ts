// Global setup of the fast lane, run once for all its processes.
//
// Temporary folders are in memory if possible: tests create and remove tens of thousands of small files, which takes a
// quarter of their time on a disk. The compile cache stays on disk for the next time.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const FREE_BYTES_MIN = 2_000_000_000;

export function setup(): (() => void) | undefined {
  process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'drover-test-compiled');
  if (process.env['TMPDIR'] !== undefined) return undefined;
  const folder = folderInMemory();
  if (folder === undefined) return undefined;
  process.env['TMPDIR'] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Undefined if there is none, if it is small, as in most containers, or if it is mounted noexec. */
function folderInMemory(): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (bavail * bsize < FREE_BYTES_MIN) return undefined;
    const folder = mkdtempSync(join(MEMORY, 'drover-lane-'));
    const program = join(folder, 'program');
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
    if (spawnSync(program).status === 0) return folder;
    rmSync(folder, { recursive: true });
    return undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}
