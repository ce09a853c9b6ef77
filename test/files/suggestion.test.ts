// "Did you mean …?": which known word is near enough to a mistyped one.

import { nearest, suggestion } from '@drover/documents/suggestion';
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
  expect(nearest(typed, ['batch', 'run', 'resume'])).toBe(meant);
});

test('two slips are too many in a short word, and four in a long one', () => {
  expect(['rxy', 'uxn', 'rexxxme'].map((typed) => nearest(typed, ['run', 'resume']))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(nearest('rexxme', ['run', 'resume'])).toBe('resume');
  expect(nearest('completixxxx', ['completion'])).toBeUndefined();
});

test('the nearest of several words is suggested, with its prefix', () => {
  expect(suggestion('modle', ['node', 'model'], '--')).toBe('; did you mean --model?');
  expect(suggestion('zzz', ['node', 'model'], '--')).toBe('');
});
