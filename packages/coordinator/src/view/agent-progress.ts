// Progress of one agent, as a fold over its events: an AgentProgress for the coordinator, and one for each task.
//
// Deltas arrive by the thousand, so a delta costs only the line that it ends.

import { fallbackEventWords, type Recorded, retryWords, type SessionEvent } from '@drover/protocol/events';
import type { Usage } from '@drover/protocol/messages';
import type { Told } from '@drover/core/journal/dollars';
import { AgentSpending } from './spending.ts';

const LINE_CHARS_MAX = 500;

export type Activity = 'waiting' | 'starting' | 'thinking' | 'running' | 'asking' | 'throttled' | 'retrying';

export type Progress = {
  readonly activity: Activity;
  /** The summary of the running tool, else the reason for waiting, else empty. */
  readonly doing: string;
  readonly usage: Usage;
  readonly cost: number | undefined; // US dollars; absent where the price is unknown
  readonly waitMs: number; // spent waiting for the throttle
  /** The last line of text or tool output. It is raw: clean it before showing it on a terminal. */
  readonly lastLine: string;
  readonly outputChars: number; // characters of text and tool output so far
};

type AgentEvent = Extract<Recorded, SessionEvent | { readonly type: 'throttle_wait' | 'attempt_moved' }>;

export class AgentProgress implements Progress {
  activity: Activity = 'waiting';
  doing = '';
  waitMs = 0;
  lastLine = '';
  outputChars = 0;
  #askedMs = 0; // spent waiting for the user's answers, the open question excluded
  #askingAt: number | undefined; // when the open question was asked, on the wall clock
  #lastAt = '';
  #openLine = ''; // text after the last newline
  readonly #calls = new Map<string, string>(); // callId -> summary of running calls
  readonly #questions = new Map<string, string>(); // requestId -> summary
  readonly #spending = new AgentSpending();

  get usage(): Usage {
    return this.#spending.usage;
  }

  get cost(): number | undefined {
    return this.#spending.cost;
  }

  /** Time spent waiting for answers of the user. */
  askedMs(now: number): number {
    return this.#askedMs + (this.#askingAt === undefined ? 0 : Math.max(0, now - this.#askingAt));
  }

  /** Starts a new conversation. Earlier spending is kept. */
  begin(): void {
    this.#settle();
    this.#spending.begin();
    this.#be('starting', '');
  }

  /** Marks the agent as idle: it ended, or drover was stopped. */
  rest(): void {
    this.#settle();
    this.#be('waiting', '');
  }

  /** Sets the total of the conversation. It never lowers what events reported so far. */
  spend(spent: Told): void {
    this.#spending.atLeast(spent);
  }

  take(event: AgentEvent): void {
    this.#lastAt = event.at;
    switch (event.type) {
      case 'session_start':
        this.#spending.use(event.model);
        return this.#be('starting', '');
      case 'text_delta':
        this.#hear(event.delta);
        return this.#think();
      case 'tool_execution_delta':
        return this.#hear(event.delta);
      case 'message_start':
      case 'message_end':
      case 'thinking_start':
      case 'thinking_delta':
      case 'thinking_end':
      case 'text_start':
      case 'toolcall_start':
      case 'toolcall_delta':
      case 'toolcall_end':
        return this.#think();
      case 'text_end':
        this.#endLine();
        return this.#think();
      case 'tool_execution_start':
        this.#calls.set(event.callId, event.summary);
        return this.#work();
      case 'tool_execution_end':
        this.#calls.delete(event.callId);
        this.#endLine();
        return this.#work();
      case 'permission_request':
        return this.#ask(event);
      case 'permission_decision':
        return this.#answer(event);
      case 'awaiting_tool_execution':
        return this.#be('running', event.calls.map(({ summary }) => summary).join(', '));
      case 'usage':
        return this.#spending.take(event);
      case 'throttle_wait':
        this.waitMs += event.waitMs;
        return this.#be('throttled', event.reason);
      case 'retry':
        return this.#be('retrying', `${retryWords(event)}: ${event.reason}`);
      case 'attempt_discarded':
        return this.#be('retrying', event.reason);
      case 'model_fallback':
        return this.#be('retrying', fallbackEventWords(event));
      case 'attempt_moved':
        return this.#be('starting', 'resumes in another thread');
      case 'compaction_start':
        return this.#be('thinking', 'shortens its conversation');
      case 'compaction_end':
        return this.#be('thinking', '');
      case 'session_end':
        return this.#settle();
      default: // the other events don't change what the agent does
        return;
    }
  }

  // Running calls and open questions are shown rather than a streaming answer.
  #think(): void {
    if (this.#calls.size === 0 && this.#questions.size === 0) this.#be('thinking', '');
  }

  #work(): void {
    const asked = lastSummaryInView(this.#questions);
    if (asked !== undefined) return this.#be('asking', asked);
    const called = lastSummaryInView(this.#calls);
    if (called === undefined) return this.#be('thinking', '');
    this.#be('running', this.#calls.size > 1 ? `${called} and ${this.#calls.size - 1} more` : called);
  }

  #be(activity: Activity, doing: string): void {
    this.activity = activity;
    this.doing = doing;
  }

  #settle(): void {
    this.#calls.clear();
    this.#questions.clear();
    this.#endAsking();
    this.#endLine();
  }

  #ask({ requestId, summary, at }: Extract<AgentEvent, { readonly type: 'permission_request' }>): void {
    this.#questions.set(requestId, summary);
    this.#askingAt ??= Date.parse(at);
    this.#work();
  }

  #answer({ requestId }: Extract<AgentEvent, { readonly type: 'permission_decision' }>): void {
    this.#questions.delete(requestId);
    if (this.#questions.size === 0) this.#endAsking();
    this.#work();
  }

  #endAsking(): void {
    if (this.#askingAt !== undefined) this.#askedMs = this.askedMs(Date.parse(this.#lastAt));
    this.#askingAt = undefined;
  }

  #hear(delta: string): void {
    this.outputChars += delta.length;
    const end = Math.max(delta.lastIndexOf('\n'), delta.lastIndexOf('\r'));
    if (end === -1) {
      if (this.#openLine.length < LINE_CHARS_MAX) this.#openLine += delta;
    } else {
      const whole = (this.#openLine + delta.slice(0, end)).split(/[\r\n]/).findLast(isSayingInView);
      if (whole !== undefined) this.lastLine = whole.slice(0, LINE_CHARS_MAX);
      this.#openLine = delta.slice(end + 1);
    }
    if (isSayingInView(this.#openLine)) this.lastLine = this.#openLine.slice(0, LINE_CHARS_MAX);
  }

  #endLine(): void {
    this.#openLine = '';
  }
}

function lastSummaryInView(summaries: ReadonlyMap<string, string>): string | undefined {
  return [...summaries.values()].at(-1);
}

function isSayingInView(line: string): boolean {
  return /\S/.test(line);
}
