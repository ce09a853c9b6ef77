// Markdown while it streams: finished blocks as rows that stay, the last block as rows that may still change.
//
// Guarantees
//   1. No row that stays turns out wrong: see BlockStream.
//   2. Text that comes in is cleaned before it is read, and again when it becomes a span.
//
// marked and the languages of highlight.js are loaded by `prepareMarkdown`, with the first text that needs them.

import { BlockStream, loadMarkdownLexer, type Token } from '@drover/markdown/block-stream';
import { loadHighlightLanguage } from '@drover/markdown/highlight';
import { Cleaner } from '../text/terminal-text.ts';
import { markdownBlockRows } from './blocks.ts';
import { type Looks, paintMarkdownRow } from './spans.ts';

const FENCE = /^ {0,3}(?:`{3,}|~{3,})[ \t]*([\w+#.-]+)[^\n]*$/gm;

/** Loads what this text needs; undefined if all of it is loaded. Call it with whole lines, before `push`. */
export function prepareMarkdown(text: string, isColoured: boolean): Promise<unknown> | undefined {
  const languages = isColoured
    ? [...text.matchAll(FENCE)].map(([, language = '']) => loadHighlightLanguage(language))
    : [];
  const loads = [loadMarkdownLexer(), ...languages].filter((load) => load !== undefined);
  return loads.length === 0 ? undefined : Promise.all(loads);
}

export type MarkdownPage = { readonly columns: () => number; readonly looks: Looks };

export class MarkdownStream {
  readonly #page: MarkdownPage;
  readonly #blocks = new BlockStream();
  readonly #cleaner = new Cleaner();
  #hasRows = false;

  constructor(page: MarkdownPage) {
    this.#page = page;
  }

  /** The source of the block that is not finished. */
  get tail(): string {
    return this.#blocks.tail;
  }

  /** Adds text, and returns the rows of the blocks that it finished. */
  push(raw: string): readonly string[] {
    return this.#rows(this.#blocks.push(this.#cleaner.push(raw)), true);
  }

  /** The rows of the last block as it stands. */
  live(): readonly string[] {
    return this.#rows(this.#blocks.rest(), false);
  }

  /** Finishes the last block, and returns its rows. */
  end(): readonly string[] {
    return this.#rows(this.#blocks.end(), true);
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
