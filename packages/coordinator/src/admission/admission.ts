// Admission of requests: one throttle and one budget for all agents of a run.
//
// A request is sent when the throttle admits it and its worst case is reserved, both at the same moment. Until then it
// holds nothing (throttle.ts). If the budget is exhausted, the caller learns it at once, before any wait for the
// provider.
//
// Cut-off requests: after an interrupt, a deadline or the loss of a worker, the provider never reports the usage. The
// answer may have been complete, so a budget counts the whole reservation as spent, marked as an estimate. With a cap,
// each request is journaled before it is sent, so this also holds for a run that is killed and resumed (spending.ts).

import type { Event, Place } from '@drover/protocol/events';
import { DroverError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import {
  type Admission,
  type Admitted,
  CUT_OFF,
  isSpendingCutOff,
  type Seen,
  type Wanted,
} from '@drover/core/model/spending/admission';
import type { Usage } from '@drover/protocol/messages';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import { Purse, admissionTermsOfModel, type Balance, type Claim, type PurseOptions } from './purse.ts';
import type { Lane, Ticket } from './throttle.ts';

export type RunAdmissionOptions = PurseOptions & {
  readonly emit: (event: Event, place: Place) => void;
  /** Resolves when the emitted events are durable. */
  readonly settled: () => Promise<void>;
};

/** The admission of the coordinator, or of one attempt at a task. */
export type PlaceAdmission = Admission & {
  /** Closes the admission of a lost worker: waiting requests are cancelled, and those in flight are charged. */
  readonly abandon: () => void;
};

const LOST: Failure = { kind: 'worker.lost', message: 'it ended while it waited for leave to send a request' };
const EXCEEDED =
  'the provider counted more tokens than it should have for a request; from now on more is reserved, but the budget may be passed by that much';

export class RunAdmission {
  readonly #options: RunAdmissionOptions;
  readonly #purse: Purse;
  #isWarned = false;
  #isCutOffTold = false;

  constructor(options: RunAdmissionOptions) {
    this.#options = options;
    this.#purse = new Purse(options);
    for (const { retrying } of this.#lanes) options.pot?.retries.add(retrying);
  }

  get #lanes(): readonly Lane[] {
    return [...new Set(this.#options.models.values().map(({ lane }) => lane))];
  }

  get balance(): Balance {
    return this.#purse.balance;
  }

  admissionFor(place: Place): PlaceAdmission {
    const lost = new AbortController();
    const open = new Set<() => void>();
    return {
      admit: async (wanted, signal) => {
        const { claim, ticket } = await this.#enter(wanted, place, AbortSignal.any([signal, lost.signal]));
        await this.#writeDown(claim, place);
        // The caller cancelled just as the request was admitted: nothing was sent.
        if (lost.signal.aborted) {
          this.#settle({ claim, ticket, place }, NO_USAGE, { failure: LOST });
          throw new DroverError(LOST);
        }
        const settle = (usage: Usage, seen: Seen) => {
          if (!open.delete(abandon)) return;
          const isCharged = this.#isCapped && isSpendingCutOff(seen);
          if (isCharged) this.#tellCutOff();
          this.#settle({ claim, ticket, place }, isCharged ? claim.most : usage, seen);
        };
        const abandon = () => settle(claim.most, { failure: LOST });
        open.add(abandon);
        return { outputTokensMax: claim.outputTokensMax, began: ticket.began, settle } satisfies Admitted;
      },
      abandon: () => {
        lost.abort(new DroverError(LOST));
        for (const settle of open) settle();
      },
    };
  }

  async #enter(wanted: Wanted, place: Place, signal: AbortSignal): Promise<Passed> {
    this.#purse.claim(wanted, place.task)?.settle(NO_USAGE);
    let claim: Claim | undefined;
    const ticket = await admissionTermsOfModel(this.#options, wanted).lane.enter(
      {
        ...wanted,
        payer: this.#options.pot ?? this,
        claim: () => {
          claim = this.#purse.claim(wanted, place.task);
          return claim !== undefined;
        },
        onWait: (wait) => this.#options.emit({ type: 'throttle_wait', ...wait }, place),
      },
      signal,
    );
    if (claim === undefined) throw new Error('a request left its lane without money');
    return { claim, ticket };
  }

  // A resumed run must know what the killed process may have spent.
  async #writeDown({ most, mostCost }: Claim, place: Place): Promise<void> {
    const { emit, settled } = this.#options;
    if (!this.#isCapped) return;
    emit({ type: 'budget', ...this.#purse.balance, most, ...(mostCost !== undefined && { mostCost }) }, place);
    await settled();
  }

  get #isCapped(): boolean {
    return this.#options.cap !== undefined || this.#options.taskCap !== undefined;
  }

  #tellCutOff(): void {
    if (!this.#isCutOffTold) this.#options.emit({ type: 'warning', message: CUT_OFF }, {});
    this.#isCutOffTold = true;
  }

  #settle({ claim, ticket, place }: Passed & { readonly place: Place }, usage: Usage, seen: Seen): void {
    const { isExceeded, ...request } = claim.settle(usage);
    if (isExceeded && !this.#isWarned) this.#options.emit({ type: 'warning', message: EXCEEDED }, {});
    this.#isWarned ||= isExceeded;
    this.#options.emit({ type: 'budget', ...this.#purse.balance, ...request }, place);
    ticket.leave({ ...seen, usage });
    // Requests for other models, and runs with the same budget, may wait for it in other lanes.
    const lanes = this.#lanes.map(({ retrying }) => retrying);
    for (const retry of this.#options.pot?.retries ?? (lanes.length > 1 ? lanes : [])) retry();
  }
}

type Passed = { readonly claim: Claim; readonly ticket: Ticket };
