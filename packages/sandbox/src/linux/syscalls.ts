// System calls that the sandbox refuses, with their numbers on x64 and arm64. A table to read through.
//
// A refused call fails with EPERM. `clone3` and `openat2` fail with ENOSYS instead: their flags lie behind a pointer
// that a filter cannot read, and programs fall back to `clone` and `openat`, whose flags it can.

export type Architecture = 'x64' | 'arm64';

type Numbers = Readonly<Record<Architecture, number>>;

/** Calls that look into other processes, load kernel code, or change mounts and namespaces. */
export const REFUSED: Readonly<Record<string, Numbers>> = {
  ptrace: { x64: 101, arm64: 117 },
  process_vm_readv: { x64: 310, arm64: 270 },
  process_vm_writev: { x64: 311, arm64: 271 },
  kcmp: { x64: 312, arm64: 272 },
  pidfd_getfd: { x64: 438, arm64: 438 },
  add_key: { x64: 248, arm64: 217 },
  request_key: { x64: 249, arm64: 218 },
  keyctl: { x64: 250, arm64: 219 },
  io_uring_setup: { x64: 425, arm64: 425 },
  io_uring_enter: { x64: 426, arm64: 426 },
  io_uring_register: { x64: 427, arm64: 427 },
  bpf: { x64: 321, arm64: 280 },
  perf_event_open: { x64: 298, arm64: 241 },
  userfaultfd: { x64: 323, arm64: 282 },
  mount: { x64: 165, arm64: 40 },
  umount2: { x64: 166, arm64: 39 },
  pivot_root: { x64: 155, arm64: 41 },
  chroot: { x64: 161, arm64: 51 },
  open_tree: { x64: 428, arm64: 428 },
  move_mount: { x64: 429, arm64: 429 },
  fsopen: { x64: 430, arm64: 430 },
  fsconfig: { x64: 431, arm64: 431 },
  fsmount: { x64: 432, arm64: 432 },
  fspick: { x64: 433, arm64: 433 },
  mount_setattr: { x64: 442, arm64: 442 },
  open_by_handle_at: { x64: 304, arm64: 265 },
  unshare: { x64: 272, arm64: 97 },
  setns: { x64: 308, arm64: 268 },
  kexec_load: { x64: 246, arm64: 104 },
  kexec_file_load: { x64: 320, arm64: 294 },
  init_module: { x64: 175, arm64: 105 },
  finit_module: { x64: 313, arm64: 273 },
};

export const CLONE: Numbers = { x64: 56, arm64: 220 };
export const CLONE3: Numbers = { x64: 435, arm64: 435 };
export const SOCKET: Numbers = { x64: 41, arm64: 198 };
export const OPENAT2: Numbers = { x64: 437, arm64: 437 };

/** A call that gives a file its mode: the places of its arguments, from 0. With `flags`, only if they create a file. */
export type ModeCall = {
  readonly numbers: Partial<Numbers>;
  readonly mode: number;
  readonly flags?: number;
};

/** Calls that could leave a program behind which runs as the user, no matter who starts it. */
export const MODE_CALLS: Readonly<Record<string, ModeCall>> = {
  chmod: { numbers: { x64: 90 }, mode: 1 },
  fchmod: { numbers: { x64: 91, arm64: 52 }, mode: 1 },
  fchmodat: { numbers: { x64: 268, arm64: 53 }, mode: 2 },
  fchmodat2: { numbers: { x64: 452, arm64: 452 }, mode: 2 },
  creat: { numbers: { x64: 85 }, mode: 1 },
  mknod: { numbers: { x64: 133 }, mode: 1 },
  mknodat: { numbers: { x64: 259, arm64: 33 }, mode: 2 },
  open: { numbers: { x64: 2 }, mode: 2, flags: 1 },
  openat: { numbers: { x64: 257, arm64: 56 }, mode: 3, flags: 2 },
};
