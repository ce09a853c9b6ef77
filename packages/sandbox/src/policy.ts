// A sandbox as data: what a command can see, change and reach, and how much of the machine it may use.
//
// A policy crosses threads and goes into tests as it is. `sandbox.ts` turns it into the process to start.
// Paths are absolute and real (no symbolic links), and mean the same inside and outside.

import type { HostRule } from './net/hosts.ts';

type Backend = 'bubblewrap' | 'seatbelt';

/** Facts that all sandboxes of this process share. `open.ts` finds them once. */
export type SandboxSystem = {
  readonly backend: Backend;
  readonly program: string; // bwrap or sandbox-exec
  readonly version: string; // as it says itself
  /** System folders, read-only: a path, or a symbolic link at the top of the file system. */
  readonly folders: readonly SystemFolder[];
  /** Toolchains of the user, read-only. */
  readonly toolchains: readonly string[];
  /** Environment variables that tell programs where those toolchains are. */
  readonly toolchainEnv: Readonly<Record<string, string>>;
  /** A copy of the harmless files of /etc. */
  readonly etc: string;
  /** The file with the system call filter. */
  readonly filter: string;
  /** Options that this version of the program knows and older ones don't. */
  readonly options: readonly string[];
  readonly shell: string;
  readonly node: string; // drover's own
  readonly home: string; // the user's HOME: a private folder inside
  readonly limits: Limits;
};

export type SystemFolder = { readonly path: string; readonly link?: string };

/** For each process, but for `processes` and `memoryBytes`, which cgroups count for all of a task together. */
export type Limits = {
  readonly processes: number;
  readonly memoryBytes: number;
  readonly fileBytes: number;
  readonly openFiles: number;
  readonly cpuSeconds: number;
  /** A command ends when less than this is free on the disk it works on. */
  readonly diskFreeBytes: number;
  readonly diskFreeFiles: number;
};

export type SandboxPolicy = {
  readonly system: SandboxSystem;
  /** Where commands start; they may write there. */
  readonly root: string;
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  /** Folders from elsewhere, shown read-only inside the root. Bubblewrap only. */
  readonly brought?: readonly BroughtFolder[];
  /** Inside a writable folder, and read-only all the same. */
  readonly sealed: readonly string[];
  /** Nothing can be read there. */
  readonly hidden: readonly string[];
  /** Holds the private `home` and `tmp`, which live as long as the task or the session. */
  readonly folder: string;
  /** The proxy outside, on a Unix socket, and what it allows; absent if there is no network. */
  readonly proxy?: { readonly socket: string; readonly rules: readonly HostRule[] };
  /** Folders whose programs are never run outside: commands may write there. */
  readonly distrusted?: readonly string[];
  /** Folders of control groups that commands join; empty if none are available. */
  readonly groups: readonly string[];
};

/** A folder shown read-only at another path. */
export type BroughtFolder = {
  readonly from: string;
  readonly at: string;
  /** Names inside it that commands may write: what they write there is kept in a folder of the task's own. */
  readonly caches: readonly { readonly name: string; readonly from: string }[];
};

/** A process to start, with further files open in it: descriptor 3 is the first of `files`, and so on. */
export type ConfinedProcess = {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly files: readonly string[];
  /** The descriptor after `files` reports whether the sandbox started; see `hasSandboxStarted`. */
  readonly report: boolean;
};
