// Checkpoints: the files of an attempt reach its run before the results of the calls that changed them.
//
// Guarantees
//   1. When the run has a call's result, it has the files that the call left. So an attempt that loses its host resumes
//      on another one with every acknowledged call done, and none of them runs twice.
//   2. Events keep their order: those after a held result wait with it.
//
// A call that only reads leaves no files, and its result is not held.

import type { Event } from '@drover/protocol/events';
import type { TaskLink } from '@drover/core/task/link';

type Emitted = { readonly event: Event; readonly step: Parameters<TaskLink['emit']>[1] };

export type CheckpointOptions = {
  /** Sends the files as they are now, if they changed since the last time. */
  readonly save: () => Promise<void>;
  /** Names of tools that change nothing. */
  readonly readers: ReadonlySet<string>;
};

/** `flush` sends what is still held at the end of the task. */
export type Checkpointed = { readonly link: TaskLink; readonly flush: () => Promise<void> };

/** The link of a task whose results wait for a checkpoint. */
export function serveWithCheckpoints(link: TaskLink, { save, readers }: CheckpointOptions): Checkpointed {
  const held: Emitted[] = [];
  let saving: Promise<void> | undefined;
  const flush = async (): Promise<void> => {
    while (held.length > 0) {
      const count = held.length;
      await save();
      for (const { event, step } of held.splice(0, count)) link.emit(event, step);
    }
  };
  const saved = (): Promise<void> => {
    saving ??= flush().finally(() => (saving = undefined));
    return saving;
  };
  const checkpointed: TaskLink = {
    ...link,
    emit: (event, step) => {
      const isChange = event.type === 'tool_execution_end' && !readers.has(event.name);
      if (held.length > 0 || isChange) held.push({ event, step });
      else link.emit(event, step);
    },
    settled: async () => {
      await saved();
      await link.settled();
    },
    ask: async (order, hooks, signal) => {
      await saved();
      return link.ask(order, hooks, signal);
    },
    question: async (question, signal) => {
      await saved();
      return link.question(question, signal);
    },
  };
  return { link: checkpointed, flush: saved };
}
