// What an attempt has begun and not ended, so that somebody else can end it where its thread is gone.
//
// Everything that an attempt tells passes here. Where it can't tell its own end any more, `end` does: what it
// had open is closed (calls, questions, a half answer, leave to send a request), then the turn and the
// session, in the order in which the worker itself would have told it.

import { failureOf } from '@drover/core/agent/limits';
import type { CallLabel, Event } from '@drover/core/events';
import { describe, type Failure } from '@drover/core/failure';
import type { Admitted, Wanted } from '@drover/core/model/admission';
import { sumUsage } from '@drover/core/model/usage';
import { costOf } from '@drover/core/model/catalog';
import type { Message, Usage } from '@drover/core/model/protocol';
import { failedTurn } from '@drover/core/outcome';
import type { TaskLink } from '@drover/core/task/link';
import { summaryIn } from '@drover/core/task/summary';
import type { TaskOutcome, TaskSpec } from '@drover/core/task/task';
import { outputSummary } from '@drover/core/tools/summary';

const CHARS_PER_TOKEN = 4;
const NOTHING: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

type Step = Parameters<TaskLink['emit']>[1];
type Ticket = { readonly wanted: Wanted; readonly admitted: Admitted };
type Requested = Extract<Event, { type: 'permission_request' }>;

export class Unfinished {
  readonly link: TaskLink;
  readonly #spec: TaskSpec;
  readonly #calls = new Map<string, CallLabel>(); // by callId
  readonly #requested = new Map<string, Requested>(); // by requestId
  readonly #tickets = new Set<Ticket>();
  readonly #messages: Message[] = [];
  #step: Step | undefined; // undefined while nothing was told
  #spent: Usage = NOTHING; // since it was begun, or gone on with
  #total: Usage;
  #answers: number;
  #isAnswering = false;
  #shownChars = 0; // of the answer that is arriving
  #isTurnEnded = false;
  #isSessionEnded = false;

  constructor(spec: TaskSpec, link: TaskLink) {
    this.#spec = spec;
    this.#total = spec.past?.usage ?? NOTHING;
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
    const { price } = this.#spec.model;
    const before = this.#spec.past?.messages.slice(this.#spec.seed.length) ?? [];
    return {
      status: signal.aborted && failure.kind === failureOf(signal).kind ? 'cancelled' : 'failed',
      failure,
      summary: summaryIn([...before, ...this.#messages]),
      usage: this.#total,
      ...(price !== undefined && { cost: costOf(this.#total, price) }),
      refused: [],
    };
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
        if (event.message.role === 'assistant') this.#answers += 1;
        return;
      case 'usage':
        this.#spent = sumUsage(this.#spent, event.usage);
        this.#total = event.total;
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
    const { price } = this.#spec.model;
    emit({
      type: 'session_end',
      outcome: outcome.status,
      reason,
      messages: this.#messages,
      usage: this.#spent,
      ...(price !== undefined && { cost: costOf(this.#spent, price) }),
    });
  }

  // The provider charges for the request, and for what of its answer had arrived.
  #settle({ wanted, admitted }: Ticket, failure: Failure, emit: (event: Event) => void): void {
    const output = Math.min(admitted.outputTokensMax, Math.ceil(this.#shownChars / CHARS_PER_TOKEN));
    const usage: Usage = { input: wanted.inputTokens, output, cacheRead: 0, cacheWrite: 0, estimated: true };
    admitted.settle(usage, { failure });
    const total = sumUsage(this.#total, usage);
    const { price } = this.#spec.model;
    emit({ type: 'usage', usage, total, ...(price !== undefined && { cost: costOf(total, price) }) });
  }
}

function labelIn({ callId, toolUseId, callIndex, index, name, summary }: CallLabel): CallLabel {
  return { callId, toolUseId, callIndex, index, name, summary };
}
