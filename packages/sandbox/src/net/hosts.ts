// Host rules (`--net`): which hosts and ports a sandboxed command may reach.
//
// Guarantees
//   1. A host has one parsed form, made by the WHATWG URL host parser. This form is matched, resolved and dialled.
//   2. A rule without a port allows ports 80 and 443 only.
//   3. `*.example.com` allows every subdomain at any depth, and not `example.com` itself.
//   4. IP literals match only a rule that names the same address.
//
// `addresses.ts` decides about the addresses that a permitted name resolves to.

import { isIPv4, isIPv6 } from 'node:net';
import { domainToASCII } from 'node:url';

export type HostRule = { readonly host: string; readonly subdomains: boolean; readonly port?: number };

type Host = { readonly host: string; readonly kind: 'name' | 'address' };
export type Target = Host & { readonly port: number };

const DEFAULT_PORTS: readonly number[] = [80, 443];
const NAME_CHARS_MAX = 253;
const LABEL_CHARS_MAX = 63;
const SHOWN_CHARS_MAX = 80;
const FORMS = 'for example packages.example.com, *.example.com, 127.0.0.1:4873 or [::1]:8080';

/** Parses one `--net` value. Throws an Error whose message shows a correct form. */
export function parseHostRule(text: string): HostRule {
  const wrong = (why: string): Error => new Error(`${showHostText(text)} ${why}; write a host, ${FORMS}`);
  if (text === '') throw new Error(`The host is empty; write one, ${FORMS}`);
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u0020\u007f-\u00a0]/.test(text)) throw wrong('contains a space or a control character');
  if (/[/\\?#]/.test(text)) throw wrong('is a URL or a path, not a host');
  if (text.includes('@')) throw wrong('contains a user name');
  if (isIPv6(text)) throw new Error(`${showHostText(text)} needs brackets around the IPv6 address; write [${text}]`);
  const subdomains = text.startsWith('*.');
  const { name, port } = splitHostPort(subdomains ? text.slice(2) : text, wrong);
  const host = hostOfRule(name, wrong);
  if (subdomains && (host.kind === 'address' || !host.host.includes('.')))
    throw wrong('is too wide: a wildcard needs a domain of at least two labels');
  return { host: host.host, subdomains, ...(port === undefined ? {} : { port }) };
}

/** Parses `host:port` as a proxy client sends it. Throws an Error if it has no unambiguous parsed form. */
export function parseHostTarget(authority: string, defaultPort?: number): Target {
  const wrong = (why: string): Error => new Error(`${showHostText(authority)} ${why}`);
  const { name, port = defaultPort } = splitHostPort(authority, wrong);
  if (port === undefined) throw wrong('has no port');
  return { ...parseHostName(name, wrong), port };
}

/** True if a rule names the target's host and port. The addresses of a name are a separate decision. */
export function doHostRulesPermit(rules: readonly HostRule[], { host, kind, port }: Target): boolean {
  return rules.some((rule) => {
    const reached = rule.port === undefined ? DEFAULT_PORTS.includes(port) : rule.port === port;
    return reached && (rule.subdomains ? kind === 'name' && host.endsWith(`.${rule.host}`) : host === rule.host);
  });
}

/** Writes a target as `host:port`, with brackets around IPv6. */
export function formatHostTarget({ host, port }: Pick<Target, 'host' | 'port'>): string {
  return `${bracketHost(host)}:${port}`;
}

/** Writes the narrowest `--net` value that permits the target. */
export function formatHostRule(target: Pick<Target, 'host' | 'port'>): string {
  return DEFAULT_PORTS.includes(target.port) ? bracketHost(target.host) : formatHostTarget(target);
}

const bracketHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);

type Wrong = (why: string) => Error;

function splitHostPort(text: string, wrong: Wrong): { name: string; port?: number } {
  const [, name = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(text) ?? [];
  if (port === undefined) return { name };
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535) throw wrong('has a port that is not from 1 to 65535');
  return { name, port: Number(port) };
}

/** Rules also accept international names, and refuse every IPv4 spelling but the dotted one. */
function hostOfRule(text: string, wrong: Wrong): Host {
  const ascii = /^[\u0021-\u007e]*$/.test(text) ? text : domainToASCII(text);
  if (ascii === '' && text !== '') throw wrong('is not a valid international domain name');
  const parsed = parseHostName(ascii, wrong);
  if (parsed.kind === 'address' && isIPv4(parsed.host) && parsed.host !== text.replace(/\.$/, ''))
    throw wrong(`is an unusual spelling of ${parsed.host}`);
  return parsed;
}

function parseHostName(text: string, wrong: Wrong): Host {
  if (/^\[[\da-f:.]+\]$/i.test(text)) {
    const host = hostByUrlRules(text).slice(1, -1);
    if (!isIPv6(host)) throw wrong('is not an IPv6 address');
    return { host, kind: 'address' };
  }
  const name = text.replace(/\.$/, '').toLowerCase();
  if (name.length > NAME_CHARS_MAX) throw wrong(`is longer than ${NAME_CHARS_MAX} characters`);
  if (!name.split('.').every(isHostLabel)) throw wrong('is not a host name');
  const host = hostByUrlRules(name);
  if (isIPv4(host)) return { host, kind: 'address' };
  if (host !== name) throw wrong('is not a host name');
  return { host, kind: 'name' };
}

const isHostLabel = (label: string): boolean =>
  label.length <= LABEL_CHARS_MAX && /^[a-z\d_]([a-z\d_-]*[a-z\d_])?$/.test(label);

/** Callers pass only characters that cannot end the host part of a URL. Empty if the parser refuses the host. */
const hostByUrlRules = (text: string): string => URL.parse(`http://${text}/`)?.hostname ?? '';

/** Quotes untrusted text as printable ASCII of bounded length. */
function showHostText(text: string): string {
  const quoted = JSON.stringify(text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}...` : text);
  return quoted.replaceAll(/[^\u0020-\u007e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
