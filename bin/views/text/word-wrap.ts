// Breaks prose between words where a terminal would break it within one, as it streams.
//
// A word is held back until it is known how long it is. Code is left alone, between fences and where
// a line is indented: a break that was not there is worse in code than an ugly one.

import { widthOfText } from './terminal-text.ts';

export class WordWrap {
  readonly #columns: () => number;
  #column = 0; // where the next character goes
  #line = ''; // its beginning, as long as it may be that of a fence
  #gap = ''; // white space in front of the word
  #word = '';
  #isFenced = false;

  /** The width is asked for each time, because a terminal may be resized. */
  constructor(columns: () => number) {
    this.#columns = columns;
  }

  push(text: string): string {
    let out = '';
    for (const char of text) {
      if (this.#line.length < FENCE.length) this.#line += char;
      if (char === '\n') out += this.#endLine();
      else if (char === ' ' || char === '\t') {
        if (this.#word !== '') out += this.flush();
        this.#gap += char;
      } else {
        this.#word += char;
        // Nothing is gained by holding back what will not fit on any line, or may be broken anywhere.
        if (this.#word.length > this.#columns() || widthOfText(char) === 2) out += this.flush();
      }
    }
    return out;
  }

  /** Returns the text that was held back. */
  flush(): string {
    const gap = this.#gap;
    const word = this.#word;
    const width = widthOfText(word);
    this.#gap = '';
    this.#word = '';
    const mayBreak = gap !== '' && this.#column > 0 && !this.#isVerbatim();
    if (word !== '' && mayBreak && this.#column + gap.length + width > this.#columns()) {
      this.#column = width;
      return `\n${word}`;
    }
    this.#column += gap.length + width;
    // The terminal itself has gone to the next line with what did not fit.
    if (this.#column > this.#columns()) this.#column %= this.#columns();
    return gap + word;
  }

  #endLine(): string {
    // White space at the end of a line is not seen, and could begin a new one.
    const rest = this.#word === '' ? '' : this.flush();
    if (this.#line === FENCE) this.#isFenced = !this.#isFenced;
    this.#line = '';
    this.#gap = '';
    this.#column = 0;
    return `${rest}\n`;
  }

  #isVerbatim(): boolean {
    return this.#isFenced || this.#line === FENCE || /^(\t| {3})/.test(this.#line);
  }
}

const FENCE = '```';

export function wrapText(text: string, columns: number): string {
  const wrap = new WordWrap(() => columns);
  return wrap.push(text) + wrap.flush();
}
