// Every shape of secret, planted in each form in which it occurs.

import { CONTEXT_SHAPES } from '@drover/core/redaction/shapes/context-shapes';
import { Redactor } from '@drover/core/redaction/redactor';
import { TOKEN_SHAPES } from '@drover/core/redaction/shapes/token-shapes';
import { expect, test } from 'vitest';
import { PLANTED } from '../../support/data/planted-secrets.ts';

const redactor = new Redactor([]);
const label = /\[redacted:[a-z0-9-]+\]/g;

test('every shape has a planted secret, and there are more than sixty', () => {
  const shapes = new Set([...TOKEN_SHAPES, ...CONTEXT_SHAPES].map((shape) => shape.id));
  expect([...shapes].filter((id) => !PLANTED.some((planted) => planted.id === id))).toEqual([]);
  expect(shapes.size).toBeGreaterThan(60);
});

test.each(PLANTED)('$id is replaced by its name', ({ id, text, secret }) => {
  expect(redactor.text(text)).toBe(text.replace(secret, () => `[redacted:${id}]`));
});

test('text around a secret stays', () => {
  const lines = PLANTED.map(({ text }) => `before (${text}) behind`);
  expect(lines.map((line) => redactor.text(line)).filter((line) => !/^before \(.*\) behind$/s.test(line))).toEqual([]);
});

test('a secret in a JSON string is found, escaped once or twice', () => {
  const survivors = PLANTED.filter(({ text, secret }) => {
    const once = JSON.stringify(`line\n${text}\tend`);
    const escaped = JSON.stringify(secret).slice(1, -1);
    const twice = JSON.stringify(once);
    const escapedTwice = JSON.stringify(escaped).slice(1, -1);
    return redactor.text(once).includes(escaped) || redactor.text(twice).includes(escapedTwice);
  });
  expect(survivors.map(({ id }) => id)).toEqual([]);
});

test.each(['base64', 'base64url'] as const)('a secret inside %s is found at any offset', (encoding) => {
  const survivors = PLANTED.flatMap(({ id, text, secret }) =>
    ['', ' ', '  ', 'key: '].map((before) => {
      const shown = redactor.text(`data ${Buffer.from(`${before}${text} and so on`).toString(encoding)} end`);
      const plain = shown.split(/[^\w+/=-]/).map((word) => Buffer.from(word, 'base64').toString('latin1'));
      const isGone = !plain.some((word) => word.includes(secret.slice(-8)));
      return shown.match(label) !== null && isGone && shown.startsWith('data ') && shown.endsWith(' end')
        ? undefined
        : `${id} after '${before}'`;
    }),
  );
  expect(survivors.filter((survivor) => survivor !== undefined)).toEqual([]);
});

test('a word joined to the front of base64 does not hide its content', () => {
  const key = PLANTED.find(({ id }) => id === 'aws-access-key-id')?.secret ?? '';
  const base64 = Buffer.from(key).toString('base64');
  const words = ['x-', 'key-', 'token-', 'folder/', 'data', 'body', 'result'];
  expect(words.map((word) => redactor.text(word + base64))).toEqual(
    words.map((word) => `${word}[redacted:aws-access-key-id]`),
  );
});

test('binary bytes are not secrets, whatever they look like', () => {
  const base64 = Buffer.from('a://b\u00ff:\u00fe\u00fd\u00fc@c', 'latin1').toString('base64');
  expect(redactor.text(base64)).toBe(base64);
});

test('redacting twice changes nothing more', () => {
  const once = PLANTED.map(({ text }) => redactor.text(`see ${text} there`));
  expect(once.map((text) => redactor.text(text))).toEqual(once);
});

test('an escape or a colour before a token does not hide it', () => {
  const key = PLANTED.find(({ id }) => id === 'aws-access-key-id')?.secret ?? '';
  const texts = [String.raw`id:\n${key}`, `id%3D${key}`, `\u001b[32m${key}\u001b[0m`, String.raw`\u0022${key}`];
  expect(texts.map((text) => redactor.text(text))).toEqual(
    texts.map((text) => text.replace(key, '[redacted:aws-access-key-id]')),
  );
});

test('a key in a diff, in quotes or with line numbers is redacted to its last line', () => {
  const pem = PLANTED.find(({ id }) => id === 'private-key')?.secret ?? '';
  const lines = pem.split('\n');
  const bodies = lines.slice(1, -1);
  const texts = ['-', '+', '> ', '    ', '| '].map((mark) => lines.map((line) => mark + line).join('\n'));
  const numbered = lines.map((line, index) => `${index + 7}\t${line}`).join('\n');
  const quoted = lines.map((line) => `"${line}\\n" +`).join('\n');
  for (const text of [...texts, numbered, quoted]) {
    const shown = redactor.text(`${text}\nThe end.`);
    expect(bodies.filter((body) => shown.includes(body))).toEqual([]);
    expect(shown).toContain('\nThe end.');
  }
});
