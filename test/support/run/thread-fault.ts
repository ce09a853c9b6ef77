// Loaded into every thread of drover by NODE_OPTIONS: a worker thread fails as soon as a file says how. The first
// thread that sees the file removes it, so the fault happens once.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const LOOK_MS = 20;
const place = process.env['DROVER_TEST_FAULT'] ?? '';

const faults: Readonly<Record<string, () => void>> = {
  exit: () => process.exit(3),
  throw: () => {
    throw new Error('thrown on purpose');
  },
  loop: () => {
    for (;;);
  },
  heap: () => {
    for (const held: number[][] = []; ;) held.push(Array<number>(100_000).fill(held.length + 0.5));
  },
};

function look(): void {
  const file = `${place}/fault`;
  if (!existsSync(file)) return;
  const fault = readFileSync(file, 'utf8').trim();
  try {
    rmSync(file);
  } catch {
    return; // another thread was faster
  }
  faults[fault]?.();
}

if (!isMainThread && place !== '') setInterval(look, LOOK_MS).unref();
