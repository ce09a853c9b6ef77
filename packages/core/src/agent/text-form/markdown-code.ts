// Blanks Markdown code and quotations: parts of an answer that show an example and are not calls.
//
// Covers fenced and indented code blocks, code spans of any number of backticks, block quotes, nested lines of
// list items, `<pre>` and `<code>` elements, and comments. The time is linear in the length of the text.

type Fence = { readonly mark: string; readonly closing: RegExp };

/** Returns the text with code and quotations blanked. Every other character keeps its position. */
export function withoutMarkdownCode(text: string): string {
  return withoutMarkdownSpans(withoutMarkdownElements(withoutMarkdownBlocks(text)));
}

const FENCE = /^([ \t]*)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*$)|~{3,})[ \t]*(\S*)/;
const QUOTE = /^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*>/;
const LIST_ITEM = /^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]/;
const CODE_INDENT = 4;
const LIST_INDENT = 2;

/** A fence with this name is a dialect of calls, so its first line is not blanked. */
const CALL_FENCE = 'tool_code';

function withoutMarkdownBlocks(text: string): string {
  let fence: Fence | undefined;
  let isAfterBlank = true;
  let isIndentedCode = false;
  let isInList = false;
  const lines = text.split('\n').map((line) => {
    if (fence !== undefined) {
      if (fence.closing.test(line)) fence = undefined;
      return blankMarkdownCode(line);
    }
    if (line.trim() === '') {
      isAfterBlank = true;
      return line;
    }
    const indent = markdownIndent(line);
    const isListed = isInList && indent >= LIST_INDENT;
    isIndentedCode = indent >= CODE_INDENT && (isAfterBlank || isIndentedCode);
    isAfterBlank = false;
    const [, before, mark, name] = FENCE.exec(line) ?? [];
    if (mark !== undefined && !isIndentedCode) {
      fence = { mark, closing: new RegExp(`^[ \\t]*${mark}${mark[0]}*[ \\t]*$`) };
      const isCall = name === CALL_FENCE && before === '' && !line.startsWith('~');
      return isCall && line.startsWith(mark) ? line : blankMarkdownCode(line);
    }
    if (isIndentedCode || isListed || QUOTE.test(line)) return blankMarkdownCode(line);
    isInList = LIST_ITEM.test(line);
    return line;
  });
  return lines.join('\n');
}

function markdownIndent(line: string): number {
  const spaces = /^[ \t]*/.exec(line)?.[0] ?? '';
  return spaces.replaceAll('\t', '    ').length;
}

const ELEMENTS: readonly (readonly [opening: RegExp, closing: string])[] = [
  [/<!--/g, '-->'],
  [/<pre\b[^<>]*>/g, '</pre>'],
  [/<code\b[^<>]*>/g, '</code>'],
];

function withoutMarkdownElements(text: string): string {
  let left = text;
  for (const [opening, closing] of ELEMENTS) {
    let from = 0;
    const pieces: string[] = [];
    for (const { index } of left.matchAll(opening)) {
      if (index < from) continue;
      const end = left.indexOf(closing, index);
      if (end === -1) break;
      pieces.push(left.slice(from, index), blankMarkdownCode(left.slice(index, end + closing.length)));
      from = end + closing.length;
    }
    left = pieces.join('') + left.slice(from);
  }
  return left;
}

function withoutMarkdownSpans(text: string): string {
  // A span ends with its paragraph, so a stray backtick blanks nothing in later paragraphs.
  return text
    .split(/(\n[ \t]*\n)/)
    .map(withoutMarkdownSpansInParagraph)
    .join('');
}

function withoutMarkdownSpansInParagraph(text: string): string {
  const runs = [...text.matchAll(/`+/g)].filter(({ 0: run, index }) => !isTextFormCallFence(text, run, index));
  const later = new Map<number, number>(); // by length: index of the next run of that length
  const closing = runs.map(() => -1);
  for (const [i, { 0: run }] of [...runs.entries()].reverse()) {
    closing[i] = later.get(run.length) ?? -1;
    later.set(run.length, i);
  }
  const pieces: string[] = [];
  let from = 0;
  for (const [i, { index }] of runs.entries()) {
    const last = runs[closing[i] ?? -1];
    if (index < from || last === undefined) continue;
    const end = last.index + last[0].length;
    pieces.push(text.slice(from, index), blankMarkdownCode(text.slice(index, end)));
    from = end;
  }
  return pieces.join('') + text.slice(from);
}

function isTextFormCallFence(text: string, run: string, index: number): boolean {
  return (index === 0 || text[index - 1] === '\n') && text.startsWith(CALL_FENCE, index + run.length);
}

function blankMarkdownCode(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ');
}
