// The exact secret values of a process, found in every form.

import type { Json } from '@drover/protocol/json';
import { Redactor } from '@drover/core/redaction/redactor';
import { secretValues } from '@drover/core/redaction/secret-values';
import { expect, test } from 'vitest';

const PLAIN = 'correct-horse-battery';
const ODD = 'p"a\\s/w+ö rd=&9\n!';
const redactor = new Redactor([PLAIN, ODD]);
const bytes = Buffer.from(ODD);

test.each([
  ['as it is', ODD],
  ['in JSON', JSON.stringify(ODD).slice(1, -1)],
  ['in JSON inside JSON', JSON.stringify(JSON.stringify(ODD)).slice(3, -3)],
  [
    'in JSON of ASCII alone',
    JSON.stringify(ODD)
      .slice(1, -1)
      .replace('ö', String.raw`\u00f6`),
  ],
  [
    'in JSON with escaped slashes',
    JSON.stringify(ODD)
      .slice(1, -1)
      .replace('/', String.raw`\/`),
  ],
  ['in an address', encodeURIComponent(ODD)],
  ['in an address in small letters', encodeURIComponent(ODD).replace(/%../g, (code) => code.toLowerCase())],
  ['in a form', encodeURIComponent(ODD).replaceAll('%20', '+')],
  ['in hex', bytes.toString('hex')],
  ['in capital hex', bytes.toString('hex').toUpperCase()],
  ['in base64', bytes.toString('base64')],
  ['in base64 for addresses', bytes.toString('base64url')],
])('a value is found %s', (_, form) => {
  expect(redactor.text(`<${form}>`)).toBe('<[redacted:value]>');
});

test.each(['base64', 'base64url'] as const)(
  'a value is found in the middle of %s, whatever surrounds it',
  (encoding) => {
    for (const before of ['', 'a', 'ab', 'abc', 'user:', '{"password":"']) {
      for (const behind of ['', '\n', '"}', ' and more of the same']) {
        const shown = redactor.text(Buffer.from(before + PLAIN + behind).toString(encoding));
        expect(shown).toContain('[redacted:value]');
        expect(Buffer.from(shown.replace('[redacted:value]', ''), 'base64').toString()).not.toContain(
          PLAIN.slice(1, 9),
        );
      }
    }
  },
);

test('a value longer than any shape is found whole and in part', () => {
  const long = Array.from({ length: 90 }, (_, index) => `line ${index} of a long key`).join('\n');
  const { text } = { text: (part: string) => new Redactor([long]).text(part) };
  expect(text(`a ${long} z`)).toBe('a [redacted:value] z');
  expect(text(`a ${JSON.stringify(long)} z`)).toBe('a "[redacted:value]" z');
  expect(text(`a ${long.slice(0, 600)} z`)).toMatch(/^a \[redacted:value\].{1,256} z$/s);
});

test('short and common values are not searched for', () => {
  const text = 'the password of admin on localhost is hunter2 in production, aaaaaaaaaa';
  expect(new Redactor(['admin', 'hunter2', 'password', 'localhost', 'production', '', 'aaaaaaaaaa']).text(text)).toBe(
    text,
  );
});

test('a value that begins inside another is redacted too', () => {
  const text = new Redactor(['abcdefghij', 'efghijklmnop']).text('-abcdefghijklmnop-');
  expect(text).toBe('-[redacted:value]-');
});

test('every string of an event is redacted, keys are not; the event is not changed', () => {
  const event = {
    type: 'tool',
    [PLAIN]: 1,
    args: { list: ['ok', PLAIN], deep: { n: null, yes: true, s: `x${PLAIN}` } },
  };
  const before = structuredClone(event);
  expect(redactor.value(event)).toEqual({
    type: 'tool',
    [PLAIN]: 1,
    args: { list: ['ok', '[redacted:value]'], deep: { n: null, yes: true, s: 'x[redacted:value]' } },
  });
  expect(event).toEqual(before);
});

test('an event without secrets, and each clean part, is returned as the same object', () => {
  const clean = { a: [1, { b: 'text' }], c: null };
  expect(redactor.value(clean)).toBe(clean);
  expect(redactor.value({ clean, dirty: PLAIN }).clean).toBe(clean);
});

test('endless nesting is cut and does not crash', () => {
  const deep: unknown = JSON.parse('['.repeat(50_000) + ']'.repeat(50_000));
  expect(JSON.stringify(redactor.value(deep as []))).toContain('[redacted:too-deep]');
});

test('variables are secret by name, and addresses by their password', () => {
  const env = {
    ANTHROPIC_API_KEY: 'value-of-anthropic',
    github_token: 'value-of-github',
    AWS_SECRET_ACCESS_KEY: 'value-of-aws',
    DB_PASSWORD_2: 'value-of-db',
    MYSQL_PWD: 'value-of-mysql',
    SIGNING_SECRET_CURRENT: 'value-of-signing',
    SLACK_WEBHOOK_URL: 'https://example.com/hook/value',
    DATABASE_URL: 'postgres://app:p%40ssw0rd-db@db:5432/app',
    STORAGE: 'AccountName=x;AccountKey=bm90LWEta2V5;Suffix=y',
    GOOGLE_APPLICATION_CREDENTIALS: '/srv/me/service.json',
    TLS_KEY: './certs/key.pem',
    DEPLOY_KEY: '/srv/me/.ssh/id_ed25519',
    STORAGE_KEY: '/srv1K2x/vL9pQ',
    PWD: '/srv/me/projects',
    OLDPWD: '/srv/me/elsewhere',
    PATH: '/usr/bin:/usr/local/bin',
    SSH_AUTH_SOCK: '/tmp/agent.sock.1234',
    TOKEN_ENDPOINT: 'https://example.com/token',
    STRIPE_PUBLISHABLE_KEY: 'pk_live_public_thing',
    KEYBOARD_LAYOUT: 'us-international',
    API_KEY: 'short',
    EMPTY_TOKEN: undefined,
    HOMEPAGE: 'https://example.com:8080/a@b',
  };
  expect(secretValues(env)).toEqual([
    'value-of-anthropic',
    'value-of-github',
    'value-of-aws',
    'value-of-db',
    'value-of-mysql',
    'value-of-signing',
    'https://example.com/hook/value',
    'p%40ssw0rd-db',
    'p@ssw0rd-db',
    'bm90LWEta2V5',
    '/srv1K2x/vL9pQ',
  ]);
});

test.each([255, 256, 257, 512, 513])(
  'a secret of %i characters is found whole, and no part of it hides other text',
  (size) => {
    const secret = Array.from({ length: size - 1 }, (_, at) => 'abcdefghij'[(at * 7 + Math.floor(at / 10)) % 10]).join(
      '',
    );
    const long = new Redactor([`${secret}z`]);
    const hidden = long.text(`<${secret}z>`);
    expect(hidden.replaceAll('[redacted:value]', '')).toBe('<>');
    expect(long.text('a zebra in a zoo, z')).toBe('a zebra in a zoo, z');
  },
);

const DEPTH = 1_000;

test.each([
  ['lists', (inner: Json): Json => [inner]],
  ['objects', (inner: Json): Json => ({ inner })],
])('%s are redacted to the maximum depth, and cut off below', (_, wrap) => {
  const nested = (text: string, depth: number): Json => {
    let value: Json = text;
    for (let level = 0; level < depth; level++) value = wrap(value);
    return value;
  };
  const deepest = JSON.stringify(redactor.value(nested(PLAIN, DEPTH + 1)));
  expect(deepest).toBe(JSON.stringify(nested('[redacted:value]', DEPTH + 1)));
  const deeper = JSON.stringify(redactor.value(nested(PLAIN, DEPTH + 2)));
  expect(deeper).toBe(JSON.stringify(nested('[redacted:too-deep]', DEPTH + 1)));
  expect(JSON.stringify(redactor.value(nested(PLAIN, 100_000)))).toBe(deeper);
});
