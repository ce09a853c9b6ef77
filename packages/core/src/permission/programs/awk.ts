// awk programs: what one does beside printing.
//
// awk can write files, start commands and read what it likes. A program is harmless only if every
// token of it is known to be; where a slash may be a division or begin a regular expression, and
// where two awks would read it differently, it is not.

import { regexEnd } from './regex.ts';

const KEYWORDS = new Set(
  'BEGIN END print printf if else while for do in return delete next exit nextfile function func break continue switch case default'.split(
    ' ',
  ),
);
// What runs, reads by a computed name, or shows the environment.
const REFUSED = new Set('system getline ARGV ARGC ARGIND ENVIRON PROCINFO SYMTAB FUNCTAB close'.split(' '));

const SPACE = /(?:[ \t]|\\\n|#[^\n]*)+/y;
const NAME = /[A-Za-z_]\w*/y;
const NUMBER = /(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\n]|\\[^\n])*"/y;
const SYMBOL = /\+\+|--|&&|\|\||[-+*/%^!=<>~?:,;&[\](){}$\n]/y;

/** What an awk program does that it should be asked for; undefined where it only prints. */
export function objectionToAwk(program: string): string | undefined {
  return new AwkProgram(program).isHarmless()
    ? undefined
    : `the awk program ${JSON.stringify(program)} may do more than print`;
}

class AwkProgram {
  readonly #text: string;
  #at = 0;
  // What came before decides whether a slash divides or begins a regular expression.
  #before: 'operator' | 'operand' | 'either' = 'operator';
  #parentheses = 0;
  #braces = 0;

  constructor(text: string) {
    this.#text = text;
  }

  isHarmless(): boolean {
    while (this.#at < this.#text.length) {
      if (!this.#token()) return false;
    }
    return this.#braces === 0 && this.#parentheses === 0;
  }

  #eat(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #token(): boolean {
    if (this.#eat(SPACE) !== undefined) return true;
    const name = this.#eat(NAME);
    if (name !== undefined) {
      this.#before = KEYWORDS.has(name) ? 'operator' : name === 'length' ? 'either' : 'operand';
      return !REFUSED.has(name);
    }
    if (this.#eat(NUMBER) !== undefined || this.#eat(STRING) !== undefined) {
      this.#before = 'operand';
      return true;
    }
    const symbol = this.#eat(SYMBOL);
    return symbol !== undefined && this.#symbol(symbol);
  }

  #symbol(symbol: string): boolean {
    const { before } = this.#depart(symbol);
    switch (symbol) {
      case '/':
        return before === 'operand' || (before === 'operator' && this.#regex());
      case '>':
        // Within an action, and not in parentheses, it may send a print to a file.
        return this.#braces === 0 || this.#parentheses > 0;
      case '(':
        this.#parentheses++;
        return true;
      case ')':
        return --this.#parentheses >= 0;
      case '{':
        this.#braces++;
        return this.#parentheses === 0;
      case '}':
        return --this.#braces >= 0 && this.#parentheses === 0;
      default:
        return true;
    }
  }

  #depart(symbol: string): { readonly before: 'operator' | 'operand' | 'either' } {
    const before = this.#before;
    this.#before = symbol === ']' ? 'operand' : /^(\)|\+\+|--)$/.test(symbol) ? 'either' : 'operator';
    return { before };
  }

  #regex(): boolean {
    const end = regexEnd(this.#text, this.#at, '/');
    this.#at = end ?? this.#at;
    this.#before = 'operand';
    return end !== undefined;
  }
}
