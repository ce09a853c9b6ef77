// An interpreter for system call filters: runs the program as the kernel would.

export type SystemCall = {
  readonly arch: number;
  readonly number: number;
  readonly arguments?: readonly number[];
};

const STEPS_MAX = 4_096;

/** Returns the value that the filter gives for a call. */
export function verdictOn(program: Buffer, { arch, number, arguments: given = [] }: SystemCall): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number >>> 0, 0);
  data.writeUInt32LE(arch >>> 0, 4);
  given.forEach((argument, at) => data.writeBigUInt64LE(BigInt(argument >>> 0), 16 + 8 * at));
  let accumulator = 0;
  for (let at = 0, steps = 0; steps < STEPS_MAX; steps++) {
    const code = program.readUInt16LE(at * 8);
    const value = program.readUInt32LE(at * 8 + 4);
    const jump = (holds: boolean) => program.readUInt8(at * 8 + (holds ? 2 : 3)) + 1;
    switch (code) {
      case 0x20:
        accumulator = data.readUInt32LE(value);
        at++;
        break;
      case 0x15:
        at += jump(accumulator === value);
        break;
      case 0x35:
        at += jump(accumulator >= value);
        break;
      case 0x45:
        at += jump((accumulator & value) !== 0);
        break;
      case 0x06:
        return value;
      default:
        throw new Error(`instruction ${at} has an unknown code: ${code}`);
    }
  }
  throw new Error('the program does not end');
}
