// Schedules the calls of one answer.
//
// Guarantees
//   1. At most `parallelMax` calls run at the same time.
//   2. A call that demands to run alone runs alone. Two calls that touch the same path never overlap.
//   3. A command never overlaps with a tool that reads or writes files. Those tools run outside the sandbox, and a
//      command could exchange a folder for a link, or change git's config, between their check and their access.
//   4. Calls that conflict run in the order they came.

import type { Access } from '../../tools/tool.ts';

export type Demand = { readonly access: Access; readonly alone: boolean; readonly touches: readonly string[] };

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
        [...this.#running, ...ahead].some((other) => doCallsConflict(demand, other));
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

function doCallsConflict(a: Demand, b: Demand): boolean {
  if (a.alone || b.alone || isCallRace(a, b) || isCallRace(b, a)) return true;
  return a.touches.some((path) => b.touches.includes(path));
}

function isCallRace(command: Demand, { access }: Demand): boolean {
  return command.access === 'run' && (access === 'read' || access === 'write');
}
