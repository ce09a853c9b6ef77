// Notices of a server that its tools have changed, as checks that run one at a time.
//
// Guarantees
//   1. A check begins at most `WAIT_MS` after the first notice, however many follow. A debounce would wait for ever for
//      a pause of a server that sends notices without one.
//   2. Checks that notices ask for begin at least `APART_MS` apart, so a server cannot keep drover busy with lists.

const WAIT_MS = 100;
const APART_MS = 1_000;

export class ChangeWatch implements Disposable {
  readonly #check: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #began = -Infinity;
  #isDone = false;

  /** `check` does not reject. */
  constructor(check: () => Promise<void>) {
    this.#check = check;
  }

  notice(): void {
    if (this.#isDone || this.#timer !== undefined) return;
    const wait = Math.max(WAIT_MS, this.#began + APART_MS - performance.now());
    this.#timer = setTimeout(() => void this.#run(), wait).unref();
  }

  /** Later notices are ignored. */
  [Symbol.dispose](): void {
    this.#isDone = true;
    clearTimeout(this.#timer);
  }

  async #run(): Promise<void> {
    this.#began = performance.now();
    await this.#check();
    this.#timer = undefined;
  }
}
