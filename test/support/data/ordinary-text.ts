// Generators of text without secrets, and of text that is expensive to search.

import { createHash } from 'node:crypto';
import { Redactor } from '@drover/core/redaction/redactor';
import { PLANTED } from './planted-secrets.ts';

export const redactor = new Redactor(['correct-horse-battery-staple', 'a1b2c3d4e5f6g7h8']);

// Pseudo-random bytes, the same in every run.
const digest = (algorithm: string, line: number): Buffer => createHash(algorithm).update(`line ${line}`).digest();
const hex = (line: number): string => digest('sha256', line).toString('hex');
const uuid = (line: number): string => hex(line).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
const word = (line: number): string =>
  digest('md5', line)
    .toString('base64url')
    .replace(/[\d_-]/g, '')
    .slice(0, 7)
    .toLowerCase();

export const CORPORA: readonly (readonly [string, (line: number) => string])[] = [
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

/** How many of this many lines are changed by the redaction. */
export function touched(lineOf: (line: number) => string, lines: number): number {
  let count = 0;
  for (let line = 0; line < lines; line++) {
    const text = lineOf(line);
    if (redactor.text(text) !== text) count += 1;
  }
  return count;
}

const LONG_MS = 150;

// Repeated, these are the worst cases of the search: unfinished beginnings, adjacent secrets, base64 of both.
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

/** The texts whose time grows faster than their length, measured at this length and at eight times it. */
export function tooSlow(chars: number, redact: (text: string) => void): readonly string[] {
  return HOSTILE.filter((unit) => {
    const short = cpuMsOf(() => redact(unit.repeat(Math.ceil(chars / unit.length))));
    const long = cpuMsOf(() => redact(unit.repeat(Math.ceil((8 * chars) / unit.length))));
    // Quadratic time would be sixty-four times as long. The clock's resolution is 4 ms.
    return long > LONG_MS && long > 30 * Math.max(short, 4);
  });
}

export function streamInSmallPieces(text: string): void {
  const redaction = redactor.deltas();
  for (let at = 0; at < text.length; at += 4) redaction.push(text.slice(at, at + 4));
  redaction.flush();
}

// CPU time of this thread, which other processes do not change.
function cpuMsOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
