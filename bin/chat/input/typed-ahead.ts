// Keys that the user presses while the agent works: a queue of messages, and the draft of the next one.
//
// Guarantees
//   1. Each line that Enter ends becomes its own message, in order.
//   2. Queued messages are sent automatically, unless a question or an interruption followed them. Then each appears
//      at the prompt for the user to send or discard, because it may no longer apply.

import { continued, type Draft, draftOf, edited, EMPTY, inserted } from './draft.ts';
import { isNewline, type Key } from './keyboard.ts';

const CHARS_MAX = 10_000; // of the queue and the draft

export class TypedAhead {
  readonly #queue: string[] = [];
  #draft: Draft = EMPTY;
  #isHeld = false;

  /** Number of queued messages, for the status line. */
  get note(): string {
    return this.#queue.length === 0 ? '' : ` · ${this.#queue.length} queued`;
  }

  press(key: Key): void {
    if (key.name === 'return' && !key.meta) return this.#enter();
    const next = isNewline(key) ? inserted(this.#draft, '\n') : edited(this.#draft, key);
    if (next !== undefined && next.text.length + this.#queuedChars <= CHARS_MAX) this.#draft = next;
  }

  /** Stops automatic sending of the messages queued so far. */
  hold(): void {
    this.#isHeld ||= this.#queue.length > 0;
  }

  /** The next message to send automatically; undefined if messages are held. */
  takeMessage(): string | undefined {
    return this.#isHeld ? undefined : this.#queue.shift();
  }

  /** First draft of the prompt: a held message, or text typed without Enter. */
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
