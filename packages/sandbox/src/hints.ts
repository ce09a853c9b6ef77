// Hints: reads the output of a failed command for signs that the sandbox denied something.
//
// A hint names the narrowest option with which the user can allow it. A hint can be wrong, so it says "if".

import { resolve } from 'node:path';
import type { SandboxPolicy } from './policy.ts';

const TAIL_CHARS = 20_000;

const IN_GIT = /(?:^|\/)\.git(?:\/|$)/;
const GIT_IS_SEALED = '.git is read-only in the sandbox; the commit tool makes commits, after the user was asked';

// The host is the first group.
const UNREACHED: readonly RegExp[] = [
  /getaddrinfo (?:EAI_AGAIN|ENOTFOUND) ([\w.-]+)/,
  /[Cc]ould not resolve (?:host|hostname|proxy):? '?([\w.-]+)/,
  /[Tt]emporary failure resolving '([\w.-]+)'/,
  /dial tcp: lookup ([\w.-]+)/,
  /NameResolutionError\([^)]*host='?([\w.-]+)/,
  /Failed to (?:establish|resolve)[^\n]*?'([\w.-]+\.\w+)'/,
  /UnknownHostException: ([\w.-]+)/,
  /drover: the sandbox does not allow (\[[\da-f:]+\](?::\d+)?|[\w.-]+(?::\d+)?)/,
];
const NO_NETWORK =
  /Temporary failure in name resolution|Network is unreachable|ENETUNREACH|Could not resolve|EAI_AGAIN|failed to lookup address|CONNECT tunnel failed, response 403/;
const ADDRESS = /https?:\/\/([\w.-]+)/;
const READ_ONLY = /(?:'|"|: |^)(\/[^'":\n]+?)['"]?: Read-only file system|EROFS: read-only file system, \w+ '([^']+)'/m;

/** Returns hints for a failed command. Its script may name a host that its output does not. */
export function sandboxHintsFor(output: string, script: string, { proxy, root }: SandboxPolicy): readonly string[] {
  const tail = output.slice(-TAIL_CHARS);
  const host = UNREACHED.map((pattern) => pattern.exec(tail)?.[1]).find((found) => found !== undefined);
  const path = READ_ONLY.exec(tail);
  const file = path?.[1] ?? path?.[2];
  const isOffline = host !== undefined || NO_NETWORK.test(tail);
  const state = proxy === undefined ? 'the sandbox has no network' : 'the sandbox reaches allowed hosts only';
  return [
    ...(isOffline
      ? [
          `${state}; if the work needs it, the user can allow it with --net ${host ?? ADDRESS.exec(script)?.[1] ?? 'HOST'}`,
        ]
      : []),
    ...(file !== undefined && IN_GIT.test(file) ? [GIT_IS_SEALED] : []),
    ...(file === undefined || IN_GIT.test(file)
      ? []
      : [
          `${resolve(root, file)} is read-only in the sandbox; if the work needs it, the user can allow it with --writable PATH`,
        ]),
  ];
}
