// Text for a terminal: no control sequence survives, whatever the text holds and however it is split.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  cleanText,
  Cleaner,
  textOnOneLine,
  widthOfText,
  writeOutControls,
} from '../../../bin/views/text/terminal-text.ts';

test.each([
  ['a colour', '\u001b[1;31mred\u001b[0m', 'red'],
  ['a title, ended by BEL', '\u001b]0;title\u0007text', 'text'],
  ['a link, ended by ST', '\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\', 'link'],
  ['a device string', '\u001bPq#0\u001b\\text', 'text'],
  ['eight-bit introducers', '\u009b31mred \u009d0;x\u009ctext', 'red text'],
  ['a charset switch', '\u001b(0text', 'text'],
  ['a reset', '\u001bctext', 'text'],
  ['backspaces, bells and returns', 'a\bb\u0007c\rd\u007f', 'abcd'],
  ['direction overrides', 'a\u202eb\u2066c\u2069', 'abc'],
  ['a stray ESC before a line break', 'a\u001b\nb', 'a\nb'],
  ['a sequence that never ends', '\u001b]0;never\nended', '\nended'],
  ['line breaks, tabs and letters of any kind', 'ä\tß\n日本 👩‍👩‍👧', 'ä\tß\n日本 👩‍👩‍👧'],
])('%s', (_, text, cleaned) => {
  expect(cleanText(text)).toBe(cleaned);
});

const anything = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\u001b', '\u001b[', '\u001b]', '\u009b', '\u001b\\', '\u0007', '\n', '31m', ';'),
    ),
  )
  .map((pieces) => pieces.join(''));
// oxlint-disable-next-line no-control-regex
const FORBIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

test('no text keeps anything that controls a terminal', () => {
  fc.assert(fc.property(anything, (text) => !FORBIDDEN.test(cleanText(text))));
});

test('text in pieces is cleaned like the whole text', () => {
  fc.assert(
    fc.property(fc.array(anything), (pieces) => {
      const cleaner = new Cleaner();
      expect(pieces.map((piece) => cleaner.push(piece)).join('')).toBe(cleanText(pieces.join('')));
    }),
  );
});

test('text after a stray ESC is not dropped for ever', () => {
  expect(cleanText(`\u001b]${'x'.repeat(10_000)}`).length).toBeGreaterThan(5_000);
});

test.each([
  ['short', 10, 'short'],
  ['exactly 10', 10, 'exactly 10'],
  ['eleven char', 10, 'eleven ch…'],
  ['two\n lines\tand tabs', 40, 'two lines and tabs'],
  ['日本語テキスト', 8, '日本語…'],
  ['日本語テ', 8, '日本語テ'],
  ['e\u0301e\u0301e\u0301', 2, 'e\u0301…'],
  ['𗀀𗀁𗀂𗀃 Tangut', 8, '𗀀𗀁𗀂…'],
  ['नमो नमो', 6, 'नमो न…'],
])('%j cut to %i columns is %j', (text, columns, cut) => {
  expect(textOnOneLine(text, columns)).toBe(cut);
});

test.each([
  ['a flag is one sign', '🇩🇪', 2],
  ['a family is one sign', '👨‍👩‍👧', 2],
  ['a Hangul syllable is as wide as its block', '\u1112\u1161\u11AB', 2],
])('width: %s', (_, text, columns) => {
  expect(widthOfText(text)).toBe(columns);
});

test('a text that needs the user’s consent hides nothing', () => {
  const text = 'rm a\u0008\u0008b \u200bc\u202ed\u001b[2K\nnext\tline\u2028\u00ad ä日👍';
  expect(writeOutControls(text)).toBe(
    'rm a\\u{8}\\u{8}b \\u{200b}c\\u{202e}d\\u{1b}[2K\nnext\\u{9}line\\u{2028}\\u{ad} ä日👍',
  );
});
