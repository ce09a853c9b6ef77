// The system call filter: run in an interpreter for both architectures, compared with the headers of this system, and
// tried with real calls inside the sandbox.

import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { elfCallingProgram } from '@drover/sandbox/linux/elf';
import { seccompFilterProgram } from '@drover/sandbox/linux/seccomp';
import { type Architecture, CLONE, CLONE3, MODE_CALLS, OPENAT2, REFUSED, SOCKET } from '@drover/sandbox/linux/syscalls';
import { describe, expect, test } from 'vitest';
import { verdictOn } from '../support/sandbox/bpf.ts';
import { box, inSandbox, runInside } from '../support/sandbox/box.ts';

const ARCH = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const;
const I386 = 0x4000_0003;
const ARM = 0x4000_0028;
const ALLOWED = 0x7fff_0000;
const KILLED = 0x8000_0000;
const EPERM = 0x0005_0001;
const ENOSYS = 0x0005_0026;
const EAFNOSUPPORT = 0x0005_0061;

const NAMESPACES = {
  CLONE_NEWNS: 0x0002_0000,
  CLONE_NEWCGROUP: 0x0200_0000,
  CLONE_NEWUTS: 0x0400_0000,
  CLONE_NEWIPC: 0x0800_0000,
  CLONE_NEWUSER: 0x1000_0000,
  CLONE_NEWPID: 0x2000_0000,
  CLONE_NEWNET: 0x4000_0000,
};
const THREAD = 0x003d_0f00;
const FORK = 0x0120_0011;
const AF_UNIX = 1;
const AF_INET = 2;
const AF_VSOCK = 40;
const O_CREAT = 0x40;
const O_TMPFILE = 0x40_0000;

test('the program for arm64 makes its call and exits with the error', () => {
  const code = elfCallingProgram('arm64', 172, 0x1234_5678).subarray(120);
  const words = Array.from({ length: code.length / 4 }, (_, at) => code.readUInt32LE(at * 4).toString(16));
  expect(words).toEqual([
    'd28acf00', // movz x0, 0x5678
    'f2a24680', // movk x0, 0x1234, lsl 16
    'd2800001', // movz x1, 0
    'd2800002', // movz x2, 0
    'd2800003', // movz x3, 0
    'd2801588', // movz x8, 172
    'd4000001', // svc 0
    'cb0003e0', // neg x0, x0
    'f100001f', // cmp x0, 0
    '9a9fc000', // csel x0, x0, xzr, gt
    'd2800ba8', // movz x8, 93
    'd4000001', // svc 0
  ]);
});

// Written out here a second time, so that a call which leaves the table is missed: calls that look into processes,
// keys, io_uring, bpf, perf and userfaultfd, mounts, namespaces, kernels and modules.
const MUST_FAIL: Readonly<Record<Architecture, readonly number[]>> = {
  x64: [
    101, 310, 311, 312, 438, 248, 249, 250, 425, 426, 427, 321, 298, 323, 165, 166, 155, 161, 428, 429, 430, 431, 432,
    433, 442, 304, 272, 308, 246, 320, 175, 313,
  ],
  arm64: [
    117, 270, 271, 272, 438, 217, 218, 219, 425, 426, 427, 280, 241, 282, 40, 39, 41, 51, 428, 429, 430, 431, 432, 433,
    442, 265, 97, 268, 104, 294, 105, 273,
  ],
};

describe.each(['x64', 'arm64'] as const)('the filter for %s', (architecture) => {
  const program = seccompFilterProgram(architecture);
  const arch = ARCH[architecture];
  const on = (number: number, ...given: readonly number[]) => verdictOn(program, { arch, number, arguments: given });

  test('every call of the table fails with EPERM', () => {
    const verdicts = Object.entries(REFUSED).map(([name, numbers]) => [name, on(numbers[architecture])]);
    expect(verdicts).toEqual(Object.keys(REFUSED).map((name) => [name, EPERM]));
  });

  test('no call that must fail has left the table', () => {
    expect(MUST_FAIL[architecture].filter((number) => on(number) !== EPERM)).toEqual([]);
  });

  test.each(Object.entries(NAMESPACES))('clone with %s fails, alone and among other flags', (_, flag) => {
    const number = CLONE[architecture];
    expect([on(number, flag), on(number, flag | FORK), on(number, flag | THREAD)]).toEqual([EPERM, EPERM, EPERM]);
  });

  test('clone makes threads and processes, and clone3 sends C libraries to it', () => {
    const number = CLONE[architecture];
    expect([on(number, THREAD), on(number, FORK), on(number, 17)]).toEqual([ALLOWED, ALLOWED, ALLOWED]);
    expect(on(CLONE3[architecture])).toBe(ENOSYS);
  });

  test('sockets to the host of a virtual machine are refused, and others are not', () => {
    const number = SOCKET[architecture];
    expect([AF_VSOCK, AF_INET, AF_UNIX].map((family) => on(number, family))).toEqual([EAFNOSUPPORT, ALLOWED, ALLOWED]);
  });

  test.each(Object.entries(MODE_CALLS).filter(([, { numbers }]) => numbers[architecture] !== undefined))(
    '%s gives no file the set-user-ID bit, and every other mode',
    (_, { numbers, mode, flags }) => {
      const given = (bits: number, flag: number) =>
        Array.from({ length: 4 }, (__, at) => (at === mode ? bits : at === flags ? flag : 0));
      const verdicts = (flag: number) =>
        [0o4755, 0o6777, 0o755, 0o2775].map((bits) => on(numbers[architecture] ?? 0, ...given(bits, flag)));
      expect(verdicts(O_CREAT)).toEqual([EPERM, EPERM, ALLOWED, ALLOWED]);
      expect(verdicts(O_TMPFILE)).toEqual([EPERM, EPERM, ALLOWED, ALLOWED]);
      // A call that creates nothing has no mode: its argument is whatever the register held.
      if (flags !== undefined) expect(new Set(verdicts(0))).toEqual(new Set([ALLOWED]));
    },
  );

  test('openat2 sends programs to openat', () => {
    expect(on(OPENAT2[architecture])).toBe(ENOSYS);
  });

  test('every other call from 0 to 500 is allowed', () => {
    const special = new Set([...Object.values(REFUSED), CLONE3, OPENAT2].map((numbers) => numbers[architecture]));
    const refused = Array.from({ length: 501 }, (_, number) => number).filter((number) => on(number) !== ALLOWED);
    expect(refused).toEqual([...special].sort((a, b) => a - b));
  });

  test('calls of another architecture end the process, whatever their number', () => {
    const others = [I386, ARM, architecture === 'x64' ? ARCH.arm64 : ARCH.x64, 0];
    const verdicts = others.map((other) =>
      [0, 1, 57, 101, 500].map((number) => verdictOn(program, { arch: other, number })),
    );
    expect(new Set(verdicts.flat())).toEqual(new Set([KILLED]));
  });
});

test('x32 calls fail with ENOSYS on x64', () => {
  const program = seccompFilterProgram('x64');
  const verdicts = [0, 56, 101, 272, 512, 547].map((number) =>
    verdictOn(program, { arch: ARCH.x64, number: 0x4000_0000 | number }),
  );
  expect(new Set(verdicts)).toEqual(new Set([ENOSYS]));
});

// arm64 uses the generic system call table.
const HEADERS: readonly (readonly [Architecture, string])[] = [
  ['x64', '/usr/include/x86_64-linux-gnu/asm/unistd_64.h'],
  ['arm64', '/usr/include/asm-generic/unistd.h'],
];

test.each(HEADERS.filter(([, path]) => existsSync(path)))(
  'the numbers for %s are those of %s',
  (architecture, path) => {
    const named = [...readFileSync(path, 'utf8').matchAll(/^#define __NR(?:3264)?_(\w+) (\d+)$/gm)];
    const known = new Map(named.map(([, name = '', number]) => [name, Number(number)]));
    const modes = Object.entries(MODE_CALLS).map(([name, { numbers }]) => [name, numbers] as const);
    const single = { clone: CLONE, clone3: CLONE3, openat2: OPENAT2, socket: SOCKET };
    const table = [...Object.entries({ ...REFUSED, ...single }), ...modes.filter(([, each]) => architecture in each)];
    const wrong = table.filter(([name, numbers]) => known.has(name) && known.get(name) !== numbers[architecture]);
    expect(wrong).toEqual([]);
    expect(table.filter(([name]) => known.has(name)).length).toBeGreaterThan(30);
  },
);

inSandbox('real calls inside the sandbox', (system) => {
  const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';

  async function errors(calls: Readonly<Record<string, Buffer>>): Promise<Readonly<Record<string, number>>> {
    const { policy, root } = box(system);
    for (const [name, program] of Object.entries(calls)) writeFileSync(join(root, name), program, { mode: 0o755 });
    const script = 'for call in *; do ./$call; echo "$call $?"; done 2>/dev/null';
    const { output } = await runInside({ policy, root }, script);
    const lines = output
      .trim()
      .split('\n')
      .map((line) => line.split(' '));
    return Object.fromEntries(lines.map(([name = '', error]) => [name, Number(error)]));
  }

  test('every call of the table fails with EPERM', async () => {
    const names = Object.keys(REFUSED);
    const programs = Object.entries(REFUSED).map(([name, numbers]) => [
      name,
      elfCallingProgram(architecture, numbers[architecture]),
    ]);
    const refused = await errors(Object.fromEntries(programs) as Record<string, Buffer>);
    expect(refused).toEqual(Object.fromEntries(names.map((name) => [name, 1])));
  });

  test('namespaces, AF_VSOCK and clone3 are refused, and harmless calls are not', async () => {
    const call = (number: number, argument = 0) => elfCallingProgram(architecture, number, argument);
    const namespaces = Object.entries(NAMESPACES).map(
      ([name, flag]) => [name, call(CLONE[architecture], flag | 17)] as const,
    );
    const getpid = architecture === 'x64' ? 39 : 172;
    const given = {
      ...Object.fromEntries(namespaces),
      clone3: call(CLONE3[architecture]),
      vsock: call(SOCKET[architecture], AF_VSOCK),
      getpid: call(getpid),
    };
    expect(await errors(given)).toEqual({
      ...Object.fromEntries(namespaces.map(([name]) => [name, 1])),
      clone3: 38,
      vsock: 97,
      getpid: 0,
    });
  });

  test('a command makes no set-user-ID file, and other modes work', async () => {
    const { policy, root } = box(system);
    const script = [
      'cp /bin/sh a; chmod 4755 a; chmod u+s a; install -m 4755 a b; cp --preserve=mode a c; chmod 2750 a',
      `python3 -c "import os; os.close(os.open('d', os.O_CREAT | os.O_RDWR, 0o4777))"`,
      `python3 -c "import os; os.fchmod(os.open('a', os.O_RDONLY), 0o4755)"`,
    ].join('; ');
    await runInside({ policy, root }, script);
    const modes = readdirSync(root).map((name) => statSync(join(root, name)).mode & 0o4000);
    expect(modes.every((bit) => bit === 0)).toBe(true);
    expect(statSync(join(root, 'a')).mode & 0o7777).toBe(0o2750);
  });

  test.runIf(architecture === 'x64')('a call of the 32-bit interface ends its process', async () => {
    const getpid = elfCallingProgram('x64', 20);
    const at = getpid.indexOf(Buffer.from('0f05', 'hex'));
    getpid.set(Buffer.from('cd80', 'hex'), at);
    const SIGSYS = 31;
    const SIGSEGV = 11; // if the kernel lacks this interface
    expect([128 + SIGSYS, 128 + SIGSEGV]).toContain((await errors({ getpid }))['getpid']);
  });
});
