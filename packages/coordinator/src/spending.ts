// What a run has spent by its journal: what was settled, and what may have been, of requests that were under way
// when it was killed.
//
// Nobody will ever say what became of those. A cap that must hold counts the worst case as spent, as it does for a
// worker that is lost. Without a cap no request is written down before it is sent, and none is counted.

import type { Recorded } from '@drover/core/events';
import type { Usage } from '@drover/core/model/protocol';
import { NO_USAGE, sumUsage } from '@drover/core/model/usage';
import type { Spending } from './admission/purse.ts';

type Request = { readonly task: string | undefined; readonly most: Usage };

export class SpendingFold {
  readonly #tasks = new Map<string, Usage>();
  readonly #underWay = new Map<string, Request>(); // by who asks; each asks for one thing at a time
  #total = NO_USAGE;
  #isTold = false; // as a total: else it is the sum of what each answer came to

  take(record: Recorded): void {
    switch (record.type) {
      case 'run_start':
        // Whoever goes on has counted it; and it is lost only once.
        this.#lose();
        return;
      case 'budget': {
        const key = `${record.task ?? ''} ${record.attempt ?? 0}`;
        this.#total = record.usage;
        this.#isTold = true;
        if (record.most === undefined) this.#underWay.delete(key);
        else this.#underWay.set(key, { task: record.task, most: record.most });
        return;
      }
      case 'usage':
        if (!this.#isTold) this.#total = sumUsage(this.#total, record.usage);
        if (record.task !== undefined) this.#add(record.task, record.usage);
        return;
      default:
        return;
    }
  }

  /** Of all that was taken, which ends here. */
  end(): Spending & { readonly lostRequests: number } {
    const lostRequests = this.#underWay.size;
    this.#lose();
    return { total: this.#total, tasks: this.#tasks, lostRequests };
  }

  #lose(): void {
    for (const { task, most } of this.#underWay.values()) {
      this.#total = sumUsage(this.#total, most);
      if (task !== undefined) this.#add(task, most);
    }
    this.#underWay.clear();
  }

  #add(task: string, usage: Usage): void {
    this.#tasks.set(task, sumUsage(this.#tasks.get(task) ?? NO_USAGE, usage));
  }
}
