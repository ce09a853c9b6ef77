// One answer from the model: asks, shows what arrives, and asks again where that can help.
//
// Guarantees
//   1. Calls of a failed attempt are not run.
//   2. An attempt that is followed by another leaves only its cost: `attempt_discarded` tells views to take
//      back what was shown of it.
//   3. The last attempt's text is kept as an answer that was cut off, where the caller wants that.

import { NO_USAGE } from '../model/spending/usage.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Event } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError } from '../errors.ts';
import type { Admission, Admitted, Seen } from '../model/spending/admission.ts';
import type { AnswerNotes, ModelEvent, ModelRequest } from '@drover/protocol/model';
import type { AssistantMessage, Usage } from '@drover/protocol/messages';
import type { Provider } from '../model/provider.ts';
import { PartialAnswer } from '../model/partial-answer.ts';
import { retryDelayMs, type RetryPolicy } from '../model/retry.ts';
import { inGroups } from '../one-by-one.ts';
import { failureOf } from './limits.ts';

export type Asking = {
  readonly provider: Provider;
  readonly request: (outputTokensMax: number) => ModelRequest;
  readonly inputTokens: number; // expected
  readonly inputTokensMax: number; // a budget must hold
  readonly outputTokensMax: number;
  readonly admission: Admission;
  readonly retry: RetryPolicy;
  /** How many attempts are left for this answer, whatever they fail of. */
  readonly patience: { left: number };
  readonly emit: (event: Event) => void;
  /** Every attempt's usage, also of those that failed. Returns its dollars. */
  readonly spend: (usage: Usage) => number | undefined;
  /** Takes the text of an answer that was cut off and isn't asked for again; without it, such text is discarded. */
  readonly keep?: (partial: Omit<Answer, 'notes'>) => void;
};

export type Answer = {
  readonly message: AssistantMessage;
  readonly notes: AnswerNotes;
  readonly cost: number | undefined; // US dollars; undefined where the price is unknown
};

export async function ask(asking: Asking, signal: AbortSignal): Promise<Answer> {
  const begun = performance.now();
  let waitedMs = 0; // for leave: that is no time of the provider's
  for (let attempt = 1; ; attempt++) {
    asking.patience.left -= 1;
    const asked = performance.now();
    const { inputTokens: inputTokensExpected, inputTokensMax: inputTokens, outputTokensMax } = asking;
    const admitted = await asking.admission.admit({ inputTokens, inputTokensExpected, outputTokensMax }, signal);
    waitedMs += performance.now() - asked;
    const { answer, failed } = await tryOnce(asking, admitted, signal);
    if (answer !== undefined) return answer;

    const { failure } = failed;
    const delayMs = signal.aborted ? undefined : retryDelayMs(failure, attempt, asking.retry, Math.random());
    const wallMs = performance.now() - begun - waitedMs + (delayMs ?? 0);
    const isOver = attempt >= asking.retry.attemptsMax || asking.patience.left <= 0 || wallMs > asking.retry.wallMsMax;
    if (delayMs === undefined || isOver) {
      endAttempt(asking, failed, signal);
      throw new DroverError(signal.aborted ? failureOf(signal) : failure);
    }
    discard(asking, failed);
    asking.emit({ type: 'retry', attempt, delayMs: Math.round(delayMs), failure, reason: describe(failure) });
    await sleep(delayMs, undefined, { signal }).catch((error: unknown) => {
      throw signal.aborted ? new DroverError(failureOf(signal)) : error;
    });
  }
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

async function tryOnce(asking: Asking, admitted: Admitted, signal: AbortSignal): Promise<Attempt> {
  const settle = (usage: Usage, seen: Seen) => {
    admitted.settle(usage, seen);
    return asking.spend(usage);
  };
  const shown: ShownSoFar = { started: false, partial: new PartialAnswer(), usage: NO_USAGE };
  try {
    // Nothing is waited for between what came together.
    for await (const group of inGroups(asking.provider.stream(asking.request(admitted.outputTokensMax), signal))) {
      for (const event of group) {
        if (event.type === 'finished') {
          if (!shown.started) asking.emit({ type: 'message_start', role: 'assistant' });
          const { message, notes } = event;
          const cost = settle(message.usage, { headers: notes.headers });
          return { answer: { message, notes, cost } };
        }
        if (event.type === 'started') admitted.began?.(event.headers ?? {});
        show(event, shown, asking.emit);
      }
    }
    throw new Error('a provider ended its stream without `finished`');
  } catch (error) {
    if (!(error instanceof DroverError) && !signal.aborted) throw error;
    const usage = usageOfFailed(shown, asking.inputTokens);
    const failure = error instanceof DroverError ? error.failure : failureOf(signal);
    const cost = settle(usage, { failure });
    return { failed: { failure, shown, usage, cost } };
  }
}

/** No other attempt follows here. A prompt that was too long is shortened and asked again, so its text doesn't count. */
function endAttempt(asking: Asking, failed: FailedAttempt, signal: AbortSignal): void {
  const { failure, shown, usage, cost } = failed;
  if (asking.keep === undefined || !shown.partial.hasText || failure.kind === 'context.overflow')
    return discard(asking, failed);
  shown.partial.endings().forEach(asking.emit);
  asking.keep({ message: shown.partial.message(signal.aborted ? 'aborted' : 'error', usage), cost });
}

function discard({ emit }: Asking, { failure, shown, usage }: FailedAttempt): void {
  if (shown.started) emit({ type: 'attempt_discarded', reason: describe(failure), failure, usage });
}

type ShownSoFar = { started: boolean; readonly partial: PartialAnswer; usage: Usage };

function show(event: Exclude<ModelEvent, { type: 'finished' }>, shown: ShownSoFar, emit: (event: Event) => void): void {
  if (event.type === 'started') {
    shown.usage = event.usage ?? NO_USAGE;
    return;
  }
  // Only with the first content, so that an attempt that failed before it needs no taking back.
  if (!shown.started) emit({ type: 'message_start', role: 'assistant' });
  shown.started = true;
  shown.partial.take(event);
  emit(event);
}

// The provider charges for what it produced, and did not live to say how much that was.
function usageOfFailed(shown: ShownSoFar, inputTokens: number): Usage {
  if (!shown.started) return shown.usage;
  const output = Math.max(shown.usage.output, Math.ceil(shown.partial.characters / 4));
  const told = shown.usage.input + shown.usage.cacheRead + shown.usage.cacheWrite > 0;
  return { ...shown.usage, input: told ? shown.usage.input : inputTokens, output, estimated: true };
}
