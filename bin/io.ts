// Everything a command may touch outside: three streams, the environment, the current folder, the request to stop.
//
// bin/drover.ts gives a command its Io. A command never uses the process itself, so tests run the whole program with
// their own streams.

import type { Readable, Writable } from 'node:stream';
import type { Json } from '@drover/protocol/json';
import { cleanText, textForLog } from './views/text/terminal-text.ts';

export type Input = Readable & { readonly isTTY?: boolean; readonly setRawMode?: (isRaw: boolean) => unknown };
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };
/** Causes to end early: a signal, or a closed output. */
export type StopCause = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'output closed';

export type Io = {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The Node that runs this program. */
  readonly node: string;
  readonly onStop: (listener: StopListener) => () => void;
  /** Absent where no shell controls this program. */
  readonly job?: Job;
};

/** The signals that keys of a terminal send: Ctrl-C, Ctrl-Z and Ctrl-\\. */
export type JobSignal = 'SIGINT' | 'SIGTSTP' | 'SIGQUIT';

/** The job of the shell that this command belongs to. */
export type Job = {
  /** Signals every process of the job, as a key of the terminal does. */
  readonly signal: (name: JobSignal) => void;
  /** Whether the terminal is the job's; one in the background must not change its mode. */
  readonly isForeground: () => boolean;
  /** Calls back each time the job is resumed after it was stopped. */
  readonly onContinue: (listener: () => void) => () => void;
  /** Calls back in the last moment of the process; the listener must not wait for anything. */
  readonly onExit: (listener: () => void) => () => void;
};

export type StopListener = {
  /** Returns true if the cause ends a part of the work only: then the program continues, and `stop` is not called. */
  readonly takes?: (cause: StopCause) => boolean;
  readonly stop: (cause: StopCause) => void;
  /** The process ends this very moment: what must not outlive it is ended here, without waiting. */
  readonly atOnce: () => void;
};

/** Writes, and waits until there is room for more. A reader that has gone away is not waited for. */
export async function print(output: Output, text: string | Uint8Array): Promise<void> {
  if (text.length === 0 || isOutputGone(output) || output.write(text)) return;
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      for (const name of ROOM_OR_GONE) output.off(name, settle);
      resolve();
    };
    for (const name of ROOM_OR_GONE) output.on(name, settle);
  });
}

/** Text for standard output that may quote untrusted text: redacted, and inert for a CI runner. */
export async function printLine(io: Io, text: string): Promise<void> {
  const { diagnosticsRedactor } = await import('./diagnostics.ts');
  const redactor = await diagnosticsRedactor(io);
  await print(io.stdout, textForLog(redactor.text(text), io.env));
}

/** A value for programs, as one line of JSON on standard output; the same holds for it. */
export async function printJsonLine(io: Io, value: unknown): Promise<void> {
  const [{ diagnosticsRedactor }, { jsonViewText }] = await Promise.all([
    import('./diagnostics.ts'),
    import('./views/json.ts'),
  ]);
  const redactor = await diagnosticsRedactor(io);
  await print(io.stdout, `${jsonViewText(redactor.value(value as Json))}\n`);
}

/**
 * A sentence of drover's own on standard error. It may quote untrusted text, so secrets and control sequences are
 * removed.
 */
export async function printError(io: Io, text: string): Promise<void> {
  const { diagnosticsRedactor } = await import('./diagnostics.ts');
  const redactor = await diagnosticsRedactor(io);
  await print(io.stderr, `${textForLog(cleanText(`drover: ${redactor.text(text)}`), io.env)}\n`);
}

/** Calls back once no pending output was taken for this long. */
export function whenOutputUnread(
  output: Pick<Output, 'writableNeedDrain' | 'on'>,
  ms: number,
  giveUp: () => void,
): void {
  let since = performance.now();
  const isTaken = (): void => void (since = performance.now());
  const look = setInterval(() => {
    if (!output.writableNeedDrain) isTaken();
    if (performance.now() - since < ms) return;
    clearInterval(look);
    giveUp();
  }, ms / LOOKS).unref();
  output.on('drain', isTaken);
}

const LOOKS = 10;

const ROOM_OR_GONE = ['drain', 'close', 'error'] as const;

export function isOutputGone(output: Output): boolean {
  return output.destroyed || output.errored !== null || output.writableEnded;
}
