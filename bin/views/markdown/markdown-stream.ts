// Markdown while it streams: finished blocks as rows that stay, the last block as rows that may still change.
//
// Guarantees
//   1. A block is finished only when a later block has begun with a whole line, so no row that stays turns out wrong.
//      A table may still look like a paragraph, or a paragraph like a heading, only in the rows that may change.
//   2. Only the last block is read again when text arrives.
//   3. Text that comes in is cleaned before it is read, and again when it becomes a span.
//
// marked and the languages of highlight.js are loaded by `prepareMarkdown`, with the first text that needs them.

import type { Lexer, Token, TokensList } from 'marked';
import { Cleaner } from '../text/terminal-text.ts';
import { markdownBlockRows } from './blocks.ts';
import { loadHighlightLanguage } from './highlight.ts';
import { type Looks, paintMarkdownRow } from './spans.ts';

let lexer: typeof Lexer | undefined;

const FENCE = /^ {0,3}(?:`{3,}|~{3,})[ \t]*([\w+#.-]+)[^\n]*$/gm;

/** Loads what this text needs; undefined if all of it is loaded. Call it with whole lines, before `push`. */
export function prepareMarkdown(text: string, isColoured: boolean): Promise<unknown> | undefined {
  const languages = isColoured
    ? [...text.matchAll(FENCE)].map(([, language = '']) => loadHighlightLanguage(language))
    : [];
  const loads = [lexer === undefined ? loadMarkdownLexer() : undefined, ...languages].filter(
    (load) => load !== undefined,
  );
  return loads.length === 0 ? undefined : Promise.all(loads);
}

async function loadMarkdownLexer(): Promise<void> {
  lexer = (await import('marked')).Lexer;
}

export type MarkdownPage = { readonly columns: () => number; readonly looks: Looks };

export class MarkdownStream {
  readonly #page: MarkdownPage;
  #tail = ''; // the source of the last block
  #links: TokensList['links'] = {};
  readonly #cleaner = new Cleaner();
  #hasRows = false;

  constructor(page: MarkdownPage) {
    this.#page = page;
  }

  /** The source of the block that is not finished. */
  get tail(): string {
    return this.#tail;
  }

  /** Adds text, and returns the rows of the blocks that it finished. */
  push(raw: string): readonly string[] {
    const text = this.#cleaner.push(raw);
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
    this.#links = tokens.links;
    return this.#rows(finished, true);
  }

  /** The rows of the last block as it stands. */
  live(): readonly string[] {
    return this.#tail.trim() === '' ? [] : this.#rows(this.#lex(this.#tail), false);
  }

  /** Finishes the last block, and returns its rows. */
  end(): readonly string[] {
    const tokens = this.#lex(this.#tail);
    this.#tail = '';
    return this.#rows(tokens, true);
  }

  #lex(source: string): TokensList {
    if (lexer === undefined) throw new Error('prepare was not called');
    const own = new lexer({ gfm: true });
    own.tokens.links = { ...this.#links };
    return own.lex(source);
  }

  #rows(tokens: readonly Token[], stays: boolean): readonly string[] {
    const { columns, looks } = this.#page;
    const rows = markdownBlockRows(tokens, { columns: columns(), looks, keepsCode: stays });
    const painted = rows.map((row) => paintMarkdownRow(row, looks).trimEnd());
    const before = this.#hasRows && painted.length > 0 ? [''] : [];
    if (stays && painted.length > 0) this.#hasRows = true;
    return [...before, ...painted];
  }
}
