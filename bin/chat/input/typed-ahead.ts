// Keys that are pressed while the agent works: messages in a queue, and the draft of the next one.
//
// Guarantees
//   1. Each line that Enter ends becomes a message of its own, in order.
//   2. Queued messages are sent by themselves, unless a question or an interruption came behind them. Then they stand
//      at the prompt one by one, to be sent or not: they may have been meant for what is over.

import { continued, type Draft, draftOf, edited, EMPTY, inserted } from './draft.ts';
import { isNewline, type Key } from './keyboard.ts';

const CHARS_MAX = 10_000; // of the queue and the draft

export class TypedAhead {
  readonly #queue: string[] = [];
  #draft: Draft = EMPTY;
  #isHeld = false;

  /** What the status line says of the queue. */
  get note(): string {
    return this.#queue.length === 0 ? '' : ` · ${this.#queue.length} queued`;
  }

  press(key: Key): void {
    if (key.name === 'return' && !key.meta) return this.#enter();
    const next = isNewline(key) ? inserted(this.#draft, '\n') : edited(this.#draft, key);
    if (next !== undefined && next.text.length + this.#queuedChars <= CHARS_MAX) this.#draft = next;
  }

  /** The messages so far are not sent by themselves. */
  hold(): void {
    this.#isHeld ||= this.#queue.length > 0;
  }

  /** The next message that is sent by itself. */
  takeMessage(): string | undefined {
    return this.#isHeld ? undefined : this.#queue.shift();
  }

  /** What stands at the prompt to begin with: a held message, or what was typed without Enter. */
  takeDraft(): Draft {
    const held = this.#queue.shift();
    this.#isHeld &&= this.#queue.length > 0;
    if (held !== undefined) return draftOf(held);
    const draft = draftOf(this.#draft.text.trim());
    this.#draft = EMPTY;
    return draft;
  }

  get #queuedChars(): number {
    return this.#queue.reduce((sum, { length }) => sum + length, 0);
  }

  #enter(): void {
    const longer = continued(this.#draft);
    if (longer === undefined && this.#draft.text.trim() !== '') this.#queue.push(this.#draft.text.trim());
    this.#draft = longer ?? EMPTY;
  }
}
