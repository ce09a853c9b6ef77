// The thread's door: a task comes in with the port to its run, its outcome goes out.
//
// What a task throws is a bug. It goes out as it is, and whoever started the thread takes the worker for lost.

import { threadId } from 'node:worker_threads';
import type { TaskOutcome } from '@drover/core/task/task';
import { linkOver, type Order } from '@drover/core/task/wire';
import { builtinTools } from '@drover/core/tools/builtin';
import { launchWith } from '@drover/core/tools/process/start';
import { runTask } from './task.ts';

export async function work(order: Order): Promise<TaskOutcome | undefined> {
  launchWith(order.launcher);
  if ('warm' in order) return warmUp();
  const { link, signal, close } = linkOver(order, threadId);
  try {
    return await runTask(order.spec, link, signal);
  } finally {
    close();
  }
}

/** This file has loaded what a task needs; what is left is made when it is first asked for. */
function warmUp(): undefined {
  for (const { schema } of builtinTools) void schema;
}
