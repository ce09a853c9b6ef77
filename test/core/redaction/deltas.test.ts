// Secrets in a stream: any split gives the same result as the whole text.

import { HELD_CHARS_MAX } from '@drover/core/redaction/delta-redaction';
import { Redactor } from '@drover/core/redaction/redactor';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PLANTED } from '../../support/data/planted-secrets.ts';

const VALUE = 'correct-horse-battery-staple';
const redactor = new Redactor([VALUE, 'efghijklmnop', 'p"ss\nwörd/+12']);

function streamed(deltas: readonly string[]): string {
  const redaction = redactor.deltas();
  return deltas.map((delta) => redaction.push(delta)).join('') + redaction.flush();
}

function cutAt(text: string, places: readonly number[]): string[] {
  const cuts = [
    0,
    ...places.map((place) => place % (text.length + 1)).sort((left, right) => left - right),
    text.length,
  ];
  return cuts.slice(1).map((end, index) => text.slice(cuts[index], end));
}

test.each(PLANTED)('$id split in two at any place is redacted like the whole', ({ text }) => {
  const line = `so ${text} and on`;
  const whole = redactor.text(line);
  const different = Array.from(line, (_, cut) => streamed([line.slice(0, cut), line.slice(cut)])).filter(
    (shown) => shown !== whole,
  );
  expect(different).toEqual([]);
});

test('every secret is caught one character at a time, plain, in JSON and in base64', () => {
  const survivors = PLANTED.flatMap(({ id, text }) =>
    [text, JSON.stringify(`x ${text}`), Buffer.from(`xy ${text} z`).toString('base64')]
      .map((form) => `so ${form} and on`)
      .filter((line) => streamed(Array.from(line)) !== redactor.text(line) || redactor.text(line) === line)
      .map(() => id),
  );
  expect(survivors).toEqual([]);
});

// Pieces of secrets and anchors, so that unfinished beginnings and overlaps are common.
const fragment = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...PLANTED).map(({ text }) => text) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom(...PLANTED), fc.nat(), fc.nat())
      .map(([{ text }, from, to]) => text.slice(from % text.length, (from % text.length) + (to % 80))),
  },
  { weight: 2, arbitrary: fc.constantFrom(...PLANTED).map(({ text }) => Buffer.from(text).toString('base64')) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(VALUE, 'abcdefghijklmnop', 'p"ss\nwörd/+12', JSON.stringify('p"ss\nwörd/+12')),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      'eyJ',
      'sk-',
      '://',
      '-----BEGIN',
      '-----END',
      '-----EN',
      '----',
      'Bearer ',
      'password=',
      'ghp',
      '\\n',
    ),
  },
  { weight: 2, arbitrary: fc.string({ maxLength: 12, unit: 'grapheme' }) },
  { weight: 3, arbitrary: fc.constantFrom(' ', '\n', ' and ', '"', '.', ', ', '=', '-', '') },
);

test('any text split anywhere gives the result of the whole, and no secret survives', () => {
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 14 }), fc.array(fc.nat(), { maxLength: 40 }), (fragments, places) => {
      const text = fragments.join('');
      const whole = redactor.text(text);
      expect(streamed(cutAt(text, places))).toBe(whole);
      expect(whole).not.toContain(VALUE);
    }),
    { numRuns: 3_000 },
  );
});

test('context before a secret still counts after much was shown', () => {
  const prose = 'Nothing to see here, and quite a lot of it. '.repeat(40);
  const different = PLANTED.filter(({ text }) => {
    const line = `${prose}${text} end`;
    const whole = redactor.text(line);
    return Array.from({ length: text.length }, (_, at) => prose.length + at).some(
      (cut) => streamed([line.slice(0, cut), line.slice(cut)]) !== whole,
    );
  });
  expect(different.map(({ id }) => id)).toEqual([]);
});

test('any text one character at a time gives the result of the whole', () => {
  fc.assert(
    fc.property(fc.array(fragment, { maxLength: 6 }), (fragments) => {
      const text = fragments.join('');
      expect(streamed(Array.from({ length: text.length }, (_, at) => text.charAt(at)))).toBe(redactor.text(text));
    }),
    { numRuns: 500 },
  );
});

test('prose is held back by at most the current word', () => {
  const prose =
    'Basic authorization is not a secret: the token and the password are. See https://example.com/a?b=c#d for the key-value ' +
    'store, "aws" or Bearer tokens; task-based work on disk-like things, pathology of patterns, re_use and secret_ keys. ';
  const redaction = redactor.deltas();
  let shown = '';
  for (const [at, char] of Array.from(prose).entries()) {
    shown += redaction.push(char);
    const word = prose.slice(0, at + 1).match(/\S* ?$/)?.[0] ?? '';
    // A word that needs a second one, such as `Bearer`, keeps both.
    const isPair = /\b(?:Basic|Bearer|token|password) \S* ?$/.test(prose.slice(0, at + 1));
    if (!isPair) expect(at + 1 - shown.length).toBeLessThanOrEqual(word.length);
  }
  expect(shown + redaction.flush()).toBe(prose);
});

test('little is held back for any input', () => {
  fc.assert(
    fc.property(fc.array(fragment, { minLength: 1, maxLength: 30 }), (fragments) => {
      const text = fragments.join('');
      if (redactor.text(text) !== text) return; // without a replacement, the held-back characters can be counted
      const redaction = redactor.deltas();
      let held = 0;
      for (const delta of cutAt(
        text,
        Array.from({ length: text.length / 3 }, (_, index) => index * 3),
      )) {
        held += delta.length - redaction.push(delta).length;
        expect(held).toBeLessThanOrEqual(HELD_CHARS_MAX);
      }
    }),
    { numRuns: 300 },
  );
});

test('each shape is decided within the bound, even if its longest part never ends', () => {
  const beginnings = PLANTED.map(({ text }) => text.slice(0, 12));
  const endless = ['a', '7', 'Q', '.', '/', '=', ' ', '-'].map((char) => char.repeat(2_000));
  const base64 = beginnings.map((start) => Buffer.from(`${start}${'a1'.repeat(800)}`).toString('base64'));
  for (const text of [...beginnings.flatMap((start) => endless.map((end) => ` ${start}${end}`)), ...base64]) {
    const redaction = redactor.deltas();
    const isClean = redactor.text(text) === text;
    if (isClean) expect(text.length - redaction.push(text).length).toBeLessThanOrEqual(HELD_CHARS_MAX);
  }
});

test('a long secret is named at once, and the rest is dropped on arrival', () => {
  const redaction = redactor.deltas();
  const key = PLANTED.find(({ id }) => id === 'private-key')?.text ?? '';
  expect(redaction.push(`key: ${key.slice(0, 200)}`)).toBe('key: [redacted:private-key]');
  expect(redaction.push(key.slice(200, 700))).toBe('');
  expect(redaction.push(`${key.slice(700)} It is!`)).toBe(' It is!');
  expect(redaction.flush()).toBe('');
});

test('a new text begins after the end', () => {
  const redaction = redactor.deltas();
  expect(redaction.push(`a ${VALUE.slice(0, 9)}`) + redaction.flush()).toBe(`a ${VALUE.slice(0, 9)}`);
  expect(redaction.push(VALUE.slice(9)) + redaction.flush()).toBe(VALUE.slice(9));
});
