// The budget of a run, and the optional budget of each task.
//
// Guarantees
//   1. Spent plus reserved never exceeds the cap, however many requests are made at once, unless an answer costs more
//      than its reservation.
//   2. The provider enforces the length of the answer, which is sent as the maximum. The caller bounds the prompt: the
//      provider's own count so far, plus one token per byte since, which no tokenizer exceeds.
//   3. If a provider counts more all the same, the cap can be exceeded by that excess once. Later reservations are
//      larger by the largest excess seen.
//
// Waiting: most answers are shorter than allowed, so most of a reservation comes back. A request that does not fit
// waits while other requests hold reservations, because a truncated answer is worse. If no other request holds any, a
// shorter answer is allowed; if not even that fits, the budget is spent.
//
// A cap in dollars needs a price, so there is none without it.

import { overBudget, type Wanted } from '@drover/core/model/spending/admission';
import { Budget, worstCaseSpending, type Pot, type Reservation } from '@drover/core/model/spending/budget';
import type { Cap } from '@drover/protocol/limits';
import type { Price } from '@drover/core/model/catalog';
import type { Lane } from './throttle.ts';
import { DroverError, UsageError } from '@drover/core/errors';
import type { Usage } from '@drover/protocol/messages';
import { NO_SPENDING, pricedUsage, sumSpent, type Spent } from '@drover/core/model/spending/spent';
import { NO_USAGE } from '@drover/core/model/spending/usage';

/** An answer of this length is rarely cut off; with less budget, a request waits for others to return some. */
const OUTPUT_TOKENS_ENOUGH = 4_096;

export type Spending = {
  readonly total: Spent;
  readonly tasks: ReadonlyMap<string, Spent>; // by id; only attempts that have spent anything
};

export const NOTHING_SPENT: Spending = { total: NO_SPENDING, tasks: new Map() };

/** The lane and the price of a model. */
export type ModelTerms = { readonly lane: Lane; readonly price?: Price };

export type PurseOptions = {
  readonly cap?: Cap;
  readonly taskCap?: Cap;
  /** By provider/name. A request that names no model uses the first one. */
  readonly models: ReadonlyMap<string, ModelTerms>;
  /** Spending of earlier processes. */
  readonly before: Spending;
  /** Shared by runs with the same cap, which together stay within it. */
  readonly pot?: Pot;
};

/** The reservation for one request. */
export type Claim = {
  readonly outputTokensMax: number;
  /** The worst-case usage. */
  readonly most: Usage;
  readonly mostCost?: number;
  readonly settle: (usage: Usage) => Settled;
};

/** `isExceeded`: the usage was above the worst case. */
type Settled = { readonly isExceeded: boolean; readonly requestCost?: number };

export type Balance = {
  readonly usage: Usage;
  readonly spent: number;
  readonly reserved: number;
  readonly cap?: Cap;
  readonly cost?: number;
};

export class Purse {
  readonly #options: PurseOptions;
  readonly #budget: Budget;
  readonly #tasks = new Map<string, Budget>();
  #total: Spent;
  #inputFactor = 1;
  #outputFactor = 1;

  constructor(options: PurseOptions) {
    const { cap, taskCap, models } = options;
    if (
      models.values().some(({ price }) => price === undefined) &&
      [cap, taskCap].some((one) => one !== undefined && 'usd' in one)
    ) {
      throw new UsageError('the price of the model is not known: set it in your config, or give the budget in tokens');
    }
    this.#options = options;
    this.#budget = new Budget(options.cap, undefined, options.pot);
    this.#budget.spend(options.before.total);
    this.#total = options.before.total;
  }

  get balance(): Balance {
    const { cap } = this.#options;
    return {
      ...this.#total,
      spent: this.#budget.spent,
      reserved: this.#budget.reserved,
      ...(cap !== undefined && { cap }),
    };
  }

  /** Returns undefined if another request may still return enough budget. Throws if none can. */
  claim(wanted: Wanted, task: string | undefined): Claim | undefined {
    const inputTokens = Math.ceil(wanted.inputTokens * this.#inputFactor);
    const outputTokens = Math.ceil(wanted.outputTokensMax * this.#outputFactor);
    const { price } = admissionTermsOfModel(this.#options, wanted);
    const ofTask = this.#ofTask(task)?.reserve(inputTokens, outputTokens, price);
    if (task !== undefined && this.#options.taskCap !== undefined && ofTask === undefined) throw taskOverBudget(task);
    const mayGet = ofTask?.outputTokensMax ?? outputTokens;
    const isHeld = this.#budget.open > 0;
    const ofRun = this.#budget.reserve(inputTokens, mayGet, price);
    if (ofRun !== undefined && (!isHeld || ofRun.outputTokensMax >= Math.min(mayGet, OUTPUT_TOKENS_ENOUGH))) {
      return this.#hold({ inputTokens, price }, ofTask === undefined ? [ofRun] : [ofRun, ofTask]);
    }
    ofRun?.settle(NO_USAGE);
    ofTask?.settle(NO_USAGE);
    if (!isHeld) throw overBudget();
    return undefined;
  }

  #hold({ inputTokens, price }: Priced, reservations: readonly Reservation[]): Claim {
    const outputTokens = Math.min(...reservations.map(({ outputTokensMax }) => outputTokensMax));
    const outputTokensMax = Math.max(1, Math.floor(outputTokens / this.#outputFactor));
    const most = pricedUsage({ ...worstCaseSpending(inputTokens, outputTokens, price), estimated: true }, price);
    let isOpen = true;
    return {
      outputTokensMax,
      most: most.usage,
      ...(most.cost !== undefined && { mostCost: most.cost }),
      settle: (usage) => {
        if (!isOpen) return { isExceeded: false };
        isOpen = false;
        for (const { settle } of reservations) settle(usage);
        const request = pricedUsage(usage, price);
        this.#total = sumSpent(this.#total, request);
        const isExceeded = this.#learn(usage, inputTokens, outputTokens);
        return { isExceeded, ...(request.cost !== undefined && { requestCost: request.cost }) };
      },
    };
  }

  /** The usage was above the reservation, so later reservations are larger. */
  #learn({ input, cacheRead, cacheWrite, output }: Usage, inputTokens: number, outputTokens: number): boolean {
    const excess = [(input + cacheRead + cacheWrite) / Math.max(1, inputTokens), output / Math.max(1, outputTokens)];
    this.#inputFactor *= Math.max(1, excess[0] ?? 1);
    this.#outputFactor *= Math.max(1, excess[1] ?? 1);
    return excess.some((factor) => factor > 1);
  }

  #ofTask(task: string | undefined): Budget | undefined {
    const { taskCap, before } = this.#options;
    if (task === undefined || taskCap === undefined) return undefined;
    const budget = this.#tasks.get(task) ?? raiseRunBudget(taskCap, before.tasks.get(task) ?? NO_SPENDING);
    this.#tasks.set(task, budget);
    return budget;
  }
}

type Priced = { readonly inputTokens: number; readonly price: Price | undefined };

/** Returns the lane and the price of the model that a request is for. */
export function admissionTermsOfModel({ models }: Pick<PurseOptions, 'models'>, { model }: Wanted): ModelTerms {
  const [terms] = model === undefined ? models.values() : [models.get(model)];
  if (terms === undefined) throw new Error(`a request for ${model ?? 'a model'}, which the run has not opened`);
  return terms;
}

function raiseRunBudget(cap: Cap | undefined, spent: Spent): Budget {
  const budget = new Budget(cap, undefined);
  // Records the usage even if it is above the cap, because it is spent.
  budget.spend(spent);
  return budget;
}

function taskOverBudget(task: string): DroverError {
  const message = `task ${task} has used up what one task may spend`;
  return new DroverError({ kind: 'limit.reached', limit: 'budget', message });
}
