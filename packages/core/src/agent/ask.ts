// One answer from the model: asks, shows what arrives, and asks again where that can help.
//
// A failed attempt never leaves anything behind but its cost: if some of it had been shown,
// `attempt_discarded` tells views to take it back, and its calls are not run.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Event } from '../events.ts';
import { describe, DroverError, type Failure } from '../failure.ts';
import type { Admission, Admitted, Seen } from '../model/admission.ts';
import type { AnswerNotes, AssistantMessage, ModelEvent, ModelRequest, Provider, Usage } from '../model/protocol.ts';
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
    const { answer, failure } = await tryOnce(asking, admitted, signal);
    if (answer !== undefined) return answer;
    if (signal.aborted) throw new DroverError(failureOf(signal));

    const delayMs = retryDelayMs(failure, attempt, asking.retry, Math.random());
    const wallMs = performance.now() - begun - waitedMs + (delayMs ?? 0);
    const isOver = attempt >= asking.retry.attemptsMax || asking.patience.left <= 0 || wallMs > asking.retry.wallMsMax;
    if (delayMs === undefined || isOver) throw new DroverError(failure);
    asking.emit({ type: 'retry', attempt, delayMs: Math.round(delayMs), failure, reason: describe(failure) });
    await sleep(delayMs, undefined, { signal }).catch((error: unknown) => {
      throw signal.aborted ? new DroverError(failureOf(signal)) : error;
    });
  }
}

type Attempt =
  | { readonly answer: Answer; readonly failure?: never }
  | { readonly answer?: never; readonly failure: Failure };

async function tryOnce(asking: Asking, admitted: Admitted, signal: AbortSignal): Promise<Attempt> {
  const settle = (usage: Usage, seen: Seen) => {
    admitted.settle(usage, seen);
    return asking.spend(usage);
  };
  const shown = { started: false, characters: 0, usage: NOTHING_USED };
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
    settle(usage, { failure });
    if (shown.started) asking.emit({ type: 'attempt_discarded', reason: describe(failure), failure, usage });
    return { failure };
  }
}

type ShownSoFar = { started: boolean; characters: number; usage: Usage };

function show(event: Exclude<ModelEvent, { type: 'finished' }>, shown: ShownSoFar, emit: (event: Event) => void): void {
  if (event.type === 'started') {
    shown.usage = event.usage ?? NOTHING_USED;
    return;
  }
  // Only with the first content, so that an attempt that failed before it needs no taking back.
  if (!shown.started) emit({ type: 'message_start', role: 'assistant' });
  shown.started = true;
  if ('delta' in event) shown.characters += event.delta.length;
  emit(event);
}

const NOTHING_USED: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

// The provider charges for what it produced, and did not live to say how much that was.
function usageOfFailed(shown: ShownSoFar, inputTokens: number): Usage {
  if (!shown.started) return shown.usage;
  const output = Math.max(shown.usage.output, Math.ceil(shown.characters / 4));
  const told = shown.usage.input + shown.usage.cacheRead + shown.usage.cacheWrite > 0;
  return { ...shown.usage, input: told ? shown.usage.input : inputTokens, output, estimated: true };
}
