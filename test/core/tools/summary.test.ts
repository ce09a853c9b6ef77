// A call and its result in one line each: short, and harmless on a terminal.

import type { Json } from '@drover/protocol/json';
import { toolInputSummary, toolOutputSummary } from '@drover/core/tools/summary';
import { expect, test } from 'vitest';

test.each<[string, Json, string]>([
  ['the command', { path: 'b', command: 'pnpm test' }, 'x: pnpm test'],
  ['the path', { pattern: 'p', path: 'src/a.ts' }, 'x: src/a.ts'],
  ['the query', { url: 'u', query: 'q' }, 'x: q'],
  ['the pattern', { url: 'u', pattern: 'p' }, 'x: p'],
  ['the url', { url: 'u' }, 'x: u'],
  ['the first that is not empty', { command: ' ', path: '', query: 'q' }, 'x: q'],
  ['what is text', { command: 5, path: 'p' }, 'x: p'],
  ['the raw input where nothing tells more', { action: 'status' }, 'x {"action":"status"}'],
  ['the raw input that is no object', [1], 'x [1]'],
])('a call is summarised by %s', (_, args, summary) => {
  expect(toolInputSummary('x', args)).toBe(summary);
});

test('a call takes at most 100 code points, whatever they are', () => {
  expect(toolInputSummary('x', { command: 'a'.repeat(97) })).toBe(`x: ${'a'.repeat(97)}`);
  expect(toolInputSummary('x', { command: 'a'.repeat(98) })).toBe(`x: ${'a'.repeat(96)}…`);
  expect(Array.from(toolInputSummary('x', { command: '🦊'.repeat(500) }))).toHaveLength(100);
});

test('a result takes at most 80 code points', () => {
  expect(toolOutputSummary('b'.repeat(80))).toBe('b'.repeat(80));
  expect(toolOutputSummary('b'.repeat(81))).toBe(`${'b'.repeat(79)}…`);
});

test.each([
  ['lines', ' one\r\n\ttwo\u2028three\n', 'one two three'],
  ['colours', '\x1b[31mred\x1b[0m', 'red'],
  ['window titles', '\x1b]0;title\x07text', 'text'],
  ['cursor moves and bells', 'a\x1b[2Jb\x07c\x08d', 'ab c d'],
  ['eight-bit controls', 'a\x9bb\x85c', 'a b c'],
  ['direction overrides', 'evil\u202Egpj.exe\u2066\u2069', 'evilgpj.exe'],
  ['invisible characters', 'a\u200Bb\uFEFFc\u{E0041}d', 'abcd'],
  ['half characters', 'a\uD800b', 'a\uFFFDb'],
])('%s leave one clean line', (_, text, summary) => {
  expect(toolOutputSummary(text)).toBe(summary);
});

test('a family of emoji stays together', () => {
  expect(toolOutputSummary('👩‍👧')).toBe('👩‍👧');
});
