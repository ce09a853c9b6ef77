// A worker thread that fails on purpose. The task's id selects the fault; any other task runs normally.
//
// A fault happens during a call, once the workspace has a file `now`.

import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import type { TaskSpec } from '@drover/core/task/task';
import type { Opening, Order } from '@drover/core/task/order';
import { taskLinkOverWire } from '@drover/core/task/wire';
import { work as workWell } from '@drover/worker/entry';
import { runWorkerTask } from '@drover/worker/task';

export const faults: Readonly<Record<string, () => void>> = {
  throw: () => {
    throw new Error('thrown on purpose');
  },
  exit: () => process.exit(3),
  loop: () => {
    for (;;);
  },
  // Blocks the thread like `loop`, but leaves the core to others.
  deaf: () => {
    for (const cell = new Int32Array(new SharedArrayBuffer(4)); ;) Atomics.wait(cell, 0, 0, 10);
  },
  heap: () => {
    for (const held: number[][] = []; ;) held.push(Array<number>(100_000).fill(held.length + 0.5));
  },
};

export async function work(order: Order): Promise<unknown> {
  if ('warm' in order) return workWell(order);
  const { spec } = order;
  if (spec.task === 'reject') return reject(order);
  if (spec.task === 'flood') return flood(spec, order);
  const fault = faults[spec.task];
  try {
    return await workWell(order, (...given) => {
      if (fault !== undefined) happenIn(spec, fault);
      return runWorkerTask(...given);
    });
  } finally {
    appendFileSync(join(spec.workspace, 'finally'), 'ran');
  }
}

let rejections = 0;

async function reject(order: Opening): Promise<never> {
  rejections += 1;
  await taskLinkOverWire(order, threadId).link.settled();
  throw new TypeError(`rejection ${rejections} of this thread`);
}

function happenIn({ workspace }: TaskSpec, fault: () => void): void {
  setInterval(() => existsSync(join(workspace, 'now')) && fault(), 10);
}

/** Numbered events at a thousand per second; the system prompt says how many. */
async function flood({ system, mode }: TaskSpec, order: Opening): Promise<unknown> {
  const { link, close } = taskLinkOverWire(order, threadId);
  const count = Number(system);
  for (let told = 0; told < count || mode === 'read'; told++) {
    link.emit({ type: 'warning', message: String(told) }, { turn: 1, step: 1 });
    if (told % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await link.settled();
  close();
  return { status: 'finished', summary: '', usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, refused: [] };
}
