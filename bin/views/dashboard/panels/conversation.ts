// The conversations of the agents of a run, as far as a panel shows them: a fold over the events, text as it streams.
//
// Guarantees
//   1. Memory is bounded: each agent keeps its last blocks, a finished task fewer. `drover logs` has the rest.
//   2. An answer that is discarded is taken back, and a note says why.

import type { Shown } from '@drover/core/bus';
import { retryWords } from '@drover/protocol/events';
import type { Message } from '@drover/protocol/messages';
import { COORDINATOR } from '../rows.ts';

const CHARS_MAX = 100_000; // of one agent
const CHARS_OVER_MAX = 20_000; // once its task is over
const OUTPUT_CHARS_MAX = 4_000; // of one call, its end

export type Block =
  | { readonly kind: 'user' | 'text' | 'thinking' | 'queued'; text: string }
  | { readonly kind: 'call'; readonly callId: string; readonly text: string; output: string; status: CallStatus }
  | { readonly kind: 'note'; readonly text: string };

export type CallStatus = 'asking' | 'running' | 'done' | 'failed';

export class Conversations {
  readonly #agents = new Map<string, Conversation>();

  /** The blocks of a task's workers or of the coordinator, oldest first. */
  of(who: string): readonly Block[] {
    return this.#agents.get(who)?.blocks ?? [];
  }

  /** Whether the beginning was dropped. */
  isCut(who: string): boolean {
    return this.#agents.get(who)?.isCut === true;
  }

  take(event: Shown): void {
    const who = event.task ?? (event.worker === 0 ? COORDINATOR : undefined);
    if (who === undefined) return;
    const agent = this.#agents.get(who) ?? new Conversation();
    this.#agents.set(who, agent);
    agent.take(event);
  }
}

class Conversation {
  blocks: Block[] = [];
  isCut = false;
  #answer = 0; // the number of blocks before the answer that arrives
  readonly #open = new Map<string, Extract<Block, { kind: 'text' | 'thinking' | 'user' | 'queued' }>>(); // by part

  take(event: Shown): void {
    switch (event.type) {
      case 'task_start':
        return this.#note(`attempt ${event.attempt ?? 1} begins in ${event.workspace}`);
      case 'message_start':
        this.#open.clear();
        this.#answer = this.blocks.length;
        return;
      case 'message_end':
        return this.#said(event.message);
      case 'text_delta':
      case 'thinking_delta':
        return this.#hear(event.type === 'text_delta' ? 'text' : 'thinking', event.part, event.delta);
      case 'text_end':
      case 'thinking_end':
        return this.#endPart(event.type === 'text_end' ? 'text' : 'thinking', event.part, event.text);
      case 'permission_request':
        return this.#call(event.callId, event.summary, 'asking');
      case 'permission_decision':
        if (!event.allowed) this.#note(`not allowed: ${event.reason ?? 'the user said no'}`);
        return;
      case 'tool_execution_start':
        return this.#call(event.callId, event.summary, 'running');
      case 'tool_execution_delta':
        return this.#output(event.callId, event.delta);
      case 'tool_execution_end':
        return this.#endCall(event);
      case 'attempt_discarded':
        this.blocks.length = Math.min(this.blocks.length, this.#answer);
        this.#open.clear();
        return this.#note(`the answer was discarded: ${event.reason}`);
      case 'retry':
        return this.#note(`${retryWords(event)}: ${event.reason}`);
      case 'throttle_wait':
        return this.#note(event.reason);
      case 'task_message':
        this.blocks.push({ kind: 'queued', text: event.text });
        return;
      case 'task_message_delivered':
        return this.#unqueue();
      case 'task_end':
        this.#note(`${event.status}${event.reason === undefined ? '' : `: ${event.reason}`}`);
        return event.again ? undefined : this.#bound(CHARS_OVER_MAX);
      case 'compaction_end':
        return event.ok ? this.#note('the conversation was shortened') : undefined;
      case 'warning':
        return this.#note(event.message);
      default:
        return;
    }
  }

  #said(message: Message): void {
    if (message.role !== 'user') return;
    const text = message.content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('\n');
    this.blocks.push({ kind: 'user', text });
    this.#bound(CHARS_MAX);
  }

  #hear(kind: 'text' | 'thinking', part: number, delta: string): void {
    const block = this.#part(kind, part);
    block.text += delta;
  }

  #endPart(kind: 'text' | 'thinking', part: number, text: string): void {
    if (text !== '') this.#part(kind, part).text = text;
    this.#open.delete(`${kind} ${part}`);
    this.#bound(CHARS_MAX);
  }

  #part(kind: 'text' | 'thinking', part: number) {
    const key = `${kind} ${part}`;
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const block = { kind, text: '' };
    this.#open.set(key, block);
    this.blocks.push(block);
    return block;
  }

  #call(callId: string, text: string, status: CallStatus): void {
    const known = this.#known(callId);
    if (known !== undefined) known.status = status;
    else this.blocks.push({ kind: 'call', callId, text, output: '', status });
  }

  #known(callId: string) {
    return this.blocks.findLast((block) => block.kind === 'call' && block.callId === callId) as
      | Extract<Block, { kind: 'call' }>
      | undefined;
  }

  #output(callId: string, delta: string): void {
    const call = this.#known(callId);
    if (call !== undefined) call.output = (call.output + delta).slice(-OUTPUT_CHARS_MAX);
  }

  #endCall(event: Extract<Shown, { readonly type: 'tool_execution_end' }>): void {
    this.#call(event.callId, event.summary, event.isError ? 'failed' : 'done');
    const call = this.#known(event.callId);
    if (call !== undefined) call.output = event.output.slice(-OUTPUT_CHARS_MAX);
    this.#bound(CHARS_MAX);
  }

  /** The message follows as one of the user's own. */
  #unqueue(): void {
    const at = this.blocks.findIndex(({ kind }) => kind === 'queued');
    if (at >= 0) this.blocks.splice(at, 1);
  }

  #note(text: string): void {
    this.blocks.push({ kind: 'note', text });
  }

  #bound(chars: number): void {
    let left = chars;
    const from = this.blocks.findLastIndex((block) => {
      left -= block.text.length + (block.kind === 'call' ? block.output.length : 0);
      return left < 0;
    });
    if (from <= 0) return;
    this.blocks.splice(0, from);
    this.#answer = Math.max(0, this.#answer - from);
    this.isCut = true;
  }
}
