// A policy as arguments of bubblewrap.
//
// The file system begins empty. Mounts are made from the outside in, so that a private folder, a read-only one in a
// writable one and a writable one in a read-only one all come out as the policy says.
//
// A folder that holds a protected path is pinned: it is mounted on itself. Otherwise a command could rename that
// folder, and make another one in its place that nothing protects. Folders above a mount point in the private HOME or
// /tmp are pinned too: a link in their place would lead bubblewrap out of the next box.

import { existsSync, lstatSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CERTIFICATES } from './etc.ts';
import type { BroughtFolder, SandboxPolicy } from '../policy.ts';

// Memory that a task can use by writing files to RAM.
const SHARED_MEMORY_BYTES = 512 * 1024 * 1024;
const RUN_BYTES = 16 * 1024 * 1024;

const FILTER_DESCRIPTOR = 3;
const REPORT_DESCRIPTOR = 4;

const VAR_TMP = '/var/tmp';

export const PROXY_SOCKET = '/run/drover-proxy';

const ISOLATION = [
  '--unshare-user',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-uts',
  '--unshare-net',
  '--unshare-cgroup-try',
  '--die-with-parent',
  '--new-session',
  '--cap-drop',
  'ALL',
  '--hostname',
  'drover',
];

/** Without the command, which follows behind `--`. */
export function bubblewrapArguments(policy: SandboxPolicy): readonly string[] {
  const { system, root, proxy } = policy;
  const all = bubblewrapMounts(policy);
  return [
    ...ISOLATION,
    ...system.options,
    '--seccomp',
    String(FILTER_DESCRIPTOR),
    '--json-status-fd',
    String(REPORT_DESCRIPTOR),
    ...system.folders.flatMap(({ path, link }) =>
      link === undefined ? ['--ro-bind', path, path] : ['--symlink', link, path],
    ),
    '--ro-bind',
    system.etc,
    '/etc',
    '--ro-bind-try',
    CERTIFICATES,
    CERTIFICATES,
    '--proc',
    '/proc',
    // Bubblewrap leaves /proc/sys writable for root, whose capabilities are gone but who owns every kernel setting.
    '--remount-ro',
    '/proc',
    '--dev',
    '/dev',
    ...emptyMountFolder('/dev/shm', SHARED_MEMORY_BYTES),
    // Files in it would use memory without a bound. Devices stay writable.
    '--remount-ro',
    '/dev',
    ...emptyMountFolder('/run', RUN_BYTES),
    '--dir',
    '/var',
    ...bubblewrapVarTmp(all),
    ...all.flatMap(bubblewrapMountArguments),
    ...(proxy === undefined ? [] : ['--ro-bind', proxy.socket, PROXY_SOCKET]),
    '--remount-ro',
    '/',
    '--chdir',
    root,
  ];
}

/** /var/tmp is /tmp: by a link, or by a mount (see `bubblewrapMounts`) if another mount is below it. */
function bubblewrapVarTmp(all: readonly Mount[]): readonly string[] {
  return all.some(({ at }) => at === VAR_TMP) ? [] : ['--symlink', '/tmp', VAR_TMP];
}

// Ordered by precedence, for mounts at the same path.
type Kind = 'hidden' | 'sealed' | 'brought' | 'cache' | 'writable' | 'readable' | 'pinned';

export type Mount = { readonly kind: Kind; readonly from: string; readonly at: string };

/** Parents before what is in them. */
export function bubblewrapMounts(policy: SandboxPolicy): readonly Mount[] {
  const { system, root, folder, readable, writable, sealed, hidden } = policy;
  const open = [root, ...writable];
  const all: readonly Mount[] = [
    ...hidden.map(bubblewrapMountHere('hidden')),
    ...sealed.map(bubblewrapMountHere('sealed')),
    ...(policy.brought ?? []).flatMap(broughtBubblewrapMounts),
    ...open.map(bubblewrapMountHere('writable')),
    { kind: 'writable', from: join(folder, 'home'), at: system.home },
    { kind: 'writable', from: join(folder, 'tmp'), at: '/tmp' },
    // A toolchain inside the project, such as its virtual environment, belongs to the work.
    ...system.toolchains
      .filter((path) => !open.some((other) => isMountIn(path, other)))
      .map(bubblewrapMountHere('readable')),
    ...readable.map(bubblewrapMountHere('readable')),
  ];
  // Bubblewrap would follow a link at /var/tmp out of the new file system.
  const isVarTmpNeeded = all.some(({ at }) => isMountIn(at, VAR_TMP));
  const varTmpMount: Mount = { kind: 'writable', from: join(folder, 'tmp'), at: VAR_TMP };
  const first = new Map<string, Mount>();
  for (const mount of isVarTmpNeeded ? [...all, varTmpMount] : all)
    if (!first.has(mount.at)) first.set(mount.at, mount);
  const needed = [...first.values()].sort(mountsByDepth).filter(isMountNeeded);
  return [...needed, ...pinsOfBubblewrap(needed)].sort(mountsByDepth);
}

/** None if a command put a file or a link at the path. */
function broughtBubblewrapMounts({ from, at, caches }: BroughtFolder): readonly Mount[] {
  if (!isBubblewrapFolder(dirname(at)) || (lstatSync(at, { throwIfNoEntry: false })?.isDirectory() ?? true) === false)
    return [];
  const inside = caches.filter(({ name }) => isBubblewrapFolder(join(from, name)));
  return [
    { kind: 'brought', from, at },
    ...inside.map(({ name, from: own }) => ({ kind: 'cache' as const, from: own, at: join(at, name) })),
  ];
}

function isBubblewrapFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Differs once a folder or file that the policy mounts was replaced by another of the same name. */
export function mountIdentityInBubblewrap(policy: SandboxPolicy): readonly string[] {
  return bubblewrapMounts(policy).map(({ from }) => {
    const found = lstatSync(from, { throwIfNoEntry: false });
    return found === undefined ? '' : `${found.dev}:${found.ino}:${found.birthtimeMs}`;
  });
}

const bubblewrapMountHere = (kind: Kind) => (path: string) => ({ kind, from: path, at: path });

/** The folders between a protected path and the writable mount it is in; in a private folder, of every mount. */
function pinsOfBubblewrap(all: readonly Mount[]): readonly Mount[] {
  const found = all.flatMap((mount) => {
    const around = all.findLast((other) => isMountIn(mount.at, other.at));
    // The next command mounts a brought folder again, so its parents need no pin.
    const isFree = mount.kind === 'writable' || mount.kind === 'brought';
    if (around?.kind !== 'writable' || (isFree && !isPrivateMount(around))) return [];
    return mountFoldersBetween(around.at, mount.at).map(
      (at) => ({ kind: 'pinned', from: sourceOfMount(at, around), at }) as const,
    );
  });
  return [...new Map(found.map((pin) => [pin.at, pin])).values()];
}

/**
 * Makes the folders in the private HOME and /tmp on which other mounts are put, and renames links in their place.
 * Bubblewrap makes missing mount points, and would follow a link that a command left there out of the box.
 */
export function prepareBubblewrapMountPoints(policy: SandboxPolicy): void {
  if (!existsSync(policy.folder)) return;
  const all = bubblewrapMounts(policy);
  for (const mount of all) {
    const around = all.findLast((other) => other.kind === 'writable' && isMountIn(mount.at, other.at));
    if (around === undefined || !isPrivateMount(around)) continue;
    for (const at of mountFoldersBetween(around.at, mount.at)) {
      const path = sourceOfMount(at, around);
      if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) setAsideMountPoint(path);
      mkdirSync(path, { recursive: true });
    }
    const point = sourceOfMount(mount.at, around);
    if (lstatSync(point, { throwIfNoEntry: false })?.isSymbolicLink() === true) setAsideMountPoint(point);
  }
}

function isPrivateMount({ from, at }: Mount): boolean {
  return from !== at;
}

/** The path outside behind `at`, inside a mount. */
function sourceOfMount(at: string, around: Mount): string {
  return join(around.from, at.slice(around.at.length));
}

function setAsideMountPoint(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) renameSync(path, `${path}.replaced-${Date.now()}`);
}

function mountFoldersBetween(outer: string, inner: string): readonly string[] {
  const folder = dirname(inner);
  return isMountIn(folder, outer) ? [...mountFoldersBetween(outer, folder), folder] : [];
}

function mountsByDepth(a: Mount, b: Mount): number {
  return mountDepth(a.at) - mountDepth(b.at);
}

function mountDepth(path: string): number {
  return path.split('/').length;
}

/** A read-only mount in a folder that is mounted read-only anyway costs time and changes nothing. */
function isMountNeeded(mount: Mount, _: number, all: readonly Mount[]): boolean {
  if (mount.kind !== 'readable') return true;
  const around = all.filter((other) => other !== mount && isMountIn(mount.at, other.at)).at(-1);
  return around?.kind !== 'readable' && around?.kind !== 'sealed';
}

function isMountIn(path: string, folder: string): boolean {
  return path.startsWith(folder === '/' ? folder : `${folder}/`);
}

function bubblewrapMountArguments({ kind, from, at }: Mount): readonly string[] {
  switch (kind) {
    case 'writable':
    case 'cache':
      return ['--bind', from, at];
    case 'pinned':
      return statSync(from, { throwIfNoEntry: false }) === undefined ? [] : ['--bind', from, at];
    case 'sealed':
      // `seal.ts` handles links.
      return lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink() === true ? [] : ['--ro-bind', from, at];
    case 'readable':
    case 'brought':
      return ['--ro-bind', from, at];
    case 'hidden': {
      const found = statSync(at, { throwIfNoEntry: false });
      if (found === undefined) return [];
      return found.isDirectory() ? ['--tmpfs', at, '--remount-ro', at] : ['--ro-bind', '/dev/null', at];
    }
  }
}

function emptyMountFolder(path: string, bytes: number): readonly string[] {
  return ['--size', String(bytes), '--tmpfs', path];
}
