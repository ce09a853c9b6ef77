// Markdown as blocks while it streams, and Markdown that is made to keep the lexer busy.

import { BlockStream, loadMarkdownLexer, type Token } from '@drover/markdown/block-stream';
import { beforeAll, expect, test } from 'vitest';

const CHARS = 60_000;

beforeAll(() => loadMarkdownLexer());

const kinds = (tokens: readonly Token[]): readonly string[] => tokens.map(({ type, raw }) => `${type} ${raw.length}`);

function whole(text: string): readonly Token[] {
  const blocks = new BlockStream();
  return [...blocks.push(text), ...blocks.end()];
}

test.each([
  ['quotes in quotes', '>'.repeat(CHARS)],
  ['quotes in quotes, with spaces', '> '.repeat(CHARS / 2)],
  ['lists in lists', '- '.repeat(CHARS / 2)],
  ['numbered lists in lists', '1. '.repeat(CHARS / 3)],
  ['stars', `${'*'.repeat(CHARS)}a`],
  ['an address that never ends', `${'a.'.repeat(CHARS / 2)}@`],
])('%s become plain text at once', (_, text) => {
  const before = performance.now();
  expect(kinds(whole(text))).toEqual([`code ${text.length}`]);
  // Unguarded, each takes seconds or ends the stack.
  expect(performance.now() - before).toBeLessThan(500);
});

test('only the hostile part is plain, and what follows it is read', () => {
  const wall = '*'.repeat(5_000);
  const tokens = whole(`# Head\n\n${wall}\n\n- one\n- two\n`);
  expect(tokens.map(({ raw }) => raw).join('')).toBe(`# Head\n\n${wall}\n\n- one\n- two\n`);
  expect(tokens.map(({ type }) => type).filter((type) => type !== 'space')).toEqual(['heading', 'code', 'list']);
});

test('a long line inside a fence stays code', () => {
  const text = `before\n\n\`\`\`js\n${'x'.repeat(5_000)}\n\`\`\`\n\nafter\n`;
  expect(
    whole(text)
      .map(({ type }) => type)
      .filter((type) => type !== 'space'),
  ).toEqual(['paragraph', 'code', 'paragraph']);
});

test('a table is a paragraph until its second row is whole, and then a table', () => {
  const blocks = new BlockStream();
  const text = '| a | b |\n|---|---|\n| 1 | 2 |\n';
  const seen = Array.from(text).map((char) => {
    expect(blocks.push(char)).toEqual([]);
    return blocks.rest().at(-1)?.type;
  });
  const at = seen.indexOf('table');
  expect(new Set(seen.slice(0, at))).toEqual(new Set(['paragraph']));
  expect(new Set(seen.slice(at))).toEqual(new Set(['table']));
});
