// Lines that somebody types in answer to words.
//
// The terminal stays in its normal mode, so Ctrl-C is a signal as ever and nothing has to be restored. What
// was typed before it was asked for is no answer.

import { createInterface, type Interface } from 'node:readline';
import { type Io, print } from '../io.ts';

export type Lines = {
  /** Undefined where the words were withdrawn, or nobody is there any more. */
  readonly ask: (words: string, signal: AbortSignal) => Promise<string | undefined>;
  readonly isGone: () => boolean;
  readonly close: () => void;
};

export function typedLines(io: Pick<Io, 'stdin' | 'stderr'>): Lines {
  let lines: Interface | undefined; // from the first question on
  let hasGone = false;
  let hear: (line: string | undefined) => void = () => undefined;
  const open = (): void => {
    if (lines !== undefined) return;
    lines = createInterface({ input: io.stdin, terminal: false });
    lines.on('line', (line) => hear(line));
    lines.on('close', () => {
      hasGone = true;
      hear(undefined);
    });
  };
  return {
    isGone: () => hasGone,
    close: () => lines?.close(),
    ask: async (words, signal) => {
      open();
      const { promise, resolve } = Promise.withResolvers<string | undefined>();
      hear = resolve;
      try {
        await print(io.stderr, words);
        const line = await untilAborted(promise, signal);
        // Without an answer its line is still open.
        if (line === undefined) await print(io.stderr, '\n');
        return line;
      } finally {
        hear = () => undefined;
      }
    },
  };
}

export async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
  const aborted = Promise.withResolvers<undefined>();
  const onAbort = (): void => aborted.resolve(undefined);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
