// "Did you mean …?": which known word is near enough to a mistyped one.

import { nearestKnownWord, suggestNearestWord } from '@drover/documents/suggestion';
import { expect, test } from 'vitest';

test.each([
  ['rnu', 'run'], // two neighbouring letters swapped
  ['urn', 'run'],
  ['rn', 'run'],
  ['ruun', 'run'],
  ['ryn', 'run'],
  ['RUN', 'run'],
  ['reusme', 'resume'],
])('one slip in %s is forgiven', (typed, meant) => {
  expect(nearestKnownWord(typed, ['batch', 'run', 'resume'])).toBe(meant);
});

test('two slips are too many in a short word, and four in a long one', () => {
  expect(['rxy', 'uxn', 'rexxxme'].map((typed) => nearestKnownWord(typed, ['run', 'resume']))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(nearestKnownWord('rexxme', ['run', 'resume'])).toBe('resume');
  expect(nearestKnownWord('completixxxx', ['completion'])).toBeUndefined();
});

test('the nearest of several words is suggested, with its prefix', () => {
  expect(suggestNearestWord('modle', ['node', 'model'], '--')).toBe('; did you mean --model?');
  expect(suggestNearestWord('zzz', ['node', 'model'], '--')).toBe('');
});
