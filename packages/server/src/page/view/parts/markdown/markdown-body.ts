// A model's Markdown on the page, also while it streams: finished blocks stay, the last one is drawn again.
//
// Guarantees
//   1. Elements are made from the lexer's tokens, and text is set as text, so the model's HTML is shown and never read.
//   2. The text is there at once: plain until marked is loaded, and where the last block is long.

import { BlockStream, loadMarkdownLexer } from '@drover/markdown/block-stream';
import { GrowingText, h } from '../../dom.ts';
import { markdownBlocks } from './blocks.ts';

const LIVE_CHARS_MAX = 4_000; // of a block that is drawn with each piece

export class MarkdownBody {
  readonly element = h('div', { class: 'prose markdown' });
  readonly #live = h('div', { class: 'live' });
  #blocks = new BlockStream();
  #plain = new GrowingText();
  #read = ''; // by the lexer
  #isOver = false;
  #text = '';
  #isOpen = true;

  constructor() {
    this.element.append(this.#live);
  }

  /** `isOpen`: more of it is to come. */
  set(text: string, isOpen: boolean): void {
    if (text === this.#text && isOpen === this.#isOpen) return;
    this.#text = text;
    this.#isOpen = isOpen;
    const loading = loadMarkdownLexer();
    if (loading === undefined) return this.#draw();
    this.#showPlain(text);
    loading.then(
      () => this.#draw(),
      () => undefined, // the server is gone: the text stays plain
    );
  }

  #draw(): void {
    const text = this.#text;
    if (this.#isOver || !text.startsWith(this.#read)) this.#reset();
    const finished = this.#blocks.push(text.slice(this.#read.length));
    this.#read = text;
    this.#live.before(...markdownBlocks(finished));
    if (!this.#isOpen) {
      this.#isOver = true;
      this.#live.replaceChildren(...markdownBlocks(this.#blocks.end()));
    } else if (this.#blocks.tail.length > LIVE_CHARS_MAX) this.#showPlain(this.#blocks.tail);
    else this.#live.replaceChildren(...markdownBlocks(this.#blocks.rest()));
  }

  #showPlain(text: string): void {
    if (this.#plain.node.parentNode !== this.#live) this.#live.replaceChildren(this.#plain.node);
    this.#plain.set(text);
  }

  #reset(): void {
    this.#blocks = new BlockStream();
    this.#read = '';
    this.#isOver = false;
    this.element.replaceChildren(this.#live);
  }
}

/** A whole text. */
export function markdown(text: string): HTMLElement {
  const body = new MarkdownBody();
  body.set(text, false);
  return body.element;
}
