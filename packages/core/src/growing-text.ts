// A string builder. It joins pieces in batches, because one long chain of concatenations burdens the garbage collector.

const PIECES_MAX = 256;

export class GrowingText {
  #whole: string;
  #pieces: string[] = [];

  constructor(whole: string) {
    this.#whole = whole;
  }

  get whole(): string {
    if (this.#pieces.length > 0) this.#gather();
    return this.#whole;
  }

  add(piece: string): void {
    if (this.#pieces.push(piece) === PIECES_MAX) this.#gather();
  }

  #gather(): void {
    this.#whole += this.#pieces.join('');
    this.#pieces = [];
  }
}
