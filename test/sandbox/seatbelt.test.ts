// The profile for macOS, as text. Its effect can be seen only on a Mac.

import { seatbeltProfile } from '@drover/sandbox/seatbelt';
import { confineScript, hasSandboxStarted } from '@drover/sandbox/sandbox';
import { expect, test } from 'vitest';
import { POLICY } from '../support/sandbox/policy.ts';

const BASE = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read-metadata)
(allow file-read* (literal "/"))
(allow file-read* file-write-data (subpath "/dev/fd"))
(allow file-read* file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))
(allow file-read* (subpath "/usr"))
(allow file-read* (subpath "/bin"))
(allow file-read* (subpath "/sbin"))
(allow file-read* (subpath "/System"))
(allow file-read* (subpath "/Library/Developer"))
(allow file-read* (subpath "/opt"))
(allow file-read* (subpath "/private/etc/ssl"))
(allow file-read* (subpath "/private/var/db/timezone"))
(allow file-read* file-write* (subpath "/box"))
`;

test('the profile denies everything, then allows the root and the toolchains', () => {
  expect(seatbeltProfile(POLICY)).toBe(`${BASE}(allow file-read* file-write* (subpath "/w/project"))
(allow file-read* (subpath "/h/person/.tools"))
`);
});

test('the profile names folders outside in, and pins those with a sealed path', () => {
  const policy = {
    ...POLICY,
    readable: ['/w'],
    sealed: ['/w/project/.vscode/tasks.json'],
    hidden: ['/w/project/a "quoted\\ name'],
    proxy: { socket: '/s/proxy', rules: [] },
  };
  expect(seatbeltProfile(policy)).toBe(`${BASE}(allow file-read* (subpath "/w"))
(allow file-read* file-write* (subpath "/w/project"))
(deny file-read* file-write* (subpath "/w/project/a \\"quoted\\\\ name"))
(allow file-read* (subpath "/h/person/.tools"))
(deny file-write-unlink (literal "/w/project/.vscode"))
(allow file-read* (subpath "/w/project/.vscode/tasks.json"))
(deny file-write* (subpath "/w/project/.vscode/tasks.json"))
(allow network-outbound (literal "/s/proxy"))
(allow network* (local ip "localhost:*") (remote ip "localhost:*"))
`);
});

test('sandbox-exec is given the profile and the command', () => {
  const policy = {
    ...POLICY,
    system: { ...POLICY.system, backend: 'seatbelt' as const, program: '/usr/bin/sandbox-exec' },
  };
  const { file, args, files, report } = confineScript(policy, {});
  expect({ file, first: args.slice(0, 4), files, report }).toEqual({
    file: '/usr/bin/sandbox-exec',
    first: ['-p', seatbeltProfile(policy), '/bin/bash', '-c'],
    files: [],
    report: false,
  });
});

test('only an exit code in the report says that a command was started', () => {
  expect(['', '{ "child-pid": 7 }\n', '{ "child-pid": 7 }\n{ "exit-code": 0 }\n'].map(hasSandboxStarted)).toEqual([
    false,
    false,
    true,
  ]);
});
