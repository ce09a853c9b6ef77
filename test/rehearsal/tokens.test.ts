// Tokens of the scripted model: four code points each.

import { meterTokensIn } from '@drover/rehearsal/meter/tokens';
import { expect, test } from 'vitest';

test.each(['a', 'ü', '日', '\u{10000}', '🦊', '\u{10FFFF}'])('%j counts as one code point', (character) => {
  expect(meterTokensIn(character.repeat(8))).toBe(2);
});
