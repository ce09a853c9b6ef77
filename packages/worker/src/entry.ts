// The thread's door: a task comes in with the port to its run, its outcome goes out.
//
// What a task throws is a bug. It goes out as it is, and whoever started the thread takes the worker for lost.

import { threadId } from 'node:worker_threads';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import { linkOver, type Order } from '@drover/core/task/wire';
import { launchWith } from '@drover/core/tools/process/start';
import { runTask } from './task.ts';

export async function work(order: Order): Promise<TaskOutcome | undefined> {
  launchWith(order.launcher);
  // To be loaded was all that was wanted.
  if ('warm' in order) return undefined;
  const { link, signal, close } = linkOver(order, threadId);
  try {
    return await runTask(order.spec, link, signal);
  } finally {
    close();
  }
}
