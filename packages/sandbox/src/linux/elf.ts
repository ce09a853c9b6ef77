// The smallest programs that make one system call and exit with its error number. The probe runs one inside the
// sandbox: nothing else can tell a call that the filter refuses from one that fails for other reasons.

import type { Architecture } from './syscalls.ts';

const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const CODE_AT = HEADER_BYTES + PROGRAM_HEADER_BYTES;
const BASE = 0x40_0000;
const MACHINE: Readonly<Record<Architecture, number>> = { x64: 62, arm64: 183 };

/** An executable for Linux: calls `number(argument, 0, 0, 0)`, then exits with the error, or 0. */
export function elfCallingProgram(architecture: Architecture, number: number, argument = 0): Buffer {
  const code = architecture === 'x64' ? elfCodeForX64(number, argument) : elfCodeForArm64(number, argument);
  const size = CODE_AT + code.length;
  const file = Buffer.alloc(size);
  file.write('\x7fELF\x02\x01\x01', 0, 'latin1');
  file.writeUInt16LE(2, 16); // an executable
  file.writeUInt16LE(MACHINE[architecture], 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(BigInt(BASE + CODE_AT), 24); // where it begins
  file.writeBigUInt64LE(BigInt(HEADER_BYTES), 32);
  file.writeUInt16LE(HEADER_BYTES, 52);
  file.writeUInt16LE(PROGRAM_HEADER_BYTES, 54);
  file.writeUInt16LE(1, 56);
  file.writeUInt32LE(1, HEADER_BYTES); // loaded as a whole
  file.writeUInt32LE(5, HEADER_BYTES + 4); // to be read and executed
  file.writeBigUInt64LE(BigInt(BASE), HEADER_BYTES + 16);
  file.writeBigUInt64LE(BigInt(BASE), HEADER_BYTES + 24);
  file.writeBigUInt64LE(BigInt(size), HEADER_BYTES + 32);
  file.writeBigUInt64LE(BigInt(size), HEADER_BYTES + 40);
  file.writeBigUInt64LE(0x1000n, HEADER_BYTES + 48);
  code.copy(file, CODE_AT);
  return file;
}

function elfCodeForX64(number: number, argument: number): Buffer {
  const code = Buffer.from(
    [
      'b800000000', // mov eax, number
      'bf00000000', // mov edi, argument
      '31f6', // xor esi, esi
      '31d2', // xor edx, edx
      '4531d2', // xor r10d, r10d
      '0f05', // syscall
      'f7d8', // neg eax
      '31ff', // xor edi, edi
      '85c0', // test eax, eax
      '0f4fF8', // cmovg edi, eax
      'b83c000000', // mov eax, exit
      '0f05', // syscall
    ].join(''),
    'hex',
  );
  code.writeUInt32LE(number, 1);
  code.writeUInt32LE(argument >>> 0, 6);
  return code;
}

function elfCodeForArm64(number: number, argument: number): Buffer {
  const EXIT = 93;
  const words = [
    0xd280_0000 | ((argument & 0xffff) << 5), // movz x0, argument
    0xf2a0_0000 | ((argument >>> 16) << 5), // movk x0, its upper half
    0xd280_0001, // movz x1, 0
    0xd280_0002, // movz x2, 0
    0xd280_0003, // movz x3, 0
    0xd280_0008 | (number << 5), // movz x8, number
    0xd400_0001, // svc 0
    0xcb00_03e0, // neg x0, x0
    0xf100_001f, // cmp x0, 0
    0x9a9f_c000, // csel x0, x0, xzr, gt
    0xd280_0008 | (EXIT << 5), // movz x8, exit
    0xd400_0001, // svc 0
  ];
  const code = Buffer.alloc(words.length * 4);
  words.forEach((word, at) => code.writeUInt32LE(word >>> 0, at * 4));
  return code;
}
