// Held answer: the answer that a place had asked for and not told yet when it was lost.
//
// Guarantees
//   1. The answer that was under way arrives whole, or fails, whether a place waits for it or not.
//   2. The next place gets it for the same request, once, without another request to the provider. The history of an
//      attempt decides its next request, so the model and the number of messages tell whether it is the same.
//   3. If the next place asks for something else, what was shown of the answer is taken back.

import type { Event } from '@drover/protocol/events';
import type { AskHooks, AskOrder, AskResult } from '@drover/core/task/asking';
import type { TaskLink } from '@drover/core/task/link';
import { bestEffort } from '@drover/core/promises';

const TAKEN_BACK = 'its worker lost its thread, and asked for another answer then';

type Ask = { readonly order: AskOrder; readonly result: Promise<AskResult>; isOver: boolean };

export class HeldAnswer {
  readonly link: TaskLink;
  readonly #below: TaskLink;
  readonly #signal: AbortSignal; // of the attempt: a lost place cannot withdraw its request
  #last: Ask | undefined; // the last request, until the place has told what came of it
  #held: Ask | undefined;

  constructor(below: TaskLink, signal: AbortSignal) {
    this.#below = below;
    this.#signal = signal;
    this.link = {
      ...below,
      emit: (event, place) => {
        // Before it is over, the run itself discards attempts at it.
        if (this.#last?.isOver === true && endsHeldAnswer(event)) this.#last = undefined;
        below.emit(event, place);
      },
      ask: (...asked) => this.#ask(...asked),
    };
  }

  /** Waits for the answer that is under way, and holds it. Returns its step; undefined if there is none. */
  async hold(): Promise<number | undefined> {
    this.#held = this.#last ?? this.#held;
    this.#last = undefined;
    await (this.#held && bestEffort(this.#held.result));
    return this.#held?.order.place.step;
  }

  async #ask(order: AskOrder, hooks: AskHooks, signal: AbortSignal): Promise<AskResult> {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined && isSameHeldRequest(held.order, order)) {
      this.#last = held;
      // Its usage is in the history with which this place began.
      return { ...(await held.result), charges: [] };
    }
    if (held?.order.isShown === true && 'answer' in (await held.result))
      this.#below.emit({ type: 'attempt_discarded', reason: TAKEN_BACK }, held.order.place);
    const result = this.#below.ask(order, hooks, AbortSignal.any([signal, this.#signal]));
    const last = { order, result, isOver: false };
    this.#last = last;
    try {
      return await result;
    } finally {
      last.isOver = true;
    }
  }
}

/** The place has dealt with its last answer. */
function endsHeldAnswer(event: Event): boolean {
  if (event.type === 'attempt_discarded' || event.type === 'compaction_end') return true;
  return event.type === 'message_end' && event.message.role === 'assistant';
}

function isSameHeldRequest(a: AskOrder, b: AskOrder): boolean {
  const [one, other] = [a.request, b.request];
  return a.model === b.model && one.cacheKey === other.cacheKey && one.messages.length === other.messages.length;
}
