// Inline Markdown as nodes: emphasis, code and links. HTML and images are shown as text.
//
// A link leads only to http, https or mailto, opens in a tab of its own without access to this page, and does
// nothing before it is clicked: the server tells browsers not to look up its host. Where the words look like another
// address, the true one follows.

import type { Token, Tokens } from '@drover/markdown/block-stream';
import { unescapeMarkdown } from '@drover/markdown/entities';
import { isDisguisedLink, safeLinkAddress } from '@drover/markdown/links';
import { h } from '../../dom.ts';

type InlineNode = Node | string;

const DEPTH_MAX = 24;

export function inlineNodes(tokens: readonly Token[], depth = 0): readonly InlineNode[] {
  return tokens.flatMap((token) => inlineOf(token as Tokens.Generic, depth));
}

function inlineOf(token: Tokens.Generic, depth: number): readonly InlineNode[] {
  if (depth > DEPTH_MAX) return [token.raw];
  const inner = inlineNodes(token.tokens ?? [], depth + 1);
  switch (token.type) {
    case 'strong':
      return [h('strong', {}, ...inner)];
    case 'em':
      return [h('em', {}, ...inner)];
    case 'del':
      return [h('del', {}, ...inner)];
    case 'codespan':
      return [h('code', {}, token['text'] as string)];
    case 'link':
      return linkOf(token as Tokens.Link, inner);
    case 'image':
      return linkOf(token as Tokens.Image, [`image: ${(token as Tokens.Image).text}`]);
    case 'br':
      return [h('br')];
    case 'checkbox':
      return [];
    case 'html':
      return [token.raw];
    default:
      return inner.length > 0 ? inner : [unescapeMarkdown((token['text'] as string | undefined) ?? token.raw)];
  }
}

function linkOf({ href, text }: Tokens.Link | Tokens.Image, words: readonly InlineNode[]): readonly InlineNode[] {
  const address = safeLinkAddress(href);
  if (address === undefined) return [...words, href === '' || href === text ? '' : ` (${href})`];
  const is = { href: address, target: '_blank', rel: 'noopener noreferrer', title: address };
  const link = h('a', { is }, ...words);
  return isDisguisedLink(link.textContent, address) ? [link, ` (${address})`] : [link];
}
