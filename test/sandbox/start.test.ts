// Start and end of a command in the sandbox: what it inherits, what its end reports, and a sandbox that does not start.

import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { openSandbox } from '@drover/sandbox/open';
import { confineScript } from '@drover/sandbox/sandbox';
import { expect, test } from 'vitest';
import { processesWith } from '../cli/program.ts';
import { box, FOUND, inSandbox, runInside, runOutside, temporary } from '../support/sandbox/box.ts';

inSandbox('a command in the sandbox', (system) => {
  test.each([
    ['a trace', 'set -x; echo traced; eval "echo nested"'],
    ['its variables and functions', 'echo "$0 $- $SHLVL $# $LINENO ${REPLY-unset}"; declare -F'],
    ['line numbers', '\n\nnowhere-to-be-found'],
    ['a syntax error', 'echo first\necho )'],
    ['an option as a command', '-x'],
    ['a return', 'return 3; echo next\n'],
    ['a long trace', `set -x; : ${'e'.repeat(119_000)}`],
    ['a long trace of wide characters', `set -x; : ${'é'.repeat(59_000)}`],
  ])('a script has the same output as outside: %s', async (_, script) => {
    const here = box(system);
    const [inside, outside] = [await runInside(here, script), await runOutside(here.root, script)];
    expect({ code: inside.exitCode, output: inside.output }).toEqual({
      code: outside.exitCode,
      output: outside.output,
    });
  });

  test('a script too long for an argument runs whole', async () => {
    const script = `: ${'é'.repeat(100_000)}\necho "end \${REPLY-unset}"; declare -F`;
    expect((await runInside(box(system), script)).output).toBe('end unset\n');
  });

  test.each(['', ':', '/nowhere:'])('a library that a command wrote does not reach the start: %j', async (before) => {
    const { policy, root } = box(system);
    // With one of these files in its library path, bubblewrap would not start.
    for (const name of ['libcap.so.2', 'libselinux.so.1']) writeFileSync(join(root, name), 'not a library');
    const env = { PATH: '/usr/bin:/bin', LD_LIBRARY_PATH: `${before}${root}` };
    const ran = await runInside({ policy, root }, 'echo "$LD_LIBRARY_PATH"', { env });
    expect(ran.output).toBe(`${before}${root}\n`);
  });

  test('inherited descriptors of drover are unusable inside, even in the first process', async () => {
    const { policy, root, around } = box(system);
    const secret = join(around, 'secret');
    writeFileSync(secret, 'a secret\n');
    const script =
      'for n in 3 4 5 6 7 8 9; do cat <&$n; echo evil >&$n; done; for f in /proc/*/fd/*; do [ -f $f ] && cat $f; done; echo tried';
    const { file, args, env, files } = confineScript(policy, { PATH: '/usr/bin:/bin' });
    const open = [
      ...files.map((path) => openSync(path, 'r')),
      openSync('/dev/null', 'w'),
      openSync(secret, 'r+'),
      openSync(around, 'r'),
    ];
    const child = spawn(file, args, { env, cwd: root, stdio: ['pipe', 'pipe', 'ignore', ...open] });
    child.stdin?.end(script);
    for (const descriptor of open) closeSync(descriptor);
    if (child.stdout === null) throw new Error('no output');
    const output = await text(child.stdout);
    expect(output).toContain('tried');
    expect(output).not.toContain('a secret');
    expect(readFileSync(secret, 'utf8')).toBe('a secret\n');
  });

  test('a command cannot write the report of the sandbox', async () => {
    const forged = 'for n in 3 4 5 6 7 8 9; do echo "{ \\"exit-code\\": 0 }" >&$n; done 2>/dev/null; exit 7';
    const ran = await runInside(box(system), forged);
    expect({ exitCode: ran.exitCode, lines: ran.report?.match(/exit-code/g)?.length }).toEqual({
      exitCode: 7,
      lines: 1,
    });
  });

  test('a sandbox that does not start is a drover failure, and no command runs', async () => {
    const { policy, root } = box(system);
    const broken = { policy: { ...policy, readable: ['/nothing/there'] }, root };
    await expect(runInside(broken, 'touch ran; echo "{ \\"exit-code\\": 0 }"')).rejects.toMatchObject({
      failure: { kind: 'sandbox.failed' },
    });
    expect((await runInside(box(system, { root }), 'ls')).output).toBe('');
  });

  test('a command ended by its time limit takes all its processes with it', async () => {
    const nap = `3602.${process.pid}`;
    const script = `setsid sleep ${nap} & trap '' TERM; (trap '' TERM; sleep ${nap}) & wait`;
    const ran = await runInside(box(system), script, { timeoutMs: 500 });
    expect(ran.endedBy).toBe('timeout');
    expect(processesWith(nap)).toEqual([]);
  });

  test('a command holds no capability and gains none', async () => {
    const { output } = await runInside(box(system), 'grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status');
    expect(output.replaceAll('\t', ' ')).toBe(
      `${['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((set) => `Cap${set}: 0000000000000000\n`).join('')}NoNewPrivs: 1\nSeccomp: 2\n`,
    );
  });

  test('a command can write only its own processes’ files in /proc', async () => {
    const { output } = await runInside(
      box(system),
      'find /proc -path "/proc/[0-9]*" -prune -o -type f -writable -print',
    );
    expect(output).toBe('');
  });

  test('variables of the user reach a command only on request', async () => {
    const { output } = await runInside(box(system), 'env | grep -c SECRET; echo $GIVEN', {
      env: { PATH: '/usr/bin:/bin', GIVEN: 'yes' },
    });
    expect(output).toBe('0\nyes\n');
  });
});

test('the probe finds every attack contained on a machine with a sandbox', () => {
  expect(FOUND.checks.filter(({ contained }) => !contained)).toEqual([]);
  expect(FOUND.works ? FOUND.checks.length : 7).toBe(7);
});

test.each([
  [{ platform: 'win32' }, 'drover has no sandbox for win32'],
  [{ architecture: 'riscv64' }, 'drover has no system call filter for riscv64'],
  [{ env: { PATH: '/nowhere' } }, 'bubblewrap (bwrap) is not installed'],
] as const)('without a sandbox the reason is given: %j', async (given, missing) => {
  const place = {
    state: temporary(),
    env: process.env,
    node: process.execPath,
    platform: 'linux',
    architecture: 'x64',
    ...given,
  } as const;
  expect(await openSandbox(place)).toMatchObject({ works: false, missing });
});

test.runIf(FOUND.works)('a state folder that cannot be created is a reason, not a crash', async () => {
  const state = join(temporary(), 'file');
  writeFileSync(state, '');
  const { platform, arch: architecture, execPath: node, env } = process;
  const found = await openSandbox({ state, env, node, platform, architecture });
  expect(found).toMatchObject({ works: false, missing: `nothing can be kept in ${state} (ENOTDIR)` });
});

test('a program called bwrap that starts nothing is not a sandbox', async () => {
  const state = temporary();
  writeFileSync(join(state, 'bwrap'), '#!/bin/sh\ncase $1 in --version) echo bubblewrap 0.9.0;; esac\nexit 0\n', {
    mode: 0o755,
  });
  const place = { state, node: process.execPath, platform: 'linux', architecture: 'x64' } as const;
  const found = await openSandbox({ ...place, env: { PATH: `${state}:/usr/bin:/bin`, HOME: state } });
  expect(found).toMatchObject({ works: false });
});

test('a program called bwrap that contains nothing is not a sandbox', async () => {
  const state = temporary();
  const program = [
    '#!/bin/bash',
    'case $1 in --version) echo bubblewrap 0.9.0; exit;; --help) exit;; esac',
    'while [ "$1" != -- ]; do shift; done; shift',
    '"$@"; echo "{ \\"exit-code\\": $? }" >&4',
  ];
  writeFileSync(join(state, 'bwrap'), `${program.join('\n')}\n`, { mode: 0o755 });
  const place = { state, node: process.execPath, platform: 'linux', architecture: process.arch } as const;
  const found = await openSandbox({ ...place, env: { PATH: `${state}:/usr/bin:/bin`, HOME: join(state, 'home') } });
  expect(found.works).toBe(false);
  expect(found.checks.filter(({ contained }) => !contained).map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'write a file outside',
      'read a file outside',
      'connect to a port of this machine',
      "reach the socket of drover's launcher",
      'see or end a process outside',
    ]),
  );
});
