// A policy as a profile for sandbox-exec, which macOS has. Experimental: its text is tested everywhere, its effect
// only on a Mac.
//
// Rules further down win, so the order is: deny everything, allow what every program needs, then folders from the
// outside in. There are no mounts: HOME and /tmp are private by their variables alone, and the real ones cannot be
// read.

import { type Mount, bubblewrapMounts } from './linux/bubblewrap.ts';
import type { SandboxPolicy } from './policy.ts';

const BASE = [
  '(version 1)',
  '(deny default)',
  '(allow process-exec process-fork)',
  '(allow signal (target same-sandbox))',
  '(allow sysctl-read)',
  '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
  '(allow file-read-metadata)',
  '(allow file-read* (literal "/"))',
  '(allow file-read* file-write-data (subpath "/dev/fd"))',
  '(allow file-read* file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))',
  '(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))',
];

const SYSTEM = [
  '/usr',
  '/bin',
  '/sbin',
  '/System',
  '/Library/Developer',
  '/opt',
  '/private/etc/ssl',
  '/private/var/db/timezone',
];

export function seatbeltProfile(policy: SandboxPolicy): string {
  const { folder, proxy } = policy;
  const lines = [
    ...BASE,
    ...SYSTEM.map((path) => `(allow file-read* (subpath ${quoteForSeatbelt(path)}))`),
    `(allow file-read* file-write* (subpath ${quoteForSeatbelt(folder)}))`,
    ...bubblewrapMounts(policy)
      .filter(({ from, at }) => from === at)
      .flatMap(({ kind, at }) => seatbeltRules(kind, quoteForSeatbelt(at))),
    ...(proxy === undefined
      ? []
      : ['(allow network-outbound (literal ' + quoteForSeatbelt(proxy.socket) + '))', LOOPBACK]),
  ];
  return `${lines.join('\n')}\n`;
}

// The relay and its clients meet on loopback, and nowhere else.
const LOOPBACK = '(allow network* (local ip "localhost:*") (remote ip "localhost:*"))';

function seatbeltRules(kind: Mount['kind'], path: string): readonly string[] {
  switch (kind) {
    case 'hidden':
      return [`(deny file-read* file-write* (subpath ${path}))`];
    case 'sealed':
      return [`(allow file-read* (subpath ${path}))`, `(deny file-write* (subpath ${path}))`];
    case 'writable':
    case 'cache':
      return [`(allow file-read* file-write* (subpath ${path}))`];
    case 'readable':
    case 'brought':
      return [`(allow file-read* (subpath ${path}))`];
    case 'pinned':
      return [`(deny file-write-unlink (literal ${path}))`];
  }
}

function quoteForSeatbelt(path: string): string {
  return `"${path.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}
