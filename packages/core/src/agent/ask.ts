// One answer from the model: sends the request, emits the stream as events, and retries failures that may pass.
//
// Guarantees
//   1. Calls of a failed attempt are not run.
//   2. A retried attempt leaves only its cost: `attempt_discarded` tells views to remove its text.
//   3. If the caller passes `keep`, the partial text of the last attempt becomes a cut-off answer.

import { NO_USAGE } from '../model/spending/usage.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Event, Place } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError } from '../errors.ts';
import type { Admission, Admitted, Seen } from '../model/spending/admission.ts';
import type { AnswerNotes, ModelEvent, ModelRequest } from '@drover/protocol/model';
import type { AssistantMessage, Usage } from '@drover/protocol/messages';
import { ATTEMPTS_BEFORE_FALLBACK, isModelUnavailable, labelOfModel, type ModelRoute } from '../model/fallback.ts';
import { PartialAnswer } from '../model/partial-answer.ts';
import { modelRetryDelayMs, type RetryPolicy } from '../model/retry.ts';
import { iterateInGroups } from '../one-by-one.ts';
import type { Tally } from '../model/spending/tally.ts';
import { turnFailureOfSignal } from './limits.ts';

/** Progress of a request, for the agent that made it. */
export type AskNotes = {
  /** The request is about to be sent. */
  readonly admitted: () => void;
  /** The answer calls a tool with this name. */
  readonly calling: (name: string) => void;
  /** Any progress, which resets the idle clock. */
  readonly progress: () => void;
};

export type Asking = {
  readonly route: ModelRoute;
  readonly place: Pick<Place, 'turn' | 'step'>;
  readonly tally: Tally;
  readonly notes: AskNotes;
  readonly idleMs: number | undefined;
  readonly isShown: boolean; // views show the answer
  /** Another model is asked if this one is unavailable, so an unavailable model is retried less often. */
  readonly fallsBack: boolean;
  readonly request: (outputTokensMax: number) => ModelRequest;
  readonly inputTokens: number; // expected tokens
  readonly inputTokensMax: number; // upper bound, which the budget reserves
  readonly outputTokensMax: number;
  readonly admission: Admission;
  readonly retry: RetryPolicy;
  /** Attempts left for this answer, counted over all kinds of failure. */
  readonly patience: { left: number };
  readonly emit: (event: Event) => void;
  /** Records the usage of each attempt, failed ones included. Returns its cost in US dollars. */
  readonly spend: (usage: Usage) => number | undefined;
  /** Adds the usage of a request that another thread reported. Emits nothing. */
  readonly book: (usage: Usage) => void;
  /** Stores the partial text of the last attempt. If omitted, that text is discarded. */
  readonly keep?: (partial: Omit<Answer, 'notes'>) => void;
};

export type Answer = {
  readonly message: AssistantMessage;
  readonly notes: AnswerNotes;
  readonly cost: number | undefined; // US dollars; undefined if the price is unknown
};

/** Reads an answer, in this thread or over the link of a task. */
export type Ask = (asking: Asking, signal: AbortSignal) => Promise<Answer>;

type Requesting = Omit<Asking, 'place' | 'tally' | 'notes' | 'idleMs' | 'isShown' | 'book'>;

export async function askForAnswer(asking: Requesting, signal: AbortSignal): Promise<Answer> {
  const begun = performance.now();
  let waitedMs = 0; // time spent in admission; not part of the provider's time
  for (let attempt = 1; ; attempt++) {
    asking.patience.left -= 1;
    const asked = performance.now();
    const { inputTokens: inputTokensExpected, inputTokensMax: inputTokens, outputTokensMax } = asking;
    const wanted = { model: labelOfModel(asking.route), inputTokens, inputTokensExpected, outputTokensMax };
    const admitted = await asking.admission.admit(wanted, signal);
    waitedMs += performance.now() - asked;
    const { answer, failed } = await tryRequestOnce(asking, admitted, signal);
    if (answer !== undefined) return answer;

    const { failure } = failed;
    const delayMs = signal.aborted
      ? undefined
      : modelRetryDelayMs(failure, { attempt, random: Math.random() }, asking.retry);
    const wallMs = performance.now() - begun - waitedMs + (delayMs ?? 0);
    const attemptsMax = Math.min(attemptsFor(asking, failure), attempt + asking.patience.left);
    if (delayMs === undefined || attempt >= attemptsMax || wallMs > asking.retry.wallMsMax) {
      endRequestAttempt(asking, failed, signal);
      throw new DroverError(signal.aborted ? turnFailureOfSignal(signal) : failure);
    }
    discardAnswer(asking, failed);
    const reason = describe(failure);
    const retries = { retry: attempt, retriesMax: attemptsMax - 1 };
    asking.emit({ type: 'retry', ...retries, delayMs: Math.round(delayMs), failure, reason });
    await sleep(delayMs, undefined, { signal }).catch((error: unknown) => {
      throw signal.aborted ? new DroverError(turnFailureOfSignal(signal)) : error;
    });
  }
}

function attemptsFor(asking: Requesting, failure: Failure): number {
  const { attemptsMax: most } = asking.retry;
  return isAnotherModelAsked(asking, failure) ? Math.min(most, ATTEMPTS_BEFORE_FALLBACK) : most;
}

function isAnotherModelAsked({ fallsBack }: Requesting, failure: Failure): boolean {
  return fallsBack && isModelUnavailable(failure);
}

type Attempt =
  | { readonly answer: Answer; readonly failed?: never }
  | { readonly answer?: never; readonly failed: FailedAttempt };

type FailedAttempt = {
  readonly failure: Failure;
  readonly shown: ShownSoFar;
  readonly usage: Usage;
  readonly cost: number | undefined;
};

async function tryRequestOnce(asking: Requesting, admitted: Admitted, signal: AbortSignal): Promise<Attempt> {
  const settle = (reported: Usage, seen: Seen) => {
    const usage = admitted.charged?.(reported, seen) ?? reported;
    admitted.settle(usage, seen);
    return asking.spend(usage);
  };
  const shown: ShownSoFar = { started: false, partial: new PartialAnswer(), usage: NO_USAGE };
  try {
    // Read groups: events that arrived together need no await between them.
    for await (const group of iterateInGroups(
      asking.route.provider.stream(asking.request(admitted.outputTokensMax), signal),
    )) {
      for (const event of group) {
        if (event.type === 'finished') {
          if (!shown.started) asking.emit({ type: 'message_start', role: 'assistant' });
          const { message, notes } = event;
          const cost = settle(message.usage, { headers: notes.headers });
          return { answer: { message, notes, cost } };
        }
        if (event.type === 'started') admitted.began?.(event.headers ?? {});
        showModelEvent(event, shown, asking.emit);
      }
    }
    throw new Error('a provider ended its stream without `finished`');
  } catch (error) {
    if (!(error instanceof DroverError) && !signal.aborted) throw error;
    const usage = usageOfFailedRequest(shown, asking.inputTokens);
    const failure = error instanceof DroverError ? error.failure : turnFailureOfSignal(signal);
    const cost = settle(usage, { failure });
    return { failed: { failure, shown, usage, cost } };
  }
}

/** Ends the last attempt. It is discarded if the caller asks again: after a compaction, or another model. */
function endRequestAttempt(asking: Requesting, failed: FailedAttempt, signal: AbortSignal): void {
  const { failure, shown, usage, cost } = failed;
  const isAskedAgain = failure.kind === 'context.overflow' || isAnotherModelAsked(asking, failure);
  if (asking.keep === undefined || !shown.partial.hasText || isAskedAgain) return discardAnswer(asking, failed);
  shown.partial.endings().forEach(asking.emit);
  asking.keep({ message: shown.partial.message(signal.aborted ? 'aborted' : 'error', usage), cost });
}

function discardAnswer({ emit }: Requesting, { failure, shown, usage }: FailedAttempt): void {
  if (shown.started) emit({ type: 'attempt_discarded', reason: describe(failure), failure, usage });
}

type ShownSoFar = { started: boolean; readonly partial: PartialAnswer; usage: Usage };

function showModelEvent(
  event: Exclude<ModelEvent, { type: 'finished' }>,
  shown: ShownSoFar,
  emit: (event: Event) => void,
): void {
  if (event.type === 'started') {
    shown.usage = event.usage ?? NO_USAGE;
    return;
  }
  // Emit the start with the first content: an attempt that fails earlier has nothing to discard.
  if (!shown.started) emit({ type: 'message_start', role: 'assistant' });
  shown.started = true;
  shown.partial.take(event);
  emit(event);
}

// The provider charges for a failed stream without reporting its usage, so estimate it from the text.
function usageOfFailedRequest(shown: ShownSoFar, inputTokens: number): Usage {
  if (!shown.started) return shown.usage;
  const output = Math.max(shown.usage.output, Math.ceil(shown.partial.characters / 4));
  const told = shown.usage.input + shown.usage.cacheRead + shown.usage.cacheWrite > 0;
  return { ...shown.usage, input: told ? shown.usage.input : inputTokens, output, estimated: true };
}
