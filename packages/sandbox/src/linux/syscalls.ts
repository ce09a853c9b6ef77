// System calls that the sandbox refuses, with their numbers on x64 and arm64. A table to read through.
//
// A refused call fails with EPERM. `clone3` fails with ENOSYS instead: its flags lie behind a pointer that a filter
// cannot read, and C libraries fall back to `clone`, whose flags it can.

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
