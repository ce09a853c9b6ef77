// Long pastes: a draft shows `[pasted 80 lines]`, and the message holds the whole text.

const LINES_MAX = 20;

export class Pastes {
  readonly #texts = new Map<string, string>(); // by the words that stand for them

  /** The words that stand for a pasted text; the text itself if it is short. */
  fold(text: string): string {
    const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
    if (lines <= LINES_MAX) return text;
    const plain = `[pasted ${lines} lines]`;
    let words = plain;
    for (let number = 2; this.#texts.has(words) && this.#texts.get(words) !== text; number++)
      words = plain.replace(']', `, ${number}]`);
    this.#texts.set(words, text);
    return words;
  }

  /** The draft with every paste in full. */
  unfold(draft: string): string {
    let whole = draft;
    for (const [words, text] of this.#texts) whole = whole.replaceAll(words, () => text);
    return whole;
  }

  /** The words of a paste that end here; undefined if none do. */
  endingAt(draft: string, at: number): string | undefined {
    return [...this.#texts.keys()].find((words) => draft.slice(0, at).endsWith(words));
  }
}
