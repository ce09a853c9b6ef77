// Host rules and targets: one parsed form decides, and hostile spellings have none.

import { parseHostRule, parseHostTarget, doHostRulesPermit, type HostRule } from '@drover/sandbox/net/hosts';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const RULES: readonly [string, HostRule][] = [
  ['packages.example.com', { host: 'packages.example.com', subdomains: false }],
  ['Packages.EXAMPLE.com', { host: 'packages.example.com', subdomains: false }],
  ['packages.example.com.', { host: 'packages.example.com', subdomains: false }],
  ['*.example.com', { host: 'example.com', subdomains: true }],
  ['*.example.com:8443', { host: 'example.com', subdomains: true, port: 8443 }],
  ['example.com:8443', { host: 'example.com', subdomains: false, port: 8443 }],
  ['127.0.0.1:4873', { host: '127.0.0.1', subdomains: false, port: 4873 }],
  ['[::1]:8080', { host: '::1', subdomains: false, port: 8080 }],
  ['[0:0:0:0:0:0:0:1]', { host: '::1', subdomains: false }],
  ['localhost:4873', { host: 'localhost', subdomains: false, port: 4873 }],
  ['bücher.example', { host: 'xn--bcher-kva.example', subdomains: false }],
  ['xn--bcher-kva.example', { host: 'xn--bcher-kva.example', subdomains: false }],
  ['my_mirror', { host: 'my_mirror', subdomains: false }],
];

test.each(RULES)('the rule %s is parsed', (text, rule) => {
  expect(parseHostRule(text)).toEqual(rule);
});

const NOT_RULES: readonly [string, string][] = [
  ['', 'The host is empty'],
  ['*', 'is not a host name'],
  ['*.com', 'is too wide'],
  ['*.', 'is not a host name'],
  ['*.*.example.com', 'is not a host name'],
  ['a*.example.com', 'is not a host name'],
  ['*.0.0.1', 'is an unusual spelling of 0.0.0.1'],
  ['*.127.0.0.1', 'is too wide'],
  ['*.[::1]', 'is too wide'],
  ['https://example.com', 'is a URL or a path'],
  ['example.com/path', 'is a URL or a path'],
  ['example.com\\@evil.example', 'is a URL or a path'],
  ['example.com?x', 'is a URL or a path'],
  ['example.com#x', 'is a URL or a path'],
  ['user@example.com', 'contains a user name'],
  ['example .com', 'contains a space'],
  ['example.com\n', 'contains a space or a control character'],
  ['evil.example\u0000.example.com', 'contains a space or a control character'],
  ['example.com\u0085', 'contains a space or a control character'],
  ['ex%61mple.com', 'is not a host name'],
  ['\u202eexample.com', 'is not a valid international domain name'],
  ['exa／mple.com', 'is not a valid international domain name'],
  ['１２７.0.0.1', 'is an unusual spelling of 127.0.0.1'],
  ['example..com', 'is not a host name'],
  ['.example.com', 'is not a host name'],
  ['example.com..', 'is not a host name'],
  ['-example.com', 'is not a host name'],
  ['example.com:', 'has a port that is not from 1 to 65535'],
  ['example.com:0', 'has a port that is not from 1 to 65535'],
  ['example.com:65536', 'has a port that is not from 1 to 65535'],
  ['example.com:080', 'has a port that is not from 1 to 65535'],
  ['example.com:http', 'has a port that is not from 1 to 65535'],
  ['example.com:1:2', 'has a port that is not from 1 to 65535'],
  ['0x7f.1', 'is an unusual spelling of 127.0.0.1'],
  ['2130706433', 'is an unusual spelling of 127.0.0.1'],
  ['127.1', 'is an unusual spelling of 127.0.0.1'],
  ['0177.0.0.1', 'is an unusual spelling of 127.0.0.1'],
  ['256.0.0.1', 'is not a host name'],
  ['1.2.3.4.5', 'is not a host name'],
  ['[::1', 'has a port that is not from 1 to 65535'],
  ['[abc', 'is not a host name'],
  ['[::g]', 'is not a host name'],
  ['[1.2.3.4]', 'is not an IPv6 address'],
  ['[fe80::1%25eth0]', 'is not a host name'],
  ['::1', 'write [::1]'],
  [`${'a'.repeat(64)}.example.com`, 'is not a host name'],
  [`${'a.'.repeat(130)}example.com`, 'is longer than 253 characters'],
];

test.each(NOT_RULES)('the rule %j is refused with a reason', (text, reason) => {
  expect(() => parseHostRule(text)).toThrow(reason);
});

test('a refused rule is shown in printable ASCII, shortened, with a correct form', () => {
  expect(() => parseHostRule('é\u0000\u001b[31m')).toThrow(
    '"\\u00e9\\u0000\\u001b[31m" contains a space or a control character; write a host, ' +
      'for example packages.example.com, *.example.com, 127.0.0.1:4873 or [::1]:8080',
  );
  expect(() => parseHostRule('/'.repeat(1000))).toThrow(`"${'/'.repeat(80)}..." is a URL or a path`);
});

const TARGETS: readonly [string, string, number][] = [
  ['Example.COM:443', 'example.com', 443],
  ['example.com.:443', 'example.com', 443],
  ['127.1:80', '127.0.0.1', 80],
  ['0x7f000001:80', '127.0.0.1', 80],
  ['2852039166:80', '169.254.169.254', 80],
  ['[::FFFF:127.0.0.1]:80', '::ffff:7f00:1', 80],
  ['[0:0::0:1]:80', '::1', 80],
];

test.each(TARGETS)('the target %s has one parsed form', (authority, host, port) => {
  expect(parseHostTarget(authority)).toMatchObject({ host, port });
});

const NOT_TARGETS = [
  '',
  ':443',
  'example.com',
  'example.com:',
  'example.com:443:80',
  'user@example.com:443',
  'evil.example\u0000.example.com:443',
  'evil.example\r\n.example.com:443',
  'evil.example/.example.com:443',
  'evil.example%00.example.com:443',
  'evil.example\\.example.com:443',
  'ex\tample.com:443',
  'b\u00fccher.example:443',
  '*.example.com:443',
  '::1:443',
  '[::1%25lo]:443',
  '[::1]443',
  '[]:443',
];

test.each(NOT_TARGETS)('the target %j is refused', (authority) => {
  expect(() => parseHostTarget(authority)).toThrow(/./);
});

const MATCHES: readonly [string, string, boolean][] = [
  ['example.com', 'example.com:443', true],
  ['example.com', 'example.com:80', true],
  ['example.com', 'example.com:8443', false],
  ['example.com', 'sub.example.com:443', false],
  ['example.com', 'notexample.com:443', false],
  ['example.com:8443', 'example.com:8443', true],
  ['example.com:8443', 'example.com:443', false],
  ['*.example.com', 'a.example.com:443', true],
  ['*.example.com', 'a.b.example.com:443', true],
  ['*.example.com', 'example.com:443', false],
  ['*.example.com', 'notexample.com:443', false],
  ['127.0.0.1', '127.1:80', true],
  ['127.0.0.1', 'localhost:80', false],
  ['localhost', '127.0.0.1:80', false],
  ['127.0.0.1', '[::ffff:127.0.0.1]:80', false],
  ['[::1]', '[0::1]:80', true],
];

test.each(MATCHES)('the rule %s about the target %s says %s', (rule, authority, permitted) => {
  expect(doHostRulesPermit([parseHostRule(rule)], parseHostTarget(authority))).toBe(permitted);
});

const RULE_SET = ['example.com', '*.wild.example.com', '127.0.0.1:4873', '[::1]:8080'].map(parseHostRule);
const NOISE = ['', '', '', '.', 'a.', 'evil', '@', '\u0000', '\r\n', '%00', '/', '\\', '#', '?', '*', ' ', '\u3002'];
const noise = fc.constantFrom(...NOISE, '\uff0e', '\u00ad', 'xn--', '-', '_', '[', ']', ':80');
const host = fc.oneof(
  fc.constantFrom('example.com', 'EXAMPLE.com', 'wild.example.com', 'a.wild.example.com', 'evil.example'),
  fc.constantFrom('127.0.0.1', '127.1', '0x7f.1', '[::1]', '[0:0::1]', '[::ffff:127.0.0.1]'),
  fc.string({ maxLength: 20 }),
);
const port = fc.constantFrom(':443', ':80', ':4873', ':8080', '');
const authorities = fc.tuple(noise, host, noise, port).map((parts) => parts.join(''));

/** Written without the parser: exactly the spellings that parse to a named host. */
function isExpected(host: string, port: number): boolean {
  if (host === '127.0.0.1') return port === 4873;
  if (host === '::1') return port === 8080;
  const labels = host.split('.');
  const wild = labels.length > 3 && labels.slice(-3).join('.') === 'wild.example.com';
  return (host === 'example.com' || wild) && (port === 80 || port === 443);
}

test('a target is permitted only if its one parsed form is', () => {
  let permitted = 0;
  const property = fc.property(authorities, (authority) => {
    let target;
    try {
      target = parseHostTarget(authority);
    } catch {
      return;
    }
    expect(target.host).toMatch(target.kind === 'name' ? /^[a-z\d_][a-z\d._-]*$/ : /^[\da-f.:]+$/);
    const written = target.host.includes(':') ? `[${target.host}]` : target.host;
    expect(parseHostTarget(`${written}:${target.port}`)).toEqual(target);
    expect(doHostRulesPermit(RULE_SET, target)).toBe(isExpected(target.host, target.port));
    permitted += doHostRulesPermit(RULE_SET, target) ? 1 : 0;
  });
  fc.assert(property, { numRuns: 5_000 });
  expect(permitted).toBeGreaterThan(0);
});
