// A worker thread in which the task `guilty` ends the thread as soon as a file says how, once.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import type { Order } from '@drover/core/task/order';
import { work as workWell } from '@drover/worker/entry';
import { runWorkerTask } from '@drover/worker/task';
import { faults } from '../run/faulty-worker.ts';

const LOOK_MS = 2;
const file = process.env['DROVER_TEST_FAULT'] ?? '';

export function work(order: Order): Promise<unknown> {
  return workWell(order, async (spec, link, signal) => {
    const watch = spec.task === 'guilty' ? setInterval(look, LOOK_MS) : undefined;
    try {
      return await runWorkerTask(spec, link, signal);
    } finally {
      clearInterval(watch);
    }
  });
}

function look(): void {
  if (!existsSync(file)) return;
  const fault = readFileSync(file, 'utf8');
  rmSync(file);
  faults[fault]?.();
}
