// Who belongs to a child process: its group, its descendants, and whoever carries its mark.
//
// A process can leave its group (setsid) and lose its parent (a double fork); what it keeps is the
// environment it was started with. So every child carries a variable that says which drover process
// and which call it belongs to, and on Linux all processes are looked through for it. One that also
// wipes its environment is still found if its parents were alive at the first look. Where there is
// no /proc the group is all that is known.

import { readdirSync, readFileSync } from 'node:fs';

export const MARK = 'DROVER_CHILD';

const SYSTEM_CALLS_REFUSED = new Set(['ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'ENOTDIR']);

/** The value of the mark: all children of this process share the beginning, also those of its threads. */
export function markOf(callId: string): string {
  return `${process.pid}:${callId}`;
}

/** One call's processes, followed over time. */
export class ProcessTree {
  readonly #group: number;
  readonly #mark: string;
  readonly #contains: boolean;
  // Process id -> when it started: an id alone may be somebody else's by now.
  readonly #seen = new Map<number, string>();

  /** `contains`: the leader of the group is a sandbox, and all in it end with it. */
  constructor(group: number, callId: string, contains = false) {
    this.#group = group;
    this.#contains = contains;
    this.#mark = `${MARK}=${markOf(callId)}\0`;
  }

  /** Is anybody left in the group? Cheap, but also true for the dead that nobody has buried. */
  get groupMayLive(): boolean {
    return sendSignal(-this.#group, 0);
  }

  /** The processes that are alive now. */
  look(): readonly number[] {
    const all = processes();
    if (all === undefined) return this.groupMayLive ? [this.#group] : [];
    const members = new Set<number>();
    for (const one of all) {
      const belongs =
        one.group === this.#group ||
        this.#seen.get(one.id) === one.startedAt ||
        members.has(one.parent) ||
        environmentOf(one.id).includes(this.#mark);
      if (!belongs) continue;
      members.add(one.id);
      this.#seen.set(one.id, one.startedAt);
    }
    return [...members];
  }

  signal(members: readonly number[], signal: NodeJS.Signals): void {
    const inside = members.filter((id) => id !== this.#group);
    // The sandbox would take all inside along before any of them could tidy up.
    const isRequest = this.#contains && signal !== 'SIGKILL' && inside.length > 0;
    if (!isRequest) sendSignal(-this.#group, signal);
    for (const id of isRequest ? inside : members) sendSignal(id, signal);
  }
}

/** Everything that this process, or a thread of it, has started and that is still alive. */
export function markedProcesses(): readonly number[] {
  const mark = `${MARK}=${markOf('')}`;
  return (processes() ?? []).map(({ id }) => id).filter((id) => environmentOf(id).includes(mark));
}

/** Ends what a call started that drover, killed in the middle of it, could not end itself. Returns how many it found. */
export function endOrphans(callId: string): number {
  const mark = `:${callId}\0`;
  const orphans = (processes() ?? []).filter(({ id }) => {
    const environment = environmentOf(id);
    return environment.includes(`${MARK}=`) && environment.includes(mark);
  });
  for (const { id } of orphans) sendSignal(id, 'SIGKILL');
  return orphans.length;
}

/** False where there is nobody to send it to. */
export function sendSignal(id: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(id, signal);
  } catch (error) {
    if (isRefused(error)) return false;
    throw error;
  }
}

type ProcessRow = {
  readonly id: number;
  readonly parent: number;
  readonly group: number;
  readonly startedAt: string;
};

// By id, so that a parent stands before its children (but for the rare case that ids have wrapped
// round; then the next look finds them).
function processes(): readonly ProcessRow[] | undefined {
  if (process.platform !== 'linux') return undefined;
  const ids = (attempt(() => readdirSync('/proc')) ?? []).map(Number).filter(Number.isInteger);
  return ids
    .sort((a, b) => a - b)
    .map(rowOf)
    .filter((row) => row !== undefined);
}

function rowOf(id: number): ProcessRow | undefined {
  const stat = attempt(() => readFileSync(`/proc/${id}/stat`, 'latin1'));
  if (stat === undefined) return undefined;
  // The name stands in parentheses and may contain anything, so the fields are counted from its end.
  const [state, parent, group, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z' || state === 'X' || id === process.pid) return undefined;
  return { id, parent: Number(parent), group: Number(group), startedAt: rest[16] ?? '' };
}

function environmentOf(id: number): string {
  return attempt(() => readFileSync(`/proc/${id}/environ`, 'latin1')) ?? '';
}

// A process may end, or turn out to be somebody else's, while it is looked at.
function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (isRefused(error)) return undefined;
    throw error;
  }
}

function isRefused(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && SYSTEM_CALLS_REFUSED.has(error.code)
  );
}
