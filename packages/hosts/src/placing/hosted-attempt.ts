// An attempt on hosts, from its first placement to its release, over as many hosts as it takes.

import { turnFailureOfSignal } from '@drover/core/agent/limits';
import type { Event } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { TaskLink } from '@drover/core/task/link';
import type { Displaced, TaskSpec } from '@drover/core/task/task';
import { Unfinished } from '@drover/coordinator/pool/loss';
import type { Wish } from '@drover/coordinator/slots/slots';
import type { Checkpoint, Placement } from './placement.ts';

/** How often an attempt may lose its host. */
const MOVES_MAX = 8;

export type HostedWish = Wish & { readonly runsOn?: readonly string[] };

/** The placement of an attempt. */
export type Placing = {
  readonly wish: HostedWish;
  readonly goesOn: boolean;
  readonly checkpoint: Checkpoint | undefined;
  readonly host?: string; // only there
};

export type Placed = { readonly placement: Placement; readonly epoch: number; readonly path: string };

type Ways = {
  readonly place: (placing: Placing, onCheckpoint: (checkpoint: Checkpoint) => void) => Promise<Placed>;
  readonly tell: (event: Event) => void;
};

export class HostedAttempt {
  readonly #first: Placing;
  readonly #ways: Ways;
  readonly #workspaces: string[] = []; // all that it had, the present one last
  #placed: Placed | undefined;
  #moves = 0;
  checkpoint: Checkpoint | undefined;
  /** Why the files on the host could not become a commit. */
  unsaved: Failure | undefined;

  constructor(first: Placing, ways: Ways) {
    this.#first = first;
    this.#ways = ways;
    this.checkpoint = first.checkpoint;
  }

  get path(): string {
    return this.#workspaces.at(-1) ?? '';
  }

  get host(): string {
    return this.#placed?.placement.host.name ?? '';
  }

  /** `before`: the workspaces that the attempt had in an earlier process of the run. */
  async start(before: readonly string[]): Promise<void> {
    this.#workspaces.push(...before);
    await this.#place(this.#first);
  }

  /** Displaced if the host is lost: the next call places the attempt on another one, with its last checkpoint. */
  async run(spec: TaskSpec, link: TaskLink, signal: AbortSignal): Promise<TaskOutcome | Displaced> {
    const unfinished = new Unfinished(spec, link);
    if (this.#placed === undefined || this.#placed.placement.isLost) await this.#move();
    const end = await this.#placed?.placement.run(this.#located(spec), unfinished.link, signal);
    if (end?.type === 'outcome') {
      this.unsaved = end.unsaved;
      return end.outcome;
    }
    const why = end?.why ?? 'it was never placed';
    this.#tellLost(why);
    if (signal.aborted) return unfinished.end(turnFailureOfSignal(signal), signal);
    this.#moves += 1;
    const failure: Failure = { kind: 'worker.lost', message: why };
    if (this.#moves > MOVES_MAX) return unfinished.end(failure, signal);
    return { status: 'displaced', why, alone: false };
  }

  async release(): Promise<void> {
    await this.#placed?.placement.release();
  }

  async #move(): Promise<void> {
    const { wish } = this.#first;
    await this.#place({ wish, goesOn: false, checkpoint: this.checkpoint });
  }

  async #place(placing: Placing): Promise<void> {
    this.#placed = await this.#ways.place(placing, (checkpoint) => {
      this.checkpoint = checkpoint;
      const { commit, leftOut } = checkpoint;
      this.#ways.tell({ type: 'placement', state: 'checkpoint', epoch: this.#placed?.epoch ?? 0, commit, leftOut });
    });
    this.#workspaces.push(this.#placed.path);
  }

  #tellLost(reason: string): void {
    if (this.#placed === undefined) return;
    const { epoch, placement } = this.#placed;
    this.#ways.tell({ type: 'placement', state: 'lost', epoch, host: placement.host, reason });
  }

  /** The task as it is for the present workspace: its conversation may name earlier ones. */
  #located(spec: TaskSpec): TaskSpec {
    const { path } = this;
    const { begin, past, ...rest } = spec;
    const earlier = this.#workspaces.filter((each) => each !== path);
    const located = {
      begin: relocateHostedPaths(begin, earlier, path),
      ...(past && { past: relocateHostedPaths(past, earlier, path) }),
    };
    // The environment and the sandbox are the host's own.
    const { sandbox: _, ...plain } = rest;
    return { ...plain, ...located, workspace: path, env: {} };
  }
}

/** A copy in which every text names the new path instead of the old ones. */
function relocateHostedPaths<Value>(value: Value, from: readonly string[], to: string): Value {
  if (from.length === 0) return value;
  return walkHostedValue(value, (text) => from.reduce((changed, path) => changed.replaceAll(path, to), text)) as Value;
}

function walkHostedValue(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((each) => walkHostedValue(each, change));
  if (value instanceof Map) return new Map([...value].map(([key, each]) => [key, walkHostedValue(each, change)]));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, walkHostedValue(each, change)]));
}
