// How much of the machine a task may use: resource limits of each process, and a control group where one can be had.
//
// Resource limits hold everywhere, but Linux does not count processes of root. A control group of version 2 counts the
// processes and the memory of a task together; of version 1 it counts the processes. Groups are made inside the one
// drover runs in, where its controllers are delegated or its folders can be written.
//
// The kernel lets a group go only some time after its last process. So removing one is retried, and a group that a
// drover left behind is removed by the next one.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import type { Limits } from '../policy.ts';

const GIB = 1024 ** 3;

/** Returns limits that keep the machine usable during any task. */
export function sandboxLimitsOfMachine(): Limits {
  return {
    processes: 2_048,
    memoryBytes: Math.max(2 * GIB, Math.floor(totalmem() * 0.75)),
    fileBytes: 16 * GIB,
    openFiles: 65_536,
    cpuSeconds: 4 * 3_600,
    diskFreeBytes: GIB / 2,
    diskFreeFiles: 20_000,
  };
}

/**
 * Shell text that bounds the process that runs it, and all it starts. A bound that is above the one in force stays out.
 * Descriptors that drover was itself started with are closed: they may lead anywhere.
 */
export function sandboxLimitsPrelude(limits: Limits): string {
  const bounds = sandboxLimitBounds(limits).map((bound) => `ulimit ${bound}; `);
  return `{ ${bounds.join('')}${CLOSE_DESCRIPTORS} } 2>/dev/null; `;
}

/** The same for a program that keeps stderr. The shell cannot restore it behind a block that closes its descriptors. */
export function sandboxLimitsProgramPrelude(limits: Limits): string {
  const bounds = sandboxLimitBounds(limits).map((bound) => `ulimit ${bound} 2>/dev/null; `);
  return `${bounds.join('')}${CLOSE_DESCRIPTORS} `;
}

function sandboxLimitBounds({ processes, memoryBytes, fileBytes, openFiles, cpuSeconds }: Limits): readonly string[] {
  const blocks = Math.floor(fileBytes / 1_024);
  const kib = Math.floor(memoryBytes / 1_024);
  return [`-u ${processes}`, `-d ${kib}`, `-f ${blocks}`, `-n ${openFiles}`, `-t ${cpuSeconds}`, '-c 0'];
}

const CLOSE_DESCRIPTORS =
  'for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval "exec $fd>&-"; done; unset fd;';

export type ControlGroup = {
  /** Folders whose `cgroup.procs` a process writes itself to. Empty where no group could be made. */
  readonly folders: readonly string[];
  readonly close: () => void;
};

const MOUNT = '/sys/fs/cgroup';

const REMOVE_TRIES = 40;
const REMOVE_AGAIN_MS = 50;

/** A group for one task, or none. Never throws: a machine without groups has resource limits only. */
export function openControlGroup(label: string, limits: Limits): ControlGroup {
  const name = `drover-${process.pid}-${label}`;
  const folders = existsSync(join(MOUNT, 'cgroup.controllers'))
    ? unifiedControlGroup(name, limits)
    : separateControlGroups(name, limits);
  for (const folder of folders) removeStaleControlGroups(dirname(folder));
  return {
    folders,
    close() {
      for (const folder of folders) removeControlGroup(folder, REMOVE_TRIES);
    },
  };
}

function removeControlGroup(folder: string, tries: number): void {
  if (tries === 0 || tryControlGroup(() => rmdirSync(folder))) return;
  setTimeout(() => removeControlGroup(folder, tries - 1), REMOVE_AGAIN_MS).unref();
}

/** Removes groups of processes that are gone. One that is in use cannot be removed. */
function removeStaleControlGroups(parent: string): void {
  tryControlGroup(() => {
    for (const name of readdirSync(parent)) {
      const id = /^drover-(\d+)-/.exec(name)?.[1];
      if (id !== undefined && !existsSync(join('/proc', id))) tryControlGroup(() => rmdirSync(join(parent, name)));
    }
  });
}

function unifiedControlGroup(name: string, limits: Limits): readonly string[] {
  const own = ownControlGroups().get('');
  if (own === undefined) return [];
  const parent = join(MOUNT, own);
  const folder = join(parent, name);
  const isMade = tryControlGroup(() => {
    // A group that has processes of its own can hand no controllers on: then this fails, and there is no group.
    writeFileSync(join(parent, 'cgroup.subtree_control'), '+pids +memory');
    mkdirSync(folder);
    writeFileSync(join(folder, 'pids.max'), String(limits.processes));
    writeFileSync(join(folder, 'memory.max'), String(limits.memoryBytes));
  });
  return isMade ? [folder] : [];
}

/**
 * Version 1 limits only the number of processes: joining a group takes milliseconds, and memory has a resource limit.
 */
function separateControlGroups(name: string, limits: Limits): readonly string[] {
  const own = ownControlGroups().get('pids');
  if (own === undefined) return [];
  const folder = join(MOUNT, 'pids', own, name);
  const isMade = tryControlGroup(() => {
    mkdirSync(folder);
    writeFileSync(join(folder, 'pids.max'), String(limits.processes));
  });
  return isMade ? [folder] : [];
}

/** Controller -> the group of this process; '' is version 2. */
function ownControlGroups(): ReadonlyMap<string, string> {
  const groups = new Map<string, string>();
  tryControlGroup(() => {
    for (const line of readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n')) {
      const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      for (const controller of controllers.split(',')) groups.set(controller, path);
    }
  });
  return groups;
}

function tryControlGroup(act: () => void): boolean {
  try {
    act();
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false;
    throw error;
  }
}
