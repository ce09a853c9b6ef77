// Denied calls: a fold over events, for reports, `drover show` and the lines view.
//
// A denied call has an end without a start. Equal calls of one task are counted. At most DENIED_MAX are kept.

import type { Event, Place } from '@drover/protocol/events';
import { REFUSAL } from '../agent/calls/refused-calls.ts';

const DENIED_MAX = 200;

export type DeniedCall = {
  readonly task?: string;
  readonly summary: string; // tool and subject
  readonly why: string;
  readonly times: number;
};

export class DeniedCalls {
  readonly #begun = new Set<string>(); // ids of calls that ran here or were handed out
  readonly #asked = new Set<string>(); // ids of calls that a decision event already reported as denied
  readonly #found = new Map<string, DeniedCall>();

  get list(): readonly DeniedCall[] {
    return [...this.#found.values()];
  }

  /** Returns the call if a rule denied it. A call that the user was asked about has a decision event instead. */
  take(event: Event & Place): DeniedCall | undefined {
    if (event.type === 'tool_execution_start') this.#begun.add(event.callId);
    if (event.type === 'awaiting_tool_execution') for (const { callId } of event.calls) this.#begun.add(callId);
    if (event.type === 'permission_decision' && !event.allowed) this.#asked.add(event.callId);
    if (event.type !== 'tool_execution_end') return undefined;
    if (this.#begun.delete(event.callId) || !event.output.startsWith(REFUSAL)) return undefined;
    const { task, summary } = event;
    const why = event.output.slice(REFUSAL.length);
    const call = { ...(task !== undefined && { task }), summary, why, times: 1 };
    this.#count(call);
    return this.#asked.delete(event.callId) ? undefined : call;
  }

  #count(call: DeniedCall): void {
    const key = JSON.stringify([call.task, call.summary, call.why]);
    const before = this.#found.get(key);
    if (before === undefined && this.#found.size >= DENIED_MAX) return;
    this.#found.set(key, { ...call, times: (before?.times ?? 0) + 1 });
  }
}
