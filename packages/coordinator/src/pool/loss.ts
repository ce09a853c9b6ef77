// The open ends of an attempt: calls, questions, a half answer, leave to send a request. They are followed here so
// that they can be closed when the thread is gone.
//
// Everything that an attempt tells passes here. If it cannot tell its own end any more, `end` tells it, in the order in
// which the worker itself would have: open ends first, then the turn and the session. `cut` closes only the request, for
// an attempt that resumes elsewhere.

import { failureOf } from '@drover/core/agent/limits';
import type { CallLabel, Event } from '@drover/protocol/events';
import { describe, type Failure } from '@drover/protocol/failures';
import type { Admitted, Wanted } from '@drover/core/model/spending/admission';
import { isCutOff } from '@drover/core/model/partial-answer';
import { NO_SPENDING, priced, spentIn, sumSpent, type Spent } from '@drover/core/model/spending/spent';
import type { Message, Usage } from '@drover/protocol/messages';
import { failedTurn, type TaskOutcome } from '@drover/protocol/outcomes';
import type { TaskLink } from '@drover/core/task/link';
import { ownMessages, summaryIn } from '@drover/core/task/summary';
import type { TaskSpec } from '@drover/core/task/task';
import { outputSummary } from '@drover/core/tools/summary';

const CHARS_PER_TOKEN = 4;

type Step = Parameters<TaskLink['emit']>[1];
type OpenRequest = { readonly wanted: Wanted; readonly admitted: Admitted };
type Requested = Extract<Event, { type: 'permission_request' }>;

export class Unfinished {
  readonly link: TaskLink;
  readonly #spec: TaskSpec;
  readonly #calls = new Map<string, CallLabel>(); // by callId
  readonly #requested = new Map<string, Requested>(); // by requestId
  readonly #tickets = new Set<OpenRequest>();
  readonly #messages: Message[] = [];
  #step: Step | undefined; // undefined while nothing was told
  #spent = NO_SPENDING; // since it was begun, or resumed
  #total: Spent;
  #answers: number;
  #isAnswering = false;
  #shownChars = 0; // of the answer that is arriving
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
      admission: { admit: async (wanted, signal) => this.#held(wanted, await link.admission.admit(wanted, signal)) },
    };
  }

  /** The calls that run. */
  get calls(): readonly string[] {
    return [...this.#calls.keys()];
  }

  /** Tells the end that the attempt did not live to tell. */
  end(failure: Failure, signal: AbortSignal): TaskOutcome {
    if (this.#step !== undefined && !this.#isSessionEnded) this.#endSession(failure, this.#step);
    const before = ownMessages(this.#spec.past?.messages ?? [], this.#spec.seed.length);
    return {
      status: signal.aborted && failure.kind === failureOf(signal).kind ? 'cancelled' : 'failed',
      failure,
      summary: summaryIn([...before, ...this.#messages]),
      ...this.#total,
      refused: [],
    };
  }

  /** The attempt goes on elsewhere: an answer that was arriving is taken back, and its request charged. */
  cut(failure: Failure): void {
    const step = this.#step;
    if (step === undefined) return;
    const emit = (event: Event) => this.link.emit(event, step);
    for (const ticket of this.#tickets) this.#settle(ticket, failure, emit);
    this.#tickets.clear();
    if (this.#isAnswering) emit({ type: 'attempt_discarded', reason: describe(failure), failure });
  }

  #held(wanted: Wanted, admitted: Admitted): Admitted {
    const ticket = { wanted, admitted };
    this.#tickets.add(ticket);
    this.#shownChars = 0;
    return {
      ...admitted,
      settle: (usage, seen) => {
        this.#tickets.delete(ticket);
        admitted.settle(usage, seen);
      },
    };
  }

  #follow(event: Event): void {
    if ('delta' in event) this.#shownChars += event.delta.length;
    switch (event.type) {
      case 'tool_execution_start':
        this.#calls.set(event.callId, labelIn(event));
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
        if (event.message.role === 'assistant' && !isCutOff(event.message)) this.#answers += 1;
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
    for (const ticket of this.#tickets) this.#settle(ticket, failure, emit);
    if (this.#isAnswering) emit({ type: 'attempt_discarded', reason, failure });
    for (const { type: _, subject: _subject, why: _why, ...request } of this.#requested.values())
      emit({ type: 'permission_decision', allowed: false, by: 'cancel', always: false, reason, ...request });
    const output = `UNCERTAIN: ${reason} while this ran, so it may or may not have taken effect.`;
    for (const label of this.#calls.values())
      emit({ type: 'tool_execution_end', output, outputSummary: outputSummary(output), isError: true, ...label });

    const outcome = failedTurn(failure, this.#answers > 0);
    if (!this.#isTurnEnded)
      emit('failure' in outcome ? { type: outcome.status, failure, reason } : { type: 'cancelled' });
    emit({ type: 'session_end', outcome: outcome.status, reason, messages: this.#messages, ...this.#spent });
  }

  // The provider charges for the request, and for what of its answer had arrived.
  #settle({ wanted, admitted }: OpenRequest, failure: Failure, emit: (event: Event) => void): void {
    const output = Math.min(admitted.outputTokensMax, Math.ceil(this.#shownChars / CHARS_PER_TOKEN));
    const usage: Usage = { input: wanted.inputTokens, output, cacheRead: 0, cacheWrite: 0, estimated: true };
    admitted.settle(usage, { failure });
    const request = priced(usage, this.#spec.model.price);
    const { usage: total, cost } = sumSpent(this.#total, request);
    const requestCost = request.cost === undefined ? {} : { requestCost: request.cost };
    emit({ type: 'usage', usage, total, ...(cost !== undefined && { cost }), ...requestCost });
  }
}

function labelIn({ callId, toolUseId, callIndex, index, name, summary }: CallLabel): CallLabel {
  return { callId, toolUseId, callIndex, index, name, summary };
}
