// Inline Markdown as spans: emphasis, code, links, images and entities.

import type { Token, Tokens } from 'marked';
import { isDisguised, safeAddress } from './links.ts';
import { type Looks, type Span, span } from './spans.ts';

type Formats = Span['formats'];

export function inlineSpans(tokens: readonly Token[], looks: Looks, formats: Formats = []): readonly Span[] {
  return tokens.flatMap((token) => spansOf(token as Tokens.Generic, looks, formats));
}

function spansOf(token: Tokens.Generic, looks: Looks, formats: Formats): readonly Span[] {
  const inner = (more: Formats): readonly Span[] => inlineSpans(token.tokens ?? [], looks, [...formats, ...more]);
  switch (token.type) {
    case 'strong':
      return looks.isColoured ? inner(['bold']) : [span('**'), ...inner([]), span('**')];
    case 'em':
      return looks.isColoured ? inner(['italic']) : [span('*'), ...inner([]), span('*')];
    case 'del':
      return looks.isColoured ? inner(['strikethrough']) : [span('~~'), ...inner([]), span('~~')];
    case 'codespan':
      return [looks.isColoured ? span(token['text'] as string, [...formats, 'cyan']) : span(token.raw)];
    case 'link':
      return linkSpans(token as Tokens.Link, looks, formats);
    case 'image':
      return linkSpans(
        { ...(token as Tokens.Image), text: `image: ${token['text'] as string}`, tokens: [] },
        looks,
        formats,
      );
    case 'br':
      return [span('\n', formats)];
    case 'checkbox':
      return [];
    case 'html':
      return [span(token.raw.replaceAll('\n', ' '), formats)];
    default: {
      if (token.tokens !== undefined && token.tokens.length > 0) return inner([]);
      const text = (token['text'] as string | undefined) ?? token.raw;
      return [span(unescaped(text).replaceAll('\n', ' '), formats)];
    }
  }
}

type Link = Pick<Tokens.Link, 'href' | 'text'> & { readonly tokens: readonly Token[] };

/** The words of a link. The address follows unless the terminal makes a link of them, or they are the address. */
function linkSpans({ href, text, tokens }: Link, looks: Looks, formats: Formats): readonly Span[] {
  const address = safeAddress(href);
  const words = tokens.length === 0 ? [span(text, formats)] : inlineSpans(tokens, looks, formats);
  const said = words.map((each) => each.text).join('');
  const shown = words.map((each) => ({
    ...each,
    formats: [...each.formats, 'underline' as const],
    ...(address !== undefined && { href: address }),
  }));
  const isAddress = said === href || `mailto:${said}` === href || said === address;
  if (isAddress || href === '') return shown;
  if (looks.hasLinks && address !== undefined && !isDisguised(said, address)) return shown;
  return [...shown, span(` (${address ?? href})`, [...formats, 'dim'])];
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' };
const CODE_MAX = 0x10ffff;

/** Replaces character references. The caller cleans the text afterwards: a reference can name a control character. */
function unescaped(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{1,8}));/gi,
    (whole, ...groups: (string | undefined)[]) => {
      const [decimal, hex, name] = groups;
      if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
      return code === 0 || code > CODE_MAX || (code >= 0xd800 && code <= 0xdfff)
        ? '\uFFFD'
        : String.fromCodePoint(code);
    },
  );
}
