// Requests of a task, made by its run: the task sends a request as data, and gets the whole answer back.
//
// The run reads the provider's bytes, so it shows the answer, retries it and tells its cost where it arrives. None of
// that passes through the thread of the task. So an answer is not lost with the thread either: see attempt/moving.ts.

import { type Event, EVENTS } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { ModelRequest } from '@drover/protocol/model';
import type { Usage } from '@drover/protocol/messages';
import { type Answer, askForAnswer, type Ask, type Asking, type AskNotes } from '../agent/ask.ts';
import { withoutIdleLimit } from '../agent/limits.ts';
import { DroverError } from '../errors.ts';
import { labelOfModel, type ModelRoute } from '../model/fallback.ts';
import type { Admission } from '../model/spending/admission.ts';
import type { Spent } from '../model/spending/spent.ts';
import { chargeToTally, type Tally } from '../model/spending/tally.ts';

/** A request as data. The run sets its output limit when it is admitted. */
export type AskOrder = Pick<
  Asking,
  'place' | 'idleMs' | 'isShown' | 'fallsBack' | 'inputTokens' | 'inputTokensMax' | 'outputTokensMax' | 'retry'
> & {
  readonly model: string; // provider/name
  readonly request: ModelRequest;
  readonly tally: Tally;
  readonly patience: number; // attempts left for this answer
  readonly keepsPartial: boolean;
};

/** The result of a request. */
export type AskResult = {
  readonly patience: number;
  /** The usage of each attempt. The run has told them. */
  readonly charges: readonly Usage[];
  readonly total: Spent; // of the task, with this request
} & ({ readonly answer: Answer } | { readonly failure: Failure; readonly partial?: Omit<Answer, 'notes'> });

export type AskHooks = AskNotes & { readonly emit: (event: Event) => void };

/** The task's side: takes answers from its run. */
export function askRunOverLink(link: {
  readonly ask: (order: AskOrder, hooks: AskHooks, signal: AbortSignal) => Promise<AskResult>;
  readonly emit: (event: Event, place: Asking['place']) => void;
}): Ask {
  return async (asking, signal) => {
    const hooks = { ...asking.notes, emit: (event: Event) => link.emit(event, asking.place) };
    const asked = await link.ask(askOrderOfTask(asking), hooks, signal);
    asking.patience.left = asked.patience;
    asked.charges.forEach(asking.book);
    if ('answer' in asked) return asked.answer;
    if (asked.partial !== undefined) asking.keep?.(asked.partial);
    throw new DroverError(asked.failure);
  };
}

function askOrderOfTask(asking: Asking): AskOrder {
  const { place, idleMs, isShown, fallsBack, inputTokens, inputTokensMax, outputTokensMax, retry, tally } = asking;
  return {
    place,
    idleMs,
    isShown,
    fallsBack,
    inputTokens,
    inputTokensMax,
    outputTokensMax,
    retry,
    tally,
    model: labelOfModel(asking.route),
    request: asking.request(outputTokensMax),
    patience: asking.patience.left,
    keepsPartial: asking.keep !== undefined,
  };
}

/** The run's side: makes a request. */
export async function askForTaskHere(
  order: AskOrder,
  { route, admission, hooks }: { readonly route: ModelRoute; readonly admission: Admission; readonly hooks: AskHooks },
  signal: AbortSignal,
): Promise<AskResult> {
  const charges: Usage[] = [];
  const patience = { left: order.patience };
  const kept: { partial?: Omit<Answer, 'notes'> } = {};
  let { tally } = order;
  const told = (event: Event) => {
    if (event.type === 'toolcall_start') hooks.calling(event.name);
    if (EVENTS[event.type].progress) hooks.progress();
    hooks.emit(event);
  };
  const requesting = {
    ...order,
    route,
    request: (outputTokensMax: number) => ({ ...order.request, outputTokensMax }),
    admission: announceTaskRequest(withoutIdleLimit(admission, hooks.progress), hooks.admitted),
    patience,
    emit: order.isShown ? told : () => undefined,
    spend: (usage: Usage) => {
      const charge = chargeToTally(tally, usage, route.price);
      ({ tally } = charge);
      charges.push(usage);
      hooks.emit(charge.event);
      return charge.cost;
    },
    ...(order.keepsPartial && { keep: (partial: Omit<Answer, 'notes'>) => void (kept.partial = partial) }),
  };
  try {
    const answer = await askForAnswer(requesting, signal);
    return { answer, charges, total: tally.total, patience: patience.left };
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    return { failure: error.failure, ...kept, charges, total: tally.total, patience: patience.left };
  }
}

function announceTaskRequest({ admit }: Admission, onAdmitted: () => void): Admission {
  return {
    admit: async (wanted, signal) => {
      const admitted = await admit(wanted, signal);
      onAdmitted();
      return admitted;
    },
  };
}
