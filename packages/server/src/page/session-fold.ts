// All that the page shows of a session, as a fold over its events.

import type { PendingCall, Recorded } from '@drover/protocol/events';
import type { Usage } from '@drover/protocol/messages';
import { NO_USAGE, sumUsage } from '@drover/core/model/spending/usage';
import type { OpenQuestion, SessionStatus } from '@drover/client/wire';
import { Conversation } from './conversation.ts';

const TITLE_CHARS_MAX = 120;

export type Ending = 'done' | 'incomplete' | 'error' | 'cancelled';

export class SessionFold {
  readonly conversation = new Conversation();
  readonly #pending = new Map<string, PendingCall>();
  readonly #questions = new Map<string, OpenQuestion>();
  #status: SessionStatus = 'idle';
  #ending: Ending | undefined;
  #model = '';
  #cwd = '';
  #title = '';
  #total: { readonly usage: Usage; readonly cost: number | undefined } | undefined; // as it was told on the way
  #sum = { usage: NO_USAGE, cost: undefined as number | undefined }; // of the executions that have ended
  #version = 0;
  #seq = 0;
  #turnFromMs: number | undefined;
  #lastMs = 0;

  get version(): number {
    return this.#version;
  }

  get seq(): number {
    return this.#seq;
  }

  get status(): SessionStatus {
    return this.#status;
  }

  /** How its last turn ended; undefined where none has, or one is under way. */
  get ending(): Ending | undefined {
    return this.#ending;
  }

  get model(): string {
    return this.#model;
  }

  get cwd(): string {
    return this.#cwd;
  }

  /** The first line of what it was asked first. */
  get title(): string {
    return this.#title;
  }

  /** Remote calls that wait for their results. */
  get pending(): readonly PendingCall[] {
    return [...this.#pending.values()];
  }

  get questions(): readonly OpenQuestion[] {
    return [...this.#questions.values()];
  }

  get usage(): Usage {
    return this.#total?.usage ?? this.#sum.usage;
  }

  get cost(): number | undefined {
    return this.#total?.cost ?? this.#sum.cost;
  }

  /** Start of the running turn and time of the last event, by the system clock. */
  get turnFromMs(): number | undefined {
    return this.#turnFromMs;
  }

  get lastMs(): number {
    return this.#lastMs;
  }

  take(event: Recorded): void {
    this.#seq = Math.max(this.#seq, event.seq);
    this.#version += 1;
    const atMs = Date.parse(event.at);
    this.#lastMs = Math.max(this.#lastMs, atMs);
    this.conversation.take(event, atMs);
    switch (event.type) {
      case 'session_start':
        this.#model = event.model;
        this.#cwd = event.cwd;
        this.#questions.clear(); // the process that asked them is gone
        return;
      case 'message_start':
        return this.#run(atMs);
      case 'message_end':
        return this.#name(event);
      case 'awaiting_tool_execution':
        this.#status = 'awaiting_tool_execution';
        for (const call of event.calls) this.#pending.set(call.callId, call);
        return;
      case 'tool_execution_end':
        this.#pending.delete(event.callId);
        return;
      case 'permission_request':
        this.#questions.set(event.requestId, event);
        return;
      case 'permission_decision':
        this.#questions.delete(event.requestId);
        return;
      case 'usage':
        this.#total = { usage: event.total, cost: event.cost };
        return;
      case 'done':
      case 'incomplete':
      case 'error':
      case 'cancelled':
        this.#ending = event.type;
        return;
      case 'session_end':
        return this.#rest(event);
      default:
        return;
    }
  }

  #run(atMs: number): void {
    this.#status = 'running';
    this.#ending = undefined;
    this.#turnFromMs ??= atMs;
  }

  #name({ message }: Extract<Recorded, { readonly type: 'message_end' }>): void {
    if (this.#title !== '' || message.role !== 'user') return;
    const [first] = message.content;
    const line = first?.type === 'text' ? first.text.trim().split('\n', 1)[0] : undefined;
    this.#title = (line ?? '').slice(0, TITLE_CHARS_MAX);
  }

  #rest({ outcome, usage, cost }: Extract<Recorded, { readonly type: 'session_end' }>): void {
    this.#sum = {
      usage: sumUsage(this.#sum.usage, usage),
      cost: cost === undefined ? this.#sum.cost : (this.#sum.cost ?? 0) + cost,
    };
    this.#questions.clear();
    if (outcome === 'suspended') return;
    this.#status = 'idle';
    this.#ending = outcome;
    this.#turnFromMs = undefined;
    this.#pending.clear();
  }
}
