// What has arrived of an answer that may never be whole: its texts and its thinking, by block.
//
// Calls are left out: their arguments may be incomplete, and none of them is run.

import type { Event } from '@drover/protocol/events';
import type { AssistantMessage, AssistantPart, Message, Stop, Usage } from '@drover/protocol/messages';
import type { ModelEvent } from '@drover/protocol/model';

type Block = { readonly type: 'text' | 'thinking'; readonly pieces: string[]; isOpen: boolean };

/** True for an answer that an interruption or an error cut off. */
export function isCutOff(message: Message): message is AssistantMessage & { readonly stop: 'aborted' | 'error' } {
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

  /** Of everything that streamed, arguments of calls included. */
  get characters(): number {
    return this.#characters;
  }

  /** True where there is a text for a person to read. */
  get hasText(): boolean {
    return [...this.#blocks.values()].some(({ type, pieces }) => type === 'text' && pieces.join('').trim() !== '');
  }

  /** The ends of the blocks that are still open. */
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
