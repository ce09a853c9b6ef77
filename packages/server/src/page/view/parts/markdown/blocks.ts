// Blocks of Markdown as elements: headings, paragraphs, lists, tables, quotes, code. HTML is shown as text.

import type { Token, Tokens } from '@drover/markdown/block-stream';
import { h } from '../../dom.ts';
import { codeBlock } from './code.ts';
import { inlineNodes } from './inline.ts';

const DEPTH_MAX = 12; // deeper blocks are shown as their source
const HEADINGS = ['h3', 'h4', 'h5', 'h6'] as const; // the page itself has two levels

export function markdownBlocks(tokens: readonly Token[], depth = 0): readonly HTMLElement[] {
  return tokens
    .filter(({ type }) => type !== 'space' && type !== 'def')
    .map((token) => (depth > DEPTH_MAX ? h('p', {}, token.raw.trim()) : blockOf(token as Tokens.Generic, depth)));
}

function blockOf(token: Tokens.Generic, depth: number): HTMLElement {
  switch (token.type) {
    case 'heading': {
      const { depth: level, tokens } = token as Tokens.Heading;
      return h(HEADINGS[Math.min(level, HEADINGS.length) - 1] ?? 'h6', {}, ...inlineNodes(tokens));
    }
    case 'code':
      return codeBlock(token as Tokens.Code);
    case 'list':
      return listOf(token as Tokens.List, depth);
    case 'table':
      return tableOf(token as Tokens.Table);
    case 'blockquote':
      return h('blockquote', {}, ...markdownBlocks(token.tokens ?? [], depth + 1));
    case 'hr':
      return h('hr');
    case 'html':
      return h('p', {}, token.raw.trimEnd());
    default:
      return h('p', {}, ...inlineNodes(token.tokens ?? [token]));
  }
}

function listOf({ items, ordered, start }: Tokens.List, depth: number): HTMLElement {
  const rows = items.map(({ tokens, task, checked }) => {
    const box = task ? h('span', { class: 'box' }, checked === true ? '☑ ' : '☐ ') : undefined;
    const blocks = markdownBlocks(
      tokens.filter(({ type }) => type !== 'checkbox'),
      depth + 1,
    );
    if (box !== undefined) blocks[0]?.prepend(box);
    return h('li', {}, ...(blocks.length === 0 && box !== undefined ? [box] : blocks));
  });
  return ordered ? h('ol', { is: { start: start === '' ? 1 : start } }, ...rows) : h('ul', {}, ...rows);
}

function tableOf({ header, rows, align }: Tokens.Table): HTMLElement {
  const cell = (tag: 'th' | 'td', { tokens }: Tokens.TableCell | { readonly tokens: Token[] }, at: number) =>
    h(tag, { is: { 'data-align': align[at] ?? 'left' } }, ...inlineNodes(tokens));
  const head = h('tr', {}, ...header.map((each, at) => cell('th', each, at)));
  const body = rows.map((row) => h('tr', {}, ...header.map((_, at) => cell('td', row[at] ?? { tokens: [] }, at))));
  // A wide table scrolls by itself, with the keyboard too.
  return h(
    'div',
    { class: 'table', is: { role: 'group', 'aria-label': 'Table', tabindex: 0 } },
    h('table', {}, h('thead', {}, head), h('tbody', {}, ...body)),
  );
}
