// Markdown of a model as blocks, while it streams: the blocks that are finished, and the last one as it stands.
//
// Guarantees
//   1. A block is finished only when a later block has begun with a whole line, so it never changes again. A table may
//      still look like a paragraph, or a paragraph like a heading, only in the last block.
//   2. Only the last block is read again when text arrives.
//   3. Text that would take the lexer seconds, or more stack than there is, becomes a code block as it is.
//
// marked is loaded by `loadMarkdownLexer`, with the first text that needs it.

import type { Lexer, Token, Tokens, TokensList } from 'marked';

export type { Token, Tokens } from 'marked';

const WORD_CHARS_MAX = 2_000;
const FENCED = /^ {0,3}(`{3,}|~{3,})[^\n]*\n[^]*?(?:^ {0,3}\1[`~]*[ \t]*$|$(?![^]))/gm;
/** A hundred quotes or lists in each other, in one line. */
const NESTED = /^(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))){100}/m;
const LONG_WORD = new RegExp(`\\S{${WORD_CHARS_MAX}}`);

let lexer: typeof Lexer | undefined;

/** Returns undefined if marked is loaded already. */
export function loadMarkdownLexer(): Promise<void> | undefined {
  return lexer === undefined ? load() : undefined;
}

async function load(): Promise<void> {
  lexer = (await import('marked')).Lexer;
}

export class BlockStream {
  #tail = ''; // the source of the last block
  #links: TokensList['links'] = {};

  /** The source of the block that is not finished. */
  get tail(): string {
    return this.#tail;
  }

  /** Adds text, and returns the blocks that it finished. */
  push(text: string): readonly Token[] {
    this.#tail += text;
    const whole = this.#tail.lastIndexOf('\n') + 1;
    if (whole === 0 || !text.includes('\n')) return [];
    const tokens = this.#lex(this.#tail.slice(0, whole));
    const last = tokens.findLastIndex(({ type }) => type !== 'space');
    if (last <= 0) return [];
    const finished = tokens.slice(0, last);
    const length = finished.reduce((sum, { raw }) => sum + raw.length, 0);
    // marked changes line ends and tabs; if its source is not ours, wait for the end.
    if (this.#tail.slice(0, length) !== finished.map(({ raw }) => raw).join('')) return [];
    this.#tail = this.#tail.slice(length);
    this.#links = { ...this.#links, ...('links' in tokens && (tokens as TokensList).links) };
    return finished;
  }

  /** The last block as it stands. */
  rest(): readonly Token[] {
    return this.#tail.trim() === '' ? [] : this.#lex(this.#tail);
  }

  /** Finishes the last block, and returns it. */
  end(): readonly Token[] {
    const tokens = this.#lex(this.#tail);
    this.#tail = '';
    return tokens;
  }

  #lex(source: string): readonly Token[] {
    if (!isHostile(source)) return this.#read(source);
    // The text after the next empty line may be as harmless as any.
    const cut = /\n[ \t]*\n/.exec(source);
    if (cut === null) return [plainBlock(source)];
    const end = cut.index + cut[0].length;
    const head = source.slice(0, end);
    return [...(isHostile(head) ? [plainBlock(head)] : this.#read(head)), ...this.#lex(source.slice(end))];
  }

  #read(source: string): readonly Token[] {
    if (lexer === undefined) throw new Error('loadMarkdownLexer was not called');
    const own = new lexer({ gfm: true });
    own.tokens.links = { ...this.#links };
    try {
      return own.lex(source);
    } catch (error) {
      if (error instanceof RangeError) return [plainBlock(source)]; // the stack ended
      throw error;
    }
  }
}

function isHostile(source: string): boolean {
  const text = source.replace(FENCED, '');
  return LONG_WORD.test(text) || NESTED.test(text);
}

function plainBlock(source: string): Tokens.Code {
  return { type: 'code', raw: source, text: source.trimEnd() };
}
