// Blocks of Markdown as rows of a terminal: headings, paragraphs, lists, tables, quotes, code.

import type { Token, Tokens } from '@drover/markdown/block-stream';
import { type CodePiece, highlightCode } from '@drover/markdown/highlight';
import { inlineMarkdownSpans } from './inline.ts';
import { type Looks, type Row, type Span, markdownSpan, wrapMarkdownSpans } from './spans.ts';
import { markdownTableRows } from './table.ts';

const CODE_INDENT = '  ';
const COLUMNS_MIN = 8;
const RULE_COLUMNS_MAX = 40;

export type Page = {
  readonly columns: number;
  readonly looks: Looks;
  /** Code lines keep their length, so that they can be copied; else they are wrapped like text. */
  readonly keepsCode: boolean;
};

/** The rows of the blocks, with an empty row between two. */
export function markdownBlockRows(tokens: readonly Token[], page: Page): readonly Row[] {
  const rows: Row[] = [];
  for (const token of tokens) {
    if (token.type === 'space' || token.type === 'def') continue;
    const own = markdownTokenRows(token as Tokens.Generic, page);
    if (own.length === 0) continue;
    if (rows.length > 0) rows.push([]);
    rows.push(...own);
  }
  return rows;
}

function markdownTokenRows(token: Tokens.Generic, page: Page): readonly Row[] {
  const { columns, looks } = page;
  switch (token.type) {
    case 'heading':
      return markdownHeadingRows(token as Tokens.Heading, page);
    case 'code':
      return markdownCodeRows(token as Tokens.Code, page);
    case 'list':
      return markdownListRows(token as Tokens.List, page);
    case 'table':
      return markdownTableRows(token as Tokens.Table, columns, looks);
    case 'blockquote': {
      const bar = markdownSpan(looks.isAscii ? '| ' : '│ ', ['dim']);
      return markdownBlockRows(token.tokens ?? [], narrowerMarkdownPage(page, 2)).map((row) => [bar, ...row]);
    }
    case 'hr':
      return [[markdownSpan((looks.isAscii ? '-' : '─').repeat(Math.min(columns, RULE_COLUMNS_MAX)), ['dim'])]];
    case 'html':
      return wrapMarkdownSpans([markdownSpan(token.raw.trimEnd())], columns);
    default:
      return wrapMarkdownSpans(inlineMarkdownSpans(token.tokens ?? [token], looks), columns);
  }
}

function markdownHeadingRows({ depth, tokens }: Tokens.Heading, { columns, looks }: Page): readonly Row[] {
  const formats: Span['formats'] = depth === 1 ? ['bold', 'underline'] : ['bold'];
  const mark = looks.isColoured && depth < 3 ? [] : [markdownSpan(`${'#'.repeat(depth)} `, ['dim'])];
  return wrapMarkdownSpans([...mark, ...inlineMarkdownSpans(tokens, looks, formats)], columns);
}

function markdownCodeRows({ text, lang = '' }: Tokens.Code, { columns, looks, keepsCode }: Page): readonly Row[] {
  const code = highlightCode(text.replaceAll('\t', '    '), looks.isColoured ? lang : '');
  const lines = code.map((line) => line.map(codeSpan));
  const rows = keepsCode ? lines : lines.flatMap((line) => markdownHardRows(line, columns - CODE_INDENT.length));
  return rows.map((row) => (row.length === 0 ? row : [markdownSpan(CODE_INDENT), ...row]));
}

function codeSpan({ text, kind }: CodePiece): Span {
  return markdownSpan(text, CODE_FORMATS[kind] ?? []);
}

const CODE_FORMATS: Readonly<Record<string, Span['formats']>> = {
  keyword: ['magenta'],
  built_in: ['cyan'],
  type: ['cyan'],
  literal: ['yellow'],
  number: ['yellow'],
  string: ['green'],
  regexp: ['green'],
  comment: ['dim'],
  meta: ['dim'],
  title: ['blue'],
  section: ['blue'],
  name: ['blue'],
  attr: ['cyan'],
  attribute: ['cyan'],
  variable: ['cyan'],
  addition: ['green'],
  deletion: ['red'],
};

/** Breaks a line of code at the width, wherever that is. */
function markdownHardRows(line: readonly Span[], columns: number): readonly Row[] {
  const rows: Span[][] = [[]];
  let room = columns;
  for (const each of line) {
    let { text } = each;
    while (text.length > room) {
      rows.at(-1)?.push({ ...each, text: text.slice(0, room) });
      rows.push([]);
      text = text.slice(room);
      room = columns;
    }
    rows.at(-1)?.push({ ...each, text });
    room -= text.length;
  }
  return rows;
}

function markdownListRows({ items, ordered, start, loose }: Tokens.List, page: Page): readonly Row[] {
  const first = typeof start === 'number' ? start : 1;
  const widest = ordered ? `${first + items.length - 1}. `.length : 2;
  return items.flatMap((item, at) => {
    const bullet = page.looks.isAscii ? '- ' : '• ';
    const mark = (ordered ? `${first + at}. ` : bullet).padStart(widest);
    const box = item.task ? (item.checked === true ? '[x] ' : '[ ] ') : '';
    const inner = markdownItemRows(item, loose, narrowerMarkdownPage(page, widest + box.length));
    const rows = (inner.length === 0 ? [[]] : inner).map((row, line): Row => {
      const before = line === 0 ? mark + box : ' '.repeat(mark.length + box.length);
      return row.length === 0 && line > 0 ? [] : [markdownSpan(before, line === 0 ? ['cyan'] : []), ...row];
    });
    return at > 0 && loose ? [[], ...rows] : rows;
  });
}

/** In a tight list, no empty row separates an item's text from the list below it. */
function markdownItemRows({ tokens }: Tokens.ListItem, loose: boolean, page: Page): readonly Row[] {
  const blocks = tokens.filter(({ type }) => type !== 'checkbox');
  return loose ? markdownBlockRows(blocks, page) : blocks.flatMap((each) => markdownBlockRows([each], page));
}

function narrowerMarkdownPage(page: Page, by: number): Page {
  return { ...page, columns: Math.max(page.columns - by, COLUMNS_MIN) };
}
