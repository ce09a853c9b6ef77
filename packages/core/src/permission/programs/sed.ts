// sed scripts: what one does beside printing.
//
// sed can write files and start commands. A script is harmless only if every command of it is read
// here and known to be; where two seds would read it differently, it is not.

import { regexEnd, textEnd } from './regex.ts';

const ADDRESS = /(?:\d+(?:~\d+)?|\$)/y;
const SECOND_ADDRESS = /(?:[+~]?\d+|\$)/y;
const PLAIN = /(?:[pdgGhHxnNDPF=z]|[qQlL] *\d*|[btT] *[\w.-]*|: *[\w.-]+)/y;
const SUBSTITUTION_FLAGS = /[gpiIm0-9]*/y;
const TEXT = /[aic][ \t]+[^\\\n]*/y;
const END = /[ \t]*(?=$|[;}\n#])/y;

/** What a sed script does that it should be asked for; undefined where it only prints. */
export function objectionToSed(script: string): string | undefined {
  return new SedScript(script).isHarmless()
    ? undefined
    : `the sed script ${JSON.stringify(script)} may do more than print`;
}

class SedScript {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  isHarmless(): boolean {
    for (;;) {
      this.#eat(/[\s;}]*/y);
      if (this.#eat(/#[^\n]*/y)) continue;
      if (this.#at >= this.#text.length) return true;
      if (!this.#address(ADDRESS)) return false;
      if (this.#eat(/ *, */y) && !this.#address(SECOND_ADDRESS)) return false;
      this.#eat(/[ \t]*!*[ \t]*/y);
      if (this.#eat(/\{/y)) continue;
      if (!this.#command() || !this.#eat(END)) return false;
    }
  }

  #command(): boolean {
    const name = this.#text[this.#at];
    return name === 's' || name === 'y' ? this.#substitution(name) : this.#eat(PLAIN) || this.#eat(TEXT);
  }

  #eat(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  // True also where there is none.
  #address(pattern: RegExp): boolean {
    if (this.#eat(pattern)) return true;
    const first = this.#text[this.#at];
    if (first === '\\') return false;
    if (first !== '/') return true;
    return this.#move(regexEnd(this.#text, this.#at + 1, '/')) && this.#eat(/[IM]*/y);
  }

  #substitution(name: 's' | 'y'): boolean {
    const delimiter = this.#text[this.#at + 1];
    if (delimiter === undefined || /[\s\\\w[\]]/.test(delimiter)) return false;
    const findEnd = name === 's' ? regexEnd : textEnd;
    if (!this.#move(findEnd(this.#text, this.#at + 2, delimiter))) return false;
    if (!this.#move(textEnd(this.#text, this.#at, delimiter))) return false;
    return name === 'y' || this.#eat(SUBSTITUTION_FLAGS);
  }

  #move(end: number | undefined): boolean {
    this.#at = end ?? this.#at;
    return end !== undefined;
  }
}
