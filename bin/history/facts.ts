// Formats facts one below the other for the user: a name each, then the text, broken between words.

import type { Style } from '../views/text/style.ts';
import { cleanText } from '../views/text/terminal-text.ts';
import { wrapText } from '../views/text/word-wrap.ts';

const NAME_COLUMNS = 8;

/** A mark at the start of the text is coloured. */
type Mark = { readonly sign: string; readonly format: Parameters<Style>[0] };
export type Fact = readonly [name: string, text: string, mark?: Mark];
export type Paper = { readonly columns: number; readonly style: Style };

/** Empty facts are left out. */
export function formatHistoryFacts(facts: readonly Fact[], { columns, style }: Paper): string {
  const indent = ' '.repeat(2 + NAME_COLUMNS);
  return facts
    .filter(([, text]) => text !== '')
    .map(([name, text, mark]) => {
      const whole = `${mark === undefined ? '' : `${mark.sign} `}${cleanText(text).replaceAll('\n', ' ')}`;
      const words = wrapText(whole, columns - indent.length).replaceAll('\n', `\n${indent}`);
      const shown = mark === undefined ? words : words.replace(mark.sign, () => style(mark.format, mark.sign));
      return `  ${style('dim', name.padEnd(NAME_COLUMNS))}${shown}\n`;
    })
    .join('');
}

export function historyHeading(title: string, { columns, style }: Paper): string {
  return title === '' ? '' : `${style('bold', wrapText(cleanText(title), columns))}\n`;
}
