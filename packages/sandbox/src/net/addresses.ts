// Addresses that a public name must not lead to: loopback, private networks, link-local, metadata services and the
// rest of the special-purpose registries, also where an IPv6 address embeds such an IPv4 address.
//
// Guarantees
//   1. A name whose addresses include a special one is refused, unless a rule names that address.
//   2. `localhost` in a rule names all loopback addresses.
//   3. IPv6 is special unless it is known as global unicast: an unknown range is refused.

import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { type HostRule, doHostRulesPermit, type Target } from './hosts.ts';

type Range = readonly [kind: string, ...subnets: string[]];

// The first range that contains an address names its kind. Ranges for documentation and benchmarks are not among them:
// they lead to nothing that is the user's, and some DNS proxies answer every name with such an address.
const RANGES: readonly Range[] = [
  ['a loopback address', '127.0.0.0/8', '::1/128'],
  ['a metadata address', '169.254.169.254/32', 'fd00:ec2::254/128', '168.63.129.16/32', '100.100.100.200/32'],
  ['a link-local address', '169.254.0.0/16', 'fe80::/10'],
  ['a private address', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fec0::/10'],
  ['a carrier-grade NAT address', '100.64.0.0/10'],
  ['a multicast address', '224.0.0.0/4', 'ff00::/8'],
  ['an unspecified address', '0.0.0.0/8', '::/128'],
  ['a reserved address', '192.0.0.0/24', '192.88.99.0/24', '240.0.0.0/4', '2001::/23'],
];

const LISTS = RANGES.map(([kind, ...subnets]) => ({ kind, list: addressBlockList(subnets) }));
const GLOBAL_UNICAST = addressBlockList(['2000::/3']);

/** Names the kind of a special-purpose address; undefined if the address is public. */
export function describeSpecialAddress(address: string): string | undefined {
  const embedded = isIPv6(address) ? embeddedIPv4Address(address) : undefined;
  if (embedded !== undefined) return describeSpecialAddress(embedded);
  const family = isIPv4(address) ? 'ipv4' : 'ipv6';
  const special = LISTS.find(({ list }) => list.check(address, family))?.kind;
  if (special !== undefined || family === 'ipv4') return special;
  return GLOBAL_UNICAST.check(address, 'ipv6') ? undefined : 'a reserved address';
}

/** Finds the first resolved address that the rules do not let this name lead to. */
export function findForbiddenAddress(
  rules: readonly HostRule[],
  { port }: Target,
  addresses: readonly string[],
): { readonly address: string; readonly kind: string } | undefined {
  for (const address of addresses) {
    const kind = describeSpecialAddress(address);
    const named =
      doHostRulesPermit(rules, { host: address, kind: 'address', port }) ||
      (kind === 'a loopback address' && doHostRulesPermit(rules, { host: 'localhost', kind: 'name', port }));
    if (kind !== undefined && !named) return { address, kind };
  }
  return undefined;
}

export const isLoopbackTarget = ({ host, kind }: Target): boolean =>
  kind === 'name' ? host === 'localhost' : describeSpecialAddress(host) === 'a loopback address';

/** The canonical form of a resolver's answer; undefined if it is not an address or carries a zone. */
export function canonicalAddress(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!isIPv6(text) || text.includes('%')) return undefined;
  return URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1);
}

/** The IPv4 address inside a mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96) or 6to4 (2002::/16) address. */
function embeddedIPv4Address(address: string): string | undefined {
  const groups = expandAddress(address);
  const prefix = groups.slice(0, 6).join(':');
  if (prefix === '0:0:0:0:0:ffff' || prefix === '64:ff9b:0:0:0:0') return dottedAddress(groups.slice(6));
  return groups[0] === '2002' ? dottedAddress(groups.slice(1, 3)) : undefined;
}

function expandAddress(address: string): string[] {
  const [head = '', tail] = (canonicalAddress(address) ?? '').split('::');
  const left = head === '' ? [] : head.split(':');
  if (tail === undefined) return left;
  const right = tail === '' ? [] : tail.split(':');
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => '0'), ...right];
}

const dottedAddress = (groups: readonly string[]): string =>
  groups
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.');

function addressBlockList(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', bits] = subnet.split('/');
    list.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
  }
  return list;
}
