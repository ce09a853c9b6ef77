// The system call filter of the sandbox, as the BPF program that bubblewrap loads.
//
// Guarantees
//   1. A process of another architecture, or an x32 call, ends or fails before any other rule is looked at.
//   2. Every call in REFUSED fails with EPERM; `clone` fails with EPERM where it would make a namespace.
//   3. `clone3` and `openat2` fail with ENOSYS, so that programs use `clone` and `openat`.
//   4. Sockets to the host of a virtual machine (AF_VSOCK), which no network namespace contains, cannot be opened.
//   5. No file gets the set-user-ID bit: outside, where the file stays, it would run as the user for everyone.
//   6. Every other call is allowed: the file system, process and network namespaces contain those.

import { type Architecture, CLONE, CLONE3, MODE_CALLS, type ModeCall, OPENAT2, REFUSED, SOCKET } from './syscalls.ts';

const AUDIT_ARCH: Readonly<Record<Architecture, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 };

// Offsets in struct seccomp_data.
const NUMBER = 0;
const ARCH = 4;
const FIRST_ARGUMENT = 16; // its lower half; both architectures are little-endian
const ARGUMENT_BYTES = 8;

const KILL_PROCESS = 0x8000_0000;
const ALLOW = 0x7fff_0000;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;
const seccompFailWith = (errno: number): number => 0x0005_0000 | errno;

const X32_BIT = 0x4000_0000;
const AF_VSOCK = 40;
const SET_USER_ID = 0o4000;
const CREATES = 0x40_0040; // O_CREAT and O_TMPFILE: without them the kernel ignores the mode, which may be anything
// CLONE_NEWTIME (0x80) cannot be asked for with clone: those bits are the exit signal.
const CLONE_NAMESPACES = 0x7e02_0000;

const LOAD = 0x20;
const EQUAL = 0x15;
const AT_LEAST = 0x35;
const ANY_BIT = 0x45;
const RETURN = 0x06;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

const seccompLoad = (offset: number): Instruction => [LOAD, 0, 0, offset];
const seccompReturn = (value: number): Instruction => [RETURN, 0, 0, value];
/** Runs the next instruction if the condition holds, else skips it. */
const seccompWhen = (code: number, value: number): Instruction => [code, 0, 1, value];

function seccompInstructions(architecture: Architecture): readonly Instruction[] {
  return [
    seccompLoad(ARCH),
    [EQUAL, 1, 0, AUDIT_ARCH[architecture]],
    seccompReturn(KILL_PROCESS),
    seccompLoad(NUMBER),
    ...(architecture === 'x64' ? [seccompWhen(AT_LEAST, X32_BIT), seccompReturn(seccompFailWith(ENOSYS))] : []),
    ...Object.values(REFUSED).flatMap((numbers) => [
      seccompWhen(EQUAL, numbers[architecture]),
      seccompReturn(seccompFailWith(EPERM)),
    ]),
    seccompWhen(EQUAL, CLONE3[architecture]),
    seccompReturn(seccompFailWith(ENOSYS)),
    seccompWhen(EQUAL, OPENAT2[architecture]),
    seccompReturn(seccompFailWith(ENOSYS)),
    ...Object.values(MODE_CALLS).flatMap((call) => seccompWithoutSetUserId(call, architecture)),
    ...seccompOnArgument(CLONE[architecture], seccompWhen(ANY_BIT, CLONE_NAMESPACES), EPERM),
    ...seccompOnArgument(SOCKET[architecture], seccompWhen(EQUAL, AF_VSOCK), EAFNOSUPPORT),
    seccompReturn(ALLOW),
  ];
}

/** Refuses one call if its first argument matches. If it was another call, the next rule still finds the number. */
function seccompOnArgument(number: number, condition: Instruction, errno: number): readonly Instruction[] {
  return [
    [EQUAL, 0, 4, number],
    seccompLoad(FIRST_ARGUMENT),
    condition,
    seccompReturn(seccompFailWith(errno)),
    seccompReturn(ALLOW),
  ];
}

function seccompWithoutSetUserId(
  { numbers, mode, flags }: ModeCall,
  architecture: Architecture,
): readonly Instruction[] {
  const number = numbers[architecture];
  if (number === undefined) return [];
  const argument = (at: number) => seccompLoad(FIRST_ARGUMENT + at * ARGUMENT_BYTES);
  const check = [argument(mode), seccompWhen(ANY_BIT, SET_USER_ID), seccompReturn(seccompFailWith(EPERM))];
  const creates: readonly Instruction[] =
    flags === undefined ? [] : [argument(flags), [ANY_BIT, 0, check.length, CREATES]];
  const rules = [...creates, ...check, seccompReturn(ALLOW)];
  return [[EQUAL, 0, rules.length, number], ...rules];
}

/** The program as the kernel reads it: eight bytes an instruction. */
export function seccompFilterProgram(architecture: Architecture): Buffer {
  const instructions = seccompInstructions(architecture);
  const program = Buffer.alloc(instructions.length * 8);
  instructions.forEach(([code, ifTrue, ifFalse, value], at) => {
    program.writeUInt16LE(code, at * 8);
    program.writeUInt8(ifTrue, at * 8 + 2);
    program.writeUInt8(ifFalse, at * 8 + 3);
    program.writeUInt32LE(value >>> 0, at * 8 + 4);
  });
  return program;
}
