// Lines that the user types in answer to a question.
//
// Guarantees
//   1. Keys typed before a question is shown are not part of its answer, also where their line was not ended.
//   2. Standard input is read only while a question stands, so an editor in between gets every key.
//
// The terminal stays in its normal mode while it waits, so Ctrl-C is a signal as ever. It is raw only while
// old keys are dropped: in its normal mode it hands out no line that was not ended.

import { StringDecoder } from 'node:string_decoder';
import { setImmediate as immediate } from 'node:timers/promises';
import { type Input, type Io, print } from '../io.ts';

// A read that is due happens once round the event loop; the first turn may already be past its reads.
const DROP_TURNS = 3;

export type Lines = {
  /** Undefined if the prompt was withdrawn or the user has gone. */
  readonly ask: (words: string, signal: AbortSignal) => Promise<string | undefined>;
  readonly isGone: () => boolean;
  readonly close: () => void;
};

export function typedLines(io: Pick<Io, 'stdin' | 'stderr'>): Lines {
  let keys: Keys | undefined; // from the first question on
  return {
    isGone: () => keys?.isGone === true,
    close: () => keys?.close(),
    ask: async (words, signal) => {
      keys ??= new Keys(io.stdin);
      try {
        await keys.drop();
        const typed = keys.line();
        await print(io.stderr, words);
        const line = await untilAborted(typed, signal);
        // Without an answer its line is still open.
        if (line === undefined) await print(io.stderr, '\n');
        return line;
      } finally {
        keys.rest();
      }
    },
  };
}

class Keys {
  isGone = false;
  readonly #input: Input;
  #decoder = new StringDecoder('utf8');
  #begun = ''; // a line that is not ended yet
  #hear: (line: string | undefined) => void = () => undefined;

  constructor(input: Input) {
    this.#input = input;
    input.on('data', this.#take);
    for (const name of GONE) input.on(name, this.#leave);
  }

  /** Reads what was typed so far, and forgets it. */
  async drop(): Promise<void> {
    this.#hear = () => undefined;
    this.#input.setRawMode?.(true);
    this.#input.resume();
    for (let turn = 0; turn < DROP_TURNS; turn++) await immediate();
    this.#input.setRawMode?.(false);
    this.#decoder = new StringDecoder('utf8');
    this.#begun = '';
  }

  /** The next line; undefined where there will be none. */
  line(): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#hear = resolve;
    if (this.isGone) resolve(undefined);
    return promise;
  }

  rest(): void {
    this.#hear = () => undefined;
    this.#input.pause();
  }

  close(): void {
    this.rest();
    this.#input.off('data', this.#take);
    for (const name of GONE) this.#input.off(name, this.#leave);
  }

  readonly #take = (chunk: Buffer | string): void => {
    const text = typeof chunk === 'string' ? chunk : this.#decoder.write(chunk);
    const lines = (this.#begun + text).split(/\r?\n/);
    this.#begun = lines.pop() ?? '';
    for (const line of lines) this.#hear(line);
  };

  readonly #leave = (): void => {
    this.isGone = true;
    this.#hear(undefined);
  };
}

const GONE = ['end', 'close', 'error'] as const;

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
