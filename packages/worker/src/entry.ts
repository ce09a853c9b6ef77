// Entry point of a worker thread: receives a task with a port to its run, and returns the outcome.
//
// Failure: an error thrown by a task is a bug. It reaches the pool unchanged, which counts the worker as lost.

import { threadId } from 'node:worker_threads';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import { linkOver, type Order } from '@drover/core/task/wire';
import { launchWith } from '@drover/core/tools/process/start';
import { runTask } from './task.ts';

export async function work(order: Order): Promise<TaskOutcome | undefined> {
  launchWith(order.launcher);
  // Warm-up order: importing this module was the purpose.
  if ('warm' in order) return undefined;
  const { link, signal, close } = linkOver(order, threadId);
  try {
    return await runTask(order.spec, link, signal);
  } finally {
    close();
  }
}
