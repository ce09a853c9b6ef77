// Entry point of a worker thread: receives tasks, each with a port to its run, and returns their outcomes. Several
// tasks are at work at once; most of the time they wait.
//
// Failure: an error thrown by a task is a bug. It reaches the pool unchanged, which ends the thread. Where code of a
// task ends the thread (an exception that nothing catches, or an exit), that task tells the run so first. A full heap
// and an endless loop leave no time to tell.

import { AsyncLocalStorage } from 'node:async_hooks';
import { isMainThread, parentPort, threadId } from 'node:worker_threads';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { Order, SignOfLife } from '@drover/core/task/order';
import { type Line, taskLinkOverWire } from '@drover/core/task/wire';
import { launchProcessesWith } from '@drover/core/tools/process/start';
import { runWorkerTask } from './task.ts';

const SIGN_EVERY_MS = 1_000;

/** The task whose code runs now. */
const current = new AsyncLocalStorage<Line>();
const signs = { tasks: 0, timer: undefined as NodeJS.Timeout | undefined };

if (!isMainThread) {
  const tell = () => current.getStore()?.fall();
  process.on('uncaughtExceptionMonitor', tell);
  process.on('exit', tell);
}

export async function work(order: Order, run = runWorkerTask): Promise<TaskOutcome | undefined> {
  launchProcessesWith(order.launcher);
  // Warm-up order: importing this module was the purpose.
  if ('warm' in order) return undefined;
  const line = taskLinkOverWire(order, threadId);
  using _signs = signsOfLifeOfThread();
  try {
    return await current.run(line, () => run(order.spec, line.link, line.signal));
  } finally {
    line.close();
  }
}

/** One timer for all tasks of the thread. */
function signsOfLifeOfThread(): Disposable {
  signs.tasks += 1;
  signs.timer ??= setInterval(() => parentPort?.postMessage({ sign: threadId } satisfies SignOfLife), SIGN_EVERY_MS);
  return {
    [Symbol.dispose]() {
      signs.tasks -= 1;
      if (signs.tasks > 0) return;
      clearInterval(signs.timer);
      signs.timer = undefined;
    },
  };
}
