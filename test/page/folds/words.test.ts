// Numbers, times and text as the page shows them.

import { visiblePageText } from '@drover/server/page/visible';
import {
  pageCacheShare,
  pageClockTime,
  pageCount,
  pageDollars,
  pageDuration,
  pageTimeAgo,
  timeLeft,
} from '@drover/server/page/words';
import { expect, test } from 'vitest';

test('the time left is an estimate, and is silent below a second', () => {
  expect([undefined, 0, 999, 4_240].map(timeLeft)).toEqual(['', '', '', 'about 4.2 s left']);
});

test('times and figures are short and keep their width while counting', () => {
  expect([0, 7_000, 750_000, 3_723_000].map(pageClockTime)).toEqual(['0:00', '0:07', '12:30', '1:02:03']);
  expect([0, 340, 4_240, 59_949, 59_950, 200_000, 3_700_000].map(pageDuration)).toEqual([
    '0 ms',
    '340 ms',
    '4.2 s',
    '59.9 s',
    '1 m 00 s',
    '3 m 20 s',
    '1 h 01 m',
  ]);
  expect([0, 950, 12_340, 999_949, 999_950, 1_234_567].map(pageCount)).toEqual([
    '0',
    '950',
    '12.3 k',
    '999.9 k',
    '1.00 M',
    '1.23 M',
  ]);
  expect([undefined, 0, 0.00421, 0.1, 1.266].map(pageDollars)).toEqual(['–', '$0', '$0.0042', '$0.10', '$1.27']);
  expect(pageCacheShare({ input: 10, output: 5, cacheRead: 30, cacheWrite: 0 })).toBe(75);
  expect(pageCacheShare({ input: 0, output: 5, cacheRead: 0, cacheWrite: 0 })).toBe(undefined);
});

test('ages are rounded to the nearest word', () => {
  const now = Date.UTC(2027, 0, 15, 12);
  const ago = (ms: number) => pageTimeAgo(new Date(now - ms).toISOString(), now);
  expect([0, 59_000, 240_000, 3 * 3_600_000].map(ago)).toEqual(['just now', 'just now', '4 min ago', '3 h ago']);
  expect(ago(40 * 86_400_000)).toContain('Dec');
  expect(pageTimeAgo('nonsense', now)).toBe('');
});

test.each([
  ['plain text', 'Grüße 👩‍💻 שלום\n\tdone', 'Grüße 👩‍💻 שלום\n\tdone'],
  ['colours of a terminal', '\u001B[1;31mred\u001B[0m and \u009B32mgreen', 'red and ⟨U+009B⟩32mgreen'],
  ['other sequences', '\u001B]0;title\u0007', '␛]0;title␇'],
  ['line ends', 'a\r\nb\rc', 'a\nb␍c'],
  ['text that runs backwards', 'rm \u202Efdp.txt\u2066', 'rm ⟨U+202E⟩fdp.txt⟨U+2066⟩'],
  ['control characters', 'a\0b\u007Fc\u0085', 'a␀b␡c⟨U+0085⟩'],
])('%s is shown completely', (_, text, seen) => {
  expect(visiblePageText(text)).toBe(seen);
});
