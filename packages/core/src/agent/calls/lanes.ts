// Schedules the calls of one answer.
//
// Guarantees
//   1. At most `parallelMax` calls run at the same time.
//   2. A call that demands to run alone runs alone. Two calls that touch the same path never overlap.
//   3. Calls that conflict run in the order they came.

export type Demand = { readonly alone: boolean; readonly touches: readonly string[] };

type Waiting = { readonly demand: Demand; readonly start: () => void };

export class Lanes {
  readonly #parallelMax: number;
  readonly #running = new Set<Demand>();
  #waiting: Waiting[] = [];

  constructor(parallelMax: number) {
    this.#parallelMax = parallelMax;
  }

  async run<Result>(demand: Demand, work: () => Promise<Result>): Promise<Result> {
    await new Promise<void>((start) => {
      this.#waiting.push({ demand, start });
      this.#startWhatMay();
    });
    try {
      return await work();
    } finally {
      this.#running.delete(demand);
      this.#startWhatMay();
    }
  }

  #startWhatMay(): void {
    const ahead: Demand[] = [];
    this.#waiting = this.#waiting.filter(({ demand, start }) => {
      const blocked =
        this.#running.size >= this.#parallelMax ||
        [...this.#running, ...ahead].some((other) => conflict(demand, other));
      if (blocked) {
        ahead.push(demand);
        return true;
      }
      this.#running.add(demand);
      start();
      return false;
    });
  }
}

function conflict(a: Demand, b: Demand): boolean {
  return a.alone || b.alone || a.touches.some((path) => b.touches.includes(path));
}
