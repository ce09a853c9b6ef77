// Stops of a run that a chat has started: the first Ctrl-C ends the run early, and the chat continues.

import type { Io, StopCause, StopListener } from '../../io.ts';

export class RunStops {
  readonly #listeners = new Set<StopListener>();
  #isInterrupted = false;

  /** An Io for the next run. Its questions are asked on the terminal of the chat. */
  ioFor(io: Io, cwd: string): Io {
    this.#isInterrupted = false;
    const { job } = io;
    return {
      ...io,
      cwd,
      stderr: io.stderr.isTTY === true ? io.stderr : io.stdout,
      onStop: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
      ...(job && { job: { ...job, signal: (name) => this.#signal(job, name) } }),
    };
  }

  /** Returns true if a run ends early because of it. */
  takes(cause: StopCause): boolean {
    if (cause !== 'SIGINT' || this.#isInterrupted || this.#listeners.size === 0) return false;
    this.#isInterrupted = true;
    this.stop(cause);
    return true;
  }

  stop(cause: StopCause): void {
    for (const listener of this.#listeners) listener.stop(cause);
  }

  atOnce(): void {
    for (const listener of this.#listeners) listener.atOnce();
  }

  /** Other processes of the job, such as tool servers of the chat, do not get the Ctrl-C that a run takes. */
  #signal(job: NonNullable<Io['job']>, name: Parameters<NonNullable<Io['job']>['signal']>[0]): void {
    if (name !== 'SIGINT' || !this.takes('SIGINT')) job.signal(name);
  }
}
