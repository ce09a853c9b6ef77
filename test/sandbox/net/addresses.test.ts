// Special addresses: a public name must not lead to them unless a rule names them.

import { canonicalAddress, describeSpecialAddress, findForbiddenAddress } from '@drover/sandbox/net/addresses';
import { parseHostRule, parseHostTarget } from '@drover/sandbox/net/hosts';
import { expect, test } from 'vitest';

const KINDS: readonly [string, string | undefined][] = [
  ['127.0.0.1', 'a loopback address'],
  ['127.255.255.254', 'a loopback address'],
  ['::1', 'a loopback address'],
  ['::ffff:7f00:1', 'a loopback address'],
  ['64:ff9b::7f00:1', 'a loopback address'],
  ['2002:7f00:1::', 'a loopback address'],
  ['169.254.169.254', 'a metadata address'],
  ['fd00:ec2::254', 'a metadata address'],
  ['::ffff:169.254.169.254', 'a metadata address'],
  ['64:ff9b::a9fe:a9fe', 'a metadata address'],
  ['169.254.0.1', 'a link-local address'],
  ['fe80::1', 'a link-local address'],
  ['10.0.0.1', 'a private address'],
  ['172.16.0.1', 'a private address'],
  ['172.31.255.255', 'a private address'],
  ['192.168.1.1', 'a private address'],
  ['2002:c0a8:101::1', 'a private address'],
  ['fc00::1', 'a private address'],
  ['fdff::1', 'a private address'],
  ['100.64.0.1', 'a carrier-grade NAT address'],
  ['100.127.255.255', 'a carrier-grade NAT address'],
  ['224.0.0.1', 'a multicast address'],
  ['ff02::1', 'a multicast address'],
  ['0.0.0.0', 'an unspecified address'],
  ['0.1.2.3', 'an unspecified address'],
  ['::', 'an unspecified address'],
  ['::ffff:0:0', 'an unspecified address'],
  ['255.255.255.255', 'a reserved address'],
  ['192.0.0.8', 'a reserved address'],
  ['2001::1', 'a reserved address'],
  ['203.0.113.80', undefined],
  ['198.18.0.1', undefined],
  ['2001:db8::1', undefined],
  ['2001::1', 'a reserved address'],
  ['64:ff9b:1::7f00:1', 'a reserved address'],
  ['::7f00:1', 'a reserved address'],
  ['100::1', 'a reserved address'],
  ['8.8.8.8', undefined],
  ['172.32.0.1', undefined],
  ['100.128.0.1', undefined],
  ['169.253.255.255', undefined],
  ['2606:4700::1111', undefined],
  ['::ffff:8.8.8.8', undefined],
  ['64:ff9b::808:808', undefined],
  ['2002:808:808::1', undefined],
];

test.each(KINDS)('%s is %s', (address, kind) => {
  expect(describeSpecialAddress(address)).toBe(kind);
});

const forbidden = (rules: readonly string[], addresses: readonly string[]) =>
  findForbiddenAddress(rules.map(parseHostRule), parseHostTarget('name.example.com:443'), addresses);

test('one special address among public ones is found', () => {
  expect(forbidden(['name.example.com'], ['8.8.8.8', '10.0.0.5'])).toEqual({
    address: '10.0.0.5',
    kind: 'a private address',
  });
  expect(forbidden(['name.example.com'], ['8.8.8.8', '2606:4700::1111'])).toBeUndefined();
});

test('a rule that names the address with its port lets a name lead there', () => {
  expect(forbidden(['10.0.0.5'], ['10.0.0.5'])).toBeUndefined();
  expect(forbidden(['10.0.0.5:8080'], ['10.0.0.5'])).toBeDefined();
  expect(forbidden(['10.0.0.5'], ['10.0.0.6'])).toBeDefined();
});

test('localhost in a rule names loopback addresses and no others', () => {
  expect(forbidden(['localhost'], ['127.0.0.1', '::1'])).toBeUndefined();
  expect(forbidden(['localhost:4873'], ['127.0.0.1'])).toBeDefined();
  expect(forbidden(['localhost'], ['169.254.169.254'])).toBeDefined();
});

test('an answer of a resolver has a canonical form, or none', () => {
  expect(['1.2.3.4', '::FFFF:1.2.3.4', '0:0::1'].map(canonicalAddress)).toEqual(['1.2.3.4', '::ffff:102:304', '::1']);
  expect(['fe80::1%eth0', '127.1', 'example.com', ''].map(canonicalAddress)).toEqual(Array(4).fill(undefined));
});
