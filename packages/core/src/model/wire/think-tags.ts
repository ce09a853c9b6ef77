// Thinking that a server left inside the text: `<think>…</think>` in front of the answer.
//
// Only there: the same letters further on are part of what is said. A tag may arrive in pieces, so what
// could still become one is held back.

export type Piece = { readonly kind: 'text' | 'thinking'; readonly text: string };

const OPENING = '<think>';
const CLOSING = '</think>';

export class ThinkTags {
  #state: 'start' | 'thinking' | 'gap' | 'text' = 'start';
  #held = '';

  push(text: string): readonly Piece[] {
    if (this.#isText()) return [{ kind: 'text', text }];
    this.#held += text;
    const pieces: Piece[] = [];
    if (this.#state === 'start') this.#decide();
    if (this.#state === 'thinking') this.#think(pieces);
    if (this.#state === 'gap') this.#skipGap();
    return this.#isText() ? [...pieces, ...this.end()] : pieces;
  }

  /** What was held back after all. */
  end(): readonly Piece[] {
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

  #think(pieces: Piece[]): void {
    const end = this.#held.indexOf(CLOSING);
    const sure = end === -1 ? this.#held.length - tailOf(this.#held) : end;
    if (sure > 0) pieces.push({ kind: 'thinking', text: this.#held.slice(0, sure) });
    this.#held = this.#held.slice(end === -1 ? sure : end + CLOSING.length);
    if (end !== -1) this.#state = 'gap';
  }

  #skipGap(): void {
    this.#held = this.#held.trimStart();
    if (this.#held !== '') this.#state = 'text';
  }
}

/** How many characters at the end may be the beginning of the closing tag. */
function tailOf(text: string): number {
  for (let size = Math.min(CLOSING.length - 1, text.length); size > 0; size--) {
    if (CLOSING.startsWith(text.slice(-size))) return size;
  }
  return 0;
}
