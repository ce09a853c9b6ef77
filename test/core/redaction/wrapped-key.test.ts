// A key file in base64, as `base64 < key.pem` prints it: in lines.

import { Redactor } from '@drover/core/redaction/redactor';
import { expect, test } from 'vitest';
import { PLANTED } from '../../support/data/planted-secrets.ts';

const keys = PLANTED.filter(({ text }) => text.includes('PRIVATE KEY-----\n'));
const wrapped = (text: string, columns: number): string =>
  (
    Buffer.from(text)
      .toString('base64')
      .match(new RegExp(`.{1,${columns}}`, 'g')) ?? []
  ).join('\n');

// The word after the key looks like one more line of it, and is redacted with it.
test.each([64, 76])('in lines of %i characters no part of the key is left', (columns) => {
  expect(keys.length).toBeGreaterThan(2);
  for (const { text } of keys) {
    const lines = wrapped(text, columns);
    const whole = new Redactor([]).text(`the key:\n${lines}\n\nand that was it\n`);
    expect(whole).toMatch(/^the key:\n\[redacted:[\w-]+\] that was it\n$/);
    const deltas = new Redactor([]).deltas();
    const pieces = `the key:\n${lines}\n\nand that was it\n`.match(/[\s\S]{1,7}/g) ?? [];
    expect(pieces.map((piece) => deltas.push(piece)).join('') + deltas.flush()).toBe(whole);
  }
});
