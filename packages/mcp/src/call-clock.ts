// The time limits of one call: how long it may be silent, and how long it may take at all. Both stand still while the
// user answers a question of the server.

export type CallLimits = { readonly silentMs: number; readonly totalMs: number };

/** Why the signal of a clock aborted. */
export class OverdueError extends Error {
  override readonly name = 'OverdueError';
}

export class CallClock implements Disposable {
  readonly #limits: CallLimits;
  readonly #overdue = new AbortController();
  #silent: NodeJS.Timeout | undefined;
  #total: NodeJS.Timeout | undefined;
  #leftMs: number;
  #since = 0;
  #holds = 0;

  constructor(limits: CallLimits) {
    this.#limits = limits;
    this.#leftMs = limits.totalMs;
    this.#run();
  }

  get signal(): AbortSignal {
    return this.#overdue.signal;
  }

  /** The server has shown a sign of life. */
  progress(): void {
    if (this.#holds > 0 || this.#overdue.signal.aborted) return;
    clearTimeout(this.#silent);
    this.#watchSilence();
  }

  /** Stands still until the work is done. */
  async hold<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#holds += 1;
    if (this.#holds === 1) this.#stop();
    try {
      return await work();
    } finally {
      this.#holds -= 1;
      if (this.#holds === 0) this.#run();
    }
  }

  [Symbol.dispose](): void {
    this.#stop();
  }

  #run(): void {
    this.#since = performance.now();
    this.#watchSilence();
    this.#total = setTimeout(
      () => this.#abort(`it took longer than ${mcpCallSeconds(this.#limits.totalMs)}`),
      this.#leftMs,
    );
  }

  #watchSilence(): void {
    const { silentMs } = this.#limits;
    this.#silent = setTimeout(() => this.#abort(`nothing came for ${mcpCallSeconds(silentMs)}`), silentMs);
  }

  #stop(): void {
    this.#leftMs = Math.max(1, this.#leftMs - (performance.now() - this.#since));
    clearTimeout(this.#silent);
    clearTimeout(this.#total);
  }

  #abort(why: string): void {
    this.#stop();
    this.#overdue.abort(new OverdueError(why));
  }
}

function mcpCallSeconds(ms: number): string {
  return ms % 1_000 === 0 ? `${ms / 1_000} s` : `${ms} ms`;
}
