// Partial answer: collects the text and thinking blocks of an answer while it streams.
//
// Calls are left out: their arguments may be incomplete, and a call of a partial answer never runs.

import type { Event } from '@drover/protocol/events';
import type { AssistantMessage, AssistantPart, Message, Stop, Usage } from '@drover/protocol/messages';
import type { ModelEvent } from '@drover/protocol/model';

type Block = { readonly type: 'text' | 'thinking'; readonly pieces: string[]; isOpen: boolean };

/** Whether an interruption or an error cut off the answer. */
export function isModelAnswerCutOff(
  message: Message,
): message is AssistantMessage & { readonly stop: 'aborted' | 'error' } {
  return message.role === 'assistant' && (message.stop === 'aborted' || message.stop === 'error');
}

export class PartialAnswer {
  readonly #blocks = new Map<number, Block>();
  #characters = 0;

  take(event: ModelEvent): void {
    if ('delta' in event) this.#characters += event.delta.length;
    switch (event.type) {
      case 'text_start':
      case 'text_delta':
        return this.#grow(event.part, 'text', 'delta' in event ? event.delta : '');
      case 'thinking_start':
      case 'thinking_delta':
        return this.#grow(event.part, 'thinking', 'delta' in event ? event.delta : '');
      case 'text_end':
      case 'thinking_end':
        this.#blocks.set(event.part, {
          type: event.type === 'text_end' ? 'text' : 'thinking',
          pieces: [event.text],
          isOpen: false,
        });
    }
  }

  /** Number of characters streamed so far, call arguments included. */
  get characters(): number {
    return this.#characters;
  }

  /** Whether any text block has visible text. */
  get hasText(): boolean {
    return [...this.#blocks.values()].some(({ type, pieces }) => type === 'text' && pieces.join('').trim() !== '');
  }

  /** The `_end` events for the blocks that are still open. */
  endings(): readonly Event[] {
    return [...this.#blocks].flatMap(([part, { type, pieces, isOpen }]): readonly Event[] =>
      isOpen ? [{ type: `${type}_end`, part, text: pieces.join(''), cutOff: true }] : [],
    );
  }

  message(stop: Extract<Stop, 'aborted' | 'error'>, usage: Usage): AssistantMessage {
    const blocks = [...this.#blocks].toSorted(([a], [b]) => a - b);
    const content = blocks.map(([, { type, pieces }]): AssistantPart => ({ type, text: pieces.join('') }));
    return { role: 'assistant', content, stop, usage };
  }

  #grow(part: number, type: Block['type'], delta: string): void {
    const block = this.#blocks.get(part) ?? { type, pieces: [], isOpen: true };
    block.pieces.push(delta);
    this.#blocks.set(part, block);
  }
}
