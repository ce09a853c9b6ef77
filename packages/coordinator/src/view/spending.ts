// The spending of a run by its journal: finished requests, and requests that were under way when it was killed.
//
// The provider never reports the usage of those. With a cap, their worst case counts as spent, as for a lost worker.
// Without a cap, requests are not journaled before they are sent, and none is counted. Dollars are those of the
// records: each request at the price of its model.

import type { Recorded } from '@drover/protocol/events';
import { Dollars, type Told } from '@drover/core/journal/dollars';
import type { Usage } from '@drover/protocol/messages';
import { NO_SPENDING, spentIn, sumSpent, type Spent } from '@drover/core/model/spending/spent';
import { spentTokensOf } from '@drover/core/model/spending/usage';
import type { Spending } from '../admission/purse.ts';

type Request = { readonly task: string | undefined; readonly most: Usage; readonly mostCost?: number };

export class SpendingFold {
  readonly #tasks = new Map<string, Spent>();
  readonly #underWay = new Map<string, Request>(); // by agent; each agent has at most one request in flight
  readonly #agents = new Map<string, Dollars>(); // by attempt, and of the coordinator
  readonly #dollars = new Dollars(); // sum of the totals
  #model = '';
  #total = NO_SPENDING;
  #isTold = false; // a reported total; without one, the sum of all answers

  /**
   * Spending of everything that has ended, and of lost requests once the run was resumed; undefined if no total was
   * reported.
   */
  get told(): Spent | undefined {
    return this.#isTold ? this.#total : undefined;
  }

  take(record: Recorded): void {
    switch (record.type) {
      case 'run_start':
        // The resumed run counts lost requests itself, so they must not count twice.
        this.#lose();
        this.#model = record.model;
        this.#dollars.use(record.model);
        return;
      case 'budget':
        return this.#takeTotal(record);
      case 'usage': {
        const cost = this.#agent(record).take(record);
        const request = spentIn({ usage: record.usage, cost });
        if (!this.#isTold) this.#total = sumSpent(this.#total, request);
        if (record.task !== undefined) this.#add(record.task, request);
        return;
      }
      default:
        return;
    }
  }

  /** Spending of everything so far. Requests under way count in full: of a killed run, they are lost. */
  get spent(): Spending {
    const tasks = new Map(this.#tasks);
    let total = this.#total;
    for (const { task, most, mostCost } of this.#underWay.values()) {
      const lost = spentIn({ usage: most, cost: this.#dollars.costOf(most, mostCost) });
      total = sumSpent(total, lost);
      if (task !== undefined) tasks.set(task, sumSpent(tasks.get(task) ?? NO_SPENDING, lost));
    }
    return { total, tasks };
  }

  /** The number of requests under way. */
  get lostRequests(): number {
    return this.#underWay.size;
  }

  #takeTotal(record: Extract<Recorded, { readonly type: 'budget' }>): void {
    const { usage, most, mostCost, task } = record;
    const key = spendingKeyInView(record);
    this.#isTold = true;
    this.#dollars.take({ ...record, total: usage });
    this.#total = spentIn({ usage, cost: this.#dollars.cost });
    if (most === undefined) this.#underWay.delete(key);
    else this.#underWay.set(key, { task, most, ...(mostCost !== undefined && { mostCost }) });
  }

  #agent(record: Recorded): Dollars {
    const known = this.#agents.get(spendingKeyInView(record)) ?? new Dollars();
    known.use(this.#model);
    this.#agents.set(spendingKeyInView(record), known);
    return known;
  }

  #lose(): void {
    const { total, tasks } = this.spent;
    for (const { most, mostCost } of this.#underWay.values()) this.#dollars.add(most, mostCost);
    this.#total = total;
    for (const [task, spent] of tasks) this.#tasks.set(task, spent);
    this.#underWay.clear();
  }

  #add(task: string, request: Spent): void {
    this.#tasks.set(task, sumSpent(this.#tasks.get(task) ?? NO_SPENDING, request));
  }
}

/** The spending of one agent, over all its conversations. */
export class AgentSpending {
  #spent = NO_SPENDING;
  #before = NO_SPENDING; // in earlier conversations
  #dollars = new Dollars(); // in this conversation
  #toldTokens = 0; // reported in this conversation
  #model = '';

  get usage(): Usage {
    return this.#spent.usage;
  }

  get cost(): number | undefined {
    return this.#spent.cost;
  }

  /** Starts a conversation; earlier spending is kept. */
  begin(): void {
    this.#before = this.#spent;
    this.#dollars = new Dollars();
    this.#toldTokens = 0;
  }

  /** Sets the model of the following requests. */
  use(model: string): void {
    this.#model = model;
  }

  take(told: Told): void {
    // Totals only grow, unless a crash made the attempt begin from nothing.
    if (spentTokensOf(told.total) < this.#toldTokens) this.begin();
    this.#toldTokens = spentTokensOf(told.total);
    this.#dollars.use(this.#model);
    this.#dollars.take(told);
    const { cost } = this.#dollars;
    this.atLeast({ total: told.total, ...(cost !== undefined && { cost }) });
  }

  /** Sets the minimum spending of the conversation. Dollars of an already known total stay unchanged. */
  atLeast({ total, cost }: Told): void {
    const spent = sumSpent(this.#before, spentIn({ usage: total, cost }));
    const more = spentTokensOf(spent.usage) - spentTokensOf(this.#spent.usage);
    if (more > 0 || (more === 0 && this.#spent.cost === undefined)) this.#spent = spent;
  }
}

function spendingKeyInView({ task, attempt }: Recorded): string {
  return `${task ?? ''} ${attempt ?? 0}`;
}
