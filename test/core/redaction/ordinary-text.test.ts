// Text that is not secret: it stays as it is, and neither it nor anything hostile takes long.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Redactor } from '@drover/core/redaction/redactor';
import { expect, test } from 'vitest';
import { PLANTED } from '../../support/planted-secrets.ts';

const redactor = new Redactor(['correct-horse-battery-staple', 'a1b2c3d4e5f6g7h8']);
const LINES = 20_000; // of each kind
const TOUCHED_MAX = LINES / 1_000;

// Bytes that look random and are the same in every run.
const digest = (algorithm: string, line: number): Buffer => createHash(algorithm).update(`line ${line}`).digest();
const hex = (line: number): string => digest('sha256', line).toString('hex');
const uuid = (line: number): string => hex(line).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
const word = (line: number): string =>
  digest('md5', line)
    .toString('base64url')
    .replace(/[\d_-]/g, '')
    .slice(0, 7)
    .toLowerCase();

const CORPORA: readonly (readonly [string, (line: number) => string])[] = [
  ['pnpm lock files', (line) => `    resolution: {integrity: sha512-${digest('sha512', line).toString('base64')}}`],
  [
    'npm lock files',
    (line) =>
      `      "resolved": "https://registry.example.com/@s/${word(line)}/-/${word(line)}-1.${line}.0.tgz", "integrity": "sha1-${digest('sha1', line).toString('base64')}",`,
  ],
  ['cargo lock files', (line) => `checksum = "${hex(line)}"`],
  [
    'go sums',
    (line) => `example.com/${word(line)} v1.${line}.0/go.mod h1:${digest('sha256', line).toString('base64')}`,
  ],
  [
    'git logs',
    (line) =>
      `${hex(line).slice(0, 40)} (HEAD -> main) Merge ${hex(line).slice(40, 47)} into ${word(line)}-key-${line}`,
  ],
  [
    'UUIDs',
    (line) =>
      `{"id":"${uuid(line)}","token_type":"${word(line)}","url":"http://localhost:${line % 9_999}/@${word(line)}/x"}`,
  ],
  ['capital hashes', (line) => hex(line).toUpperCase()],
  [
    'bundled code',
    (line) =>
      `var ${word(line)}=e=>{if(e.token&&e.key===${line})return t.get("/api/${word(line)}?key="+n.secret_key,{password:r.pw||i("${word(line)}")})};t.pat.${word(line)}(e,n.sk_,"${hex(line).slice(0, 20)}");`,
  ],
];

test.each(CORPORA)('fewer than one line in a thousand of %s is touched', (_, lineOf) => {
  const touched = Array.from({ length: LINES }, (__, line) => lineOf(line)).filter(
    (line) => redactor.text(line) !== line,
  );
  expect(touched.length).toBeLessThan(TOUCHED_MAX);
});

test('the lock file of this repository stays as it is', () => {
  const text = readFileSync('pnpm-lock.yaml', 'utf8');
  expect(redactor.text(text)).toBe(text);
});

test('what only speaks of secrets stays as it is', () => {
  const lines = [
    'Set ANTHROPIC_API_KEY=<your key> or export GITHUB_TOKEN=$(gh auth token) first.',
    'Keys begin with sk-ant- or sk-proj-, GitHub tokens with ghp_ and AWS ids with AKIA.',
    'A PEM file begins with `-----BEGIN RSA PRIVATE KEY-----` and then has base64.',
    'git clone https://github.com/acme/tool.git && curl http://localhost:8080/@scope/pkg',
    'curl -H "Authorization: Bearer $TOKEN" "https://$USER:$PASSWORD@example.com"',
    'Authorization: Bearer <token>, or x-api-key: <key>',
    'const password = process.env.DB_PASSWORD; connect({ password, token: getToken() });',
    '//registry.example.com/:_authToken=${NPM_TOKEN}',
    'npm_config_registry, npm_lifecycle_event, secret_key_base, sk-navigation-bar-item-is-active',
    '-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----',
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  ];
  expect(lines.map((line) => redactor.text(line))).toEqual(lines);
});

// Repeated, these ask the most of the search: beginnings without an end, secrets without a gap, base64 of both.
const HOSTILE = [
  ...String.raw`a - = / A 0 \ " eyJ eyJ- .eyJ :// ://a: ----- ab ghp_ ;password= MTA sk- 0Q~`.split(' '),
  ' ',
  '\n',
  ' eyJ',
  'Bearer ',
  'host=a password=',
  'login a password ',
  '-----BEGIN PRIVATE KEY-----\n',
  '-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA',
  '-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA.',
  ...['eyJ', '://', 'sk-', 're_', 'SG.', 'Bearer ', 'ghp_a1 '].map((unit) =>
    Buffer.from(unit.repeat(3)).toString('base64'),
  ),
  ...[' eyJ', ' sk-', ' ://'].map((unit) => unit + 'a1'.repeat(200)),
  ...PLANTED.filter(({ id }) =>
    ['private-key', 'putty-key', 'jwt', 'github-personal-token', 'url-password'].includes(id),
  ).map(({ text }) => text),
];

test.each([
  ['whole', 60_000, (text: string) => redactor.text(text)],
  ['in small pieces', 8_000, streamInSmallPieces],
])('no text, %s, takes more than its length deserves', (_, chars, redact) => {
  const slow = HOSTILE.filter((unit) => {
    const short = cpuMsOf(() => redact(unit.repeat(Math.ceil(chars / unit.length))));
    const long = cpuMsOf(() => redact(unit.repeat(Math.ceil((8 * chars) / unit.length))));
    // Eight times the length; what grows with the square takes sixty-four times as long. The clock's tick is 4 ms.
    return long > 400 && long > 30 * Math.max(short, 4);
  });
  expect(slow).toEqual([]);
});

function streamInSmallPieces(text: string): void {
  const redaction = redactor.deltas();
  for (let at = 0; at < text.length; at += 4) redaction.push(text.slice(at, at + 4));
  redaction.flush();
}

// What this thread has worked, so that a busy machine changes nothing.
function cpuMsOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
