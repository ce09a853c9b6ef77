// Finds all processes that belong to a child: its group, its descendants, and every process with its mark.
//
// A process can leave its group (setsid) and lose its parent (double fork), but keeps its initial environment. So
// every child has a variable that names its drover process and its call. On Linux, all processes are scanned for
// it. A process that clears its environment is still found if its parents were alive at the first scan. Without
// /proc, only the group is known.

import { readdirSync, readFileSync } from 'node:fs';

export const MARK = 'DROVER_CHILD';

const SYSTEM_CALLS_REFUSED = new Set(['ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'ENOTDIR']);

/** Returns the value of the mark. All children of this process and its threads share the prefix. */
export function processMarkOf(callId: string): string {
  return `${process.pid}:${callId}`;
}

/** The processes of one call, tracked over time. */
export class ProcessTree {
  readonly #group: number;
  readonly #mark: string;
  readonly #contains: boolean;
  // Process id -> start time, because ids are reused.
  readonly #seen = new Map<number, string>();

  /** `contains`: the leader of the group is a sandbox, and all processes inside end with it. */
  constructor(group: number, callId: string, contains = false) {
    this.#group = group;
    this.#contains = contains;
    this.#mark = `${MARK}=${processMarkOf(callId)}\0`;
  }

  /** True if the group has processes. Cheap, but also true for zombies. */
  get groupMayLive(): boolean {
    return sendSignalToProcess(-this.#group, 0);
  }

  /** Returns the processes that are alive now. */
  look(): readonly number[] {
    const all = listProcesses();
    if (all === undefined) return this.groupMayLive ? [this.#group] : [];
    const members = new Set<number>();
    for (const one of all) {
      const belongs =
        one.group === this.#group ||
        this.#seen.get(one.id) === one.startedAt ||
        members.has(one.parent) ||
        processEnvironmentOf(one.id).includes(this.#mark);
      if (!belongs) continue;
      members.add(one.id);
      this.#seen.set(one.id, one.startedAt);
    }
    return [...members];
  }

  signal(members: readonly number[], signal: NodeJS.Signals): void {
    const inside = members.filter((id) => id !== this.#group);
    // A signal to the sandbox would kill all processes inside before they could clean up.
    const isRequest = this.#contains && signal !== 'SIGKILL' && inside.length > 0;
    if (!isRequest) sendSignalToProcess(-this.#group, signal);
    for (const id of isRequest ? inside : members) sendSignalToProcess(id, signal);
  }
}

/** Returns all live processes that this process or one of its threads started. */
export function markedProcesses(): readonly number[] {
  const mark = `${MARK}=${processMarkOf('')}`;
  return (listProcesses() ?? []).map(({ id }) => id).filter((id) => processEnvironmentOf(id).includes(mark));
}

/** Kills orphans of a call that an earlier drover process did not end. Returns their number. */
export function endOrphanProcesses(callId: string): number {
  const mark = `:${callId}\0`;
  const orphans = (listProcesses() ?? []).filter(({ id }) => {
    const environment = processEnvironmentOf(id);
    return environment.includes(`${MARK}=`) && environment.includes(mark);
  });
  for (const { id } of orphans) sendSignalToProcess(id, 'SIGKILL');
  return orphans.length;
}

/** When a process began, as the system counts; undefined if there is no such process, or no way to know. */
export function processStartOf(id: number): string | undefined {
  const stat = undefinedIfProcessGone(() => readFileSync(`/proc/${id}/stat`, 'latin1'));
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

/** Sends a signal. Returns false if there is no such process. */
export function sendSignalToProcess(id: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(id, signal);
  } catch (error) {
    if (isProcessSignalRefused(error)) return false;
    throw error;
  }
}

type ProcessRow = {
  readonly id: number;
  readonly parent: number;
  readonly group: number;
  readonly startedAt: string;
};

// Sorted by id, so that parents come before their children. If ids have wrapped around, the next scan finds them.
function listProcesses(): readonly ProcessRow[] | undefined {
  if (process.platform !== 'linux') return undefined;
  const ids = (undefinedIfProcessGone(() => readdirSync('/proc')) ?? []).map(Number).filter(Number.isInteger);
  return ids
    .sort((a, b) => a - b)
    .map(processRowOf)
    .filter((row) => row !== undefined);
}

function processRowOf(id: number): ProcessRow | undefined {
  const stat = undefinedIfProcessGone(() => readFileSync(`/proc/${id}/stat`, 'latin1'));
  if (stat === undefined) return undefined;
  // The name is in parentheses and may contain any character, so count the fields from its end.
  const [state, parent, group, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z' || state === 'X' || id === process.pid) return undefined;
  return { id, parent: Number(parent), group: Number(group), startedAt: rest[16] ?? '' };
}

function processEnvironmentOf(id: number): string {
  return undefinedIfProcessGone(() => readFileSync(`/proc/${id}/environ`, 'latin1')) ?? '';
}

// A process may end during the scan, or belong to another user.
function undefinedIfProcessGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (isProcessSignalRefused(error)) return undefined;
    throw error;
  }
}

function isProcessSignalRefused(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && SYSTEM_CALLS_REFUSED.has(error.code)
  );
}
