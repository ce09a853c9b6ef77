// Text without secrets, and text that is expensive to search: more of both than the fast lane.

import { expect, test } from 'vitest';
import { CORPORA, redactor, streamInSmallPieces, tooSlow, touched } from '../support/data/ordinary-text.ts';

const LINES = 100_000; // per kind

test.each(CORPORA)('fewer than one line in a thousand of %s is touched', (_, lineOf) => {
  expect(touched(lineOf, LINES)).toBeLessThan(LINES / 1_000);
});

test.each([
  ['whole', 60_000, (text: string) => redactor.text(text)],
  ['in small pieces', 8_000, streamInSmallPieces],
])('redacting a text, %s, takes linear time', (_, chars, redact) => {
  expect(tooSlow(chars, redact)).toEqual([]);
});
