// Inline Markdown as spans: emphasis, code, links, images and entities.

import type { Token, Tokens } from '@drover/markdown/block-stream';
import { unescapeMarkdown } from '@drover/markdown/entities';
import { isDisguisedLink, safeLinkAddress } from '@drover/markdown/links';
import { type Looks, type Span, markdownSpan } from './spans.ts';

type Formats = Span['formats'];

export function inlineMarkdownSpans(tokens: readonly Token[], looks: Looks, formats: Formats = []): readonly Span[] {
  return tokens.flatMap((token) => markdownTokenSpans(token as Tokens.Generic, looks, formats));
}

function markdownTokenSpans(token: Tokens.Generic, looks: Looks, formats: Formats): readonly Span[] {
  const inner = (more: Formats): readonly Span[] =>
    inlineMarkdownSpans(token.tokens ?? [], looks, [...formats, ...more]);
  switch (token.type) {
    case 'strong':
      return looks.isColoured ? inner(['bold']) : [markdownSpan('**'), ...inner([]), markdownSpan('**')];
    case 'em':
      return looks.isColoured ? inner(['italic']) : [markdownSpan('*'), ...inner([]), markdownSpan('*')];
    case 'del':
      return looks.isColoured ? inner(['strikethrough']) : [markdownSpan('~~'), ...inner([]), markdownSpan('~~')];
    case 'codespan':
      return [looks.isColoured ? markdownSpan(token['text'] as string, [...formats, 'cyan']) : markdownSpan(token.raw)];
    case 'link':
      return markdownLinkSpans(token as Tokens.Link, looks, formats);
    case 'image':
      return markdownLinkSpans(
        { ...(token as Tokens.Image), text: `image: ${token['text'] as string}`, tokens: [] },
        looks,
        formats,
      );
    case 'br':
      return [markdownSpan('\n', formats)];
    case 'checkbox':
      return [];
    case 'html':
      return [markdownSpan(token.raw.replaceAll('\n', ' '), formats)];
    default: {
      if (token.tokens !== undefined && token.tokens.length > 0) return inner([]);
      const text = (token['text'] as string | undefined) ?? token.raw;
      return [markdownSpan(unescapeMarkdown(text).replaceAll('\n', ' '), formats)];
    }
  }
}

type Link = Pick<Tokens.Link, 'href' | 'text'> & { readonly tokens: readonly Token[] };

/** The words of a link. The address follows unless the terminal makes a link of them, or they are the address. */
function markdownLinkSpans({ href, text, tokens }: Link, looks: Looks, formats: Formats): readonly Span[] {
  const address = safeLinkAddress(href);
  const words = tokens.length === 0 ? [markdownSpan(text, formats)] : inlineMarkdownSpans(tokens, looks, formats);
  const said = words.map((each) => each.text).join('');
  const shown = words.map((each) => ({
    ...each,
    formats: [...each.formats, 'underline' as const],
    ...(address !== undefined && { href: address }),
  }));
  const isAddress = said === href || `mailto:${said}` === href || said === address;
  if (isAddress || href === '') return shown;
  if (looks.hasLinks && address !== undefined && !isDisguisedLink(said, address)) return shown;
  return [...shown, markdownSpan(` (${address ?? href})`, [...formats, 'dim'])];
}
