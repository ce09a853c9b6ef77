// A block of code: highlighted when its language is loaded, and with a button that copies it.

import type { Tokens } from '@drover/markdown/block-stream';
import { highlightCode, loadHighlightLanguage } from '@drover/markdown/highlight';
import { h } from '../../dom.ts';
import { copyButton } from '../copy.ts';

export function codeBlock({ text, lang = '' }: Tokens.Code): HTMLElement {
  const code = h('code', {}, ...piecesOf(text, lang));
  loadHighlightLanguage(lang)?.then(
    () => code.replaceChildren(...piecesOf(text, lang)),
    () => undefined, // the server is gone: the code stays plain
  );
  const copy = copyButton('the code', () => text);
  return h('div', { class: 'code-block' }, h('pre', { class: 'code', is: { tabindex: 0 } }, code), copy);
}

function piecesOf(text: string, lang: string): readonly (Node | string)[] {
  return highlightCode(text, lang).flatMap((line, at) => [
    ...(at === 0 ? [] : ['\n']),
    ...line.map(({ text: piece, kind }) => (kind === '' ? piece : h('span', { class: `hl-${kind}` }, piece))),
  ]);
}
