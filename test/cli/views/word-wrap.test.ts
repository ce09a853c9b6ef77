// Word wrap on a terminal: prose breaks between words, however it arrives; code is left alone.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { wrapText, WordWrap } from '../../../bin/views/text/word-wrap.ts';

test.each([
  ['short enough', 20, 'short enough'],
  ['one two three', 7, 'one two\nthree'],
  ['one two  three', 8, 'one two\nthree'],
  ['a verylongwordindeed b', 8, 'a\nverylongwordindeed b'],
  ['one\ntwo three four', 9, 'one\ntwo three\nfour'],
  ['```\ncode that is long\n```\nprose that is long', 10, '```\ncode that is long\n```\nprose that\nis long'],
  ['    indented code', 8, '    indented code'],
  ['日本語 です', 8, '日本語\nです'],
  ['日本語日本語 で す', 8, '日本語日本語 で\nす'],
  ['ends with space ', 30, 'ends with space '],
])('%j in %i columns is %j', (text, columns, broken) => {
  expect(wrapText(text, columns)).toBe(broken);
});

test('wrapping is the same however the text is split', () => {
  const words = fc.array(fc.constantFrom('a', 'word', 'longer-word', ' ', '  ', '\n', '```', '日本'), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(words, fc.integer({ min: 1, max: 40 }), (pieces, columns) => {
      const wrap = new WordWrap(() => columns);
      const inPieces = pieces.map((piece) => wrap.push(piece)).join('') + wrap.flush();
      expect(inPieces).toBe(wrapText(pieces.join(''), columns));
    }),
  );
});

test('wrapping changes only white space', () => {
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1, max: 20 }), (text, columns) => {
      expect(wrapText(text, columns).replaceAll(/[ \t\n]/g, '')).toBe(text.replaceAll(/[ \t\n]/g, ''));
    }),
  );
});
