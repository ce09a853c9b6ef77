// Think tags: separates `<think>…</think>` at the start of a text from the answer.
//
// Tags later in the text are part of the answer. A tag may arrive in pieces, so text that could still become a tag
// is held back.

export type TextPiece = { readonly kind: 'text' | 'thinking'; readonly text: string };

const OPENING = '<think>';
const CLOSING = '</think>';

export class ThinkTags {
  #state: 'start' | 'thinking' | 'gap' | 'text' = 'start';
  #held = '';

  push(text: string): readonly TextPiece[] {
    if (this.#isText()) return [{ kind: 'text', text }];
    this.#held += text;
    const pieces: TextPiece[] = [];
    if (this.#state === 'start') this.#decide();
    if (this.#state === 'thinking') this.#think(pieces);
    if (this.#state === 'gap') this.#skipGap();
    return this.#isText() ? [...pieces, ...this.end()] : pieces;
  }

  /** Returns the text that is still held back. */
  end(): readonly TextPiece[] {
    const text = this.#held;
    this.#held = '';
    return text === '' ? [] : [{ kind: this.#state === 'thinking' ? 'thinking' : 'text', text }];
  }

  #isText(): boolean {
    return this.#state === 'text';
  }

  #decide(): void {
    const text = this.#held.trimStart();
    if (text.startsWith(OPENING)) {
      this.#state = 'thinking';
      this.#held = text.slice(OPENING.length).trimStart();
    } else if (!OPENING.startsWith(text)) {
      this.#state = 'text';
    }
  }

  #think(pieces: TextPiece[]): void {
    const end = this.#held.indexOf(CLOSING);
    const sure = end === -1 ? this.#held.length - lengthOfThinkTagTail(this.#held) : end;
    if (sure > 0) pieces.push({ kind: 'thinking', text: this.#held.slice(0, sure) });
    this.#held = this.#held.slice(end === -1 ? sure : end + CLOSING.length);
    if (end !== -1) this.#state = 'gap';
  }

  #skipGap(): void {
    this.#held = this.#held.trimStart();
    if (this.#held !== '') this.#state = 'text';
  }
}

/** Number of characters at the end that may be the start of the closing tag. */
function lengthOfThinkTagTail(text: string): number {
  for (let size = Math.min(CLOSING.length - 1, text.length); size > 0; size--) {
    if (CLOSING.startsWith(text.slice(-size))) return size;
  }
  return 0;
}
