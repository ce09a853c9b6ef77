// The open ends of an attempt: calls, questions, a request under way. They are followed here so that they can be closed
// when the thread is gone.
//
// Everything that an attempt tells passes here. If it cannot tell its own end any more, `end` tells it, in the order in
// which the worker itself would have: open ends first, then the turn and the session.

import { turnFailureOfSignal } from '@drover/core/agent/limits';
import type { CallLabel, Event } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError } from '@drover/core/errors';
import { isModelAnswerCutOff } from '@drover/core/model/partial-answer';
import { NO_SPENDING, spentIn, sumSpent, type Spent } from '@drover/core/model/spending/spent';
import type { Message } from '@drover/protocol/messages';
import { failedTurnOutcome, type TaskOutcome } from '@drover/protocol/outcomes';
import type { TaskLink } from '@drover/core/task/link';
import { ownMessagesOfTask, taskSummaryIn } from '@drover/core/task/summary';
import type { TaskSpec } from '@drover/core/task/task';
import { toolOutputSummary } from '@drover/core/tools/summary';

type Step = Parameters<TaskLink['emit']>[1];
type Requested = Extract<Event, { type: 'permission_request' }>;

export class Unfinished {
  readonly link: TaskLink;
  readonly #spec: TaskSpec;
  readonly #calls = new Map<string, CallLabel>(); // by callId
  readonly #requested = new Map<string, Requested>(); // by requestId
  readonly #asks = new Set<Promise<unknown>>();
  readonly #over = new AbortController();
  readonly #messages: Message[] = [];
  #step: Step | undefined; // undefined while nothing was told
  #spent = NO_SPENDING; // since it was begun, or resumed
  #total: Spent;
  #answers: number;
  #isAnswering = false;
  #isTurnEnded = false;
  #isSessionEnded = false;

  constructor(spec: TaskSpec, link: TaskLink) {
    this.#spec = spec;
    this.#total = spec.past === undefined ? NO_SPENDING : spentIn(spec.past);
    this.#answers = spec.past?.answers ?? 0;
    this.link = {
      ...link,
      emit: (event, step) => {
        this.#step = step;
        this.#follow(event);
        link.emit(event, step);
      },
      ask: async (order, hooks, signal) => {
        const asked = link.ask(order, hooks, AbortSignal.any([signal, this.#over.signal]));
        this.#asks.add(asked);
        try {
          return await asked;
        } finally {
          this.#asks.delete(asked);
        }
      },
    };
  }

  /** The calls that run. */
  get calls(): readonly string[] {
    return [...this.#calls.keys()];
  }

  /** Tells the end that the attempt did not live to tell. */
  async end(failure: Failure, signal: AbortSignal): Promise<TaskOutcome> {
    // The provider charges for a request that is under way, and for what of its answer has arrived.
    this.#over.abort(new DroverError(failure));
    await Promise.allSettled(this.#asks);
    if (this.#step !== undefined && !this.#isSessionEnded) this.#endSession(failure, this.#step);
    const before = ownMessagesOfTask(this.#spec.past?.messages ?? [], this.#spec.seed.length);
    return {
      status: signal.aborted && failure.kind === turnFailureOfSignal(signal).kind ? 'cancelled' : 'failed',
      failure,
      summary: taskSummaryIn([...before, ...this.#messages]),
      ...this.#total,
      refused: [],
    };
  }

  #follow(event: Event): void {
    switch (event.type) {
      case 'tool_execution_start':
        this.#calls.set(event.callId, lostCallLabel(event));
        return;
      case 'tool_execution_end':
        this.#calls.delete(event.callId);
        return;
      case 'permission_request':
        this.#requested.set(event.requestId, event);
        return;
      case 'permission_decision':
        this.#requested.delete(event.requestId);
        return;
      case 'message_start':
        this.#isAnswering = event.role === 'assistant';
        return;
      case 'attempt_discarded':
        this.#isAnswering = false;
        return;
      case 'message_end':
        this.#isAnswering = false;
        if (event.kept === false) return;
        this.#messages.push(event.message);
        if (event.message.role === 'assistant' && !isModelAnswerCutOff(event.message)) this.#answers += 1;
        return;
      case 'usage':
        this.#spent = sumSpent(this.#spent, spentIn({ usage: event.usage, cost: event.requestCost }));
        this.#total = spentIn({ usage: event.total, cost: event.cost });
        return;
      case 'done':
      case 'incomplete':
      case 'error':
      case 'cancelled':
        this.#isTurnEnded = true;
        return;
      case 'session_end':
        this.#isSessionEnded = true;
    }
  }

  #endSession(failure: Failure, step: Step): void {
    const emit = (event: Event) => this.link.emit(event, step);
    const reason = describe(failure);
    if (this.#isAnswering) emit({ type: 'attempt_discarded', reason, failure });
    for (const { type: _, subject: _subject, why: _why, ...request } of this.#requested.values())
      emit({ type: 'permission_decision', allowed: false, by: 'cancel', always: false, reason, ...request });
    const output = `UNCERTAIN: ${reason} while this ran, so it may or may not have taken effect.`;
    for (const label of this.#calls.values())
      emit({ type: 'tool_execution_end', output, outputSummary: toolOutputSummary(output), isError: true, ...label });

    const outcome = failedTurnOutcome(failure, this.#answers > 0);
    if (!this.#isTurnEnded)
      emit('failure' in outcome ? { type: outcome.status, failure, reason } : { type: 'cancelled' });
    emit({ type: 'session_end', outcome: outcome.status, reason, messages: this.#messages, ...this.#spent });
  }
}

function lostCallLabel({ callId, toolUseId, callIndex, index, name, summary }: CallLabel): CallLabel {
  return { callId, toolUseId, callIndex, index, name, summary };
}
