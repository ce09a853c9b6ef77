// A prompt as paragraphs and code, split at fences and back-ticks only. Links and markup stay plain text.

import { h } from '../dom.ts';

const FENCED = /^(```[^\n]*\n[\s\S]*?(?:^```[ \t]*$|$(?![\s\S])))/m;

export function prosePart(text: string): readonly Node[] {
  return text.split(FENCED).flatMap((part): readonly Node[] => {
    if (part.startsWith('```')) return [h('pre', { class: 'code' }, insideOfProsePart(part))];
    const words = part.replace(/^\n+|\n+$/g, '');
    return words === '' ? [] : [h('p', {}, ...inlineProsePart(words))];
  });
}

function insideOfProsePart(fenced: string): string {
  return fenced.replace(/^```[^\n]*\n/, '').replace(/\n?```[ \t]*$/, '');
}

function inlineProsePart(text: string): readonly (Node | string)[] {
  return text.split(/(`[^`\n]+`)/).map((part) => (/^`[^`]+`$/.test(part) ? h('code', {}, part.slice(1, -1)) : part));
}
