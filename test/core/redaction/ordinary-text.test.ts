// Text without secrets stays unchanged, and no text takes long. A sample; the slow lane runs more.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CORPORA, redactor, streamInSmallPieces, tooSlow, touched } from '../../support/data/ordinary-text.ts';

const LINES = 4_000; // per kind

test.each(CORPORA)('fewer than one line in a thousand of %s is touched', (_, lineOf) => {
  expect(touched(lineOf, LINES)).toBeLessThan(LINES / 1_000);
});

test('the lock file of this repository stays as it is', () => {
  const text = readFileSync('pnpm-lock.yaml', 'utf8');
  expect(redactor.text(text)).toBe(text);
});

test('text that only mentions secrets stays as it is', () => {
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

test.each([
  ['whole', 20_000, (text: string) => redactor.text(text)],
  ['in small pieces', 4_000, streamInSmallPieces],
])('redacting a text, %s, takes linear time', (_, chars, redact) => {
  expect(tooSlow(chars, redact)).toEqual([]);
});
