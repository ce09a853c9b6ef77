// Workspaces on hosts: each attempt is placed on a host, works there, and comes back as a commit.
//
// Guarantees
//   1. The epoch is durable before the attempt is placed. Messages of an older epoch are refused.
//   2. The commit is made here, of the tree that the host sent last. So it is the one that this machine would make.
//   3. An attempt that loses its host resumes on another one, with the files of its last checkpoint. Files of every
//      acknowledged call are in it.

import { DroverError } from '@drover/core/errors';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { pause } from '@drover/core/promises';
import type { Event, HostName, Place, Recorded } from '@drover/protocol/events';
import type { Wish, Workspace, Workspaces } from '@drover/coordinator/slots/slots';
import type { CommitOrder, Committed } from '@drover/coordinator/slots/commit';
import type { Repository } from '@drover/coordinator/git/repository';
import type { Store } from '@drover/coordinator/store/store';
import { basename } from 'node:path';
import { digestOfOrder, type Job, type Order, placementId } from '../messages.ts';
import { EarlierPlacements } from './earlier.ts';
import type { Fleet } from './fleet.ts';
import { HostedAttempt, type HostedWish, type Placed, type Placing } from './hosted-attempt.ts';
import { type Checkpoint, Placement } from './placement.ts';
import { isFit, type PresentHost } from '../presence.ts';
import { hostQueueName, queueName } from './queue.ts';

const HELLO_MS_MAX = 10_000;
const WAKE_EVERY_MS = 1_000;
const REFUSALS_MAX = 5;

export type HostedOptions = {
  readonly run: string;
  readonly startedAt: string;
  readonly fleet: Fleet;
  readonly store: Store;
  readonly env: Readonly<Record<string, string>>;
  readonly repository: Pick<Repository, 'objectFormat' | 'identity'>;
  /** The part of an order that is equal for all tasks. */
  readonly asked: Pick<Order, 'setup' | 'sandbox' | 'net' | 'rules' | 'remote'>;
  /** The journal of earlier processes of the run. */
  readonly records: readonly Recorded[];
  readonly tell: (event: Event, place: Place) => void;
  readonly settled: () => Promise<void>;
};

export class HostedWorkspaces {
  readonly #options: HostedOptions;
  readonly #earlier: EarlierPlacements;
  #epoch: number;

  constructor(options: HostedOptions) {
    this.#options = options;
    this.#earlier = new EarlierPlacements(options.records);
    this.#epoch = this.#earlier.lastEpoch;
  }

  async take(wish: HostedWish): Promise<Workspace> {
    return this.#begin({ wish, goesOn: false, checkpoint: undefined }, []);
  }

  /** The workspace of an attempt that an earlier process has placed: on its host, or of its last checkpoint. */
  async again(wish: HostedWish): Promise<Workspace | undefined> {
    const earlier = this.#earlier.of(wish);
    if (earlier === undefined) return undefined;
    const { checkpoint, host, workspaces } = earlier;
    const isThere = (await this.#options.fleet.look()).some(({ id }) => id === host);
    const placing = { wish, goesOn: true, checkpoint, ...(host !== undefined && isThere && { host }) };
    return this.#begin(placing, workspaces);
  }

  async #begin(placing: Placing, before: readonly string[]): Promise<Workspace> {
    const attempt = new HostedAttempt(placing, {
      place: (next, onCheckpoint) => this.#place(next, onCheckpoint),
      tell: (event) => this.#options.tell(event, placeOfHostedWorkspace(placing.wish)),
    });
    await attempt.start(before);
    const { base } = placing.wish;
    return {
      path: attempt.path,
      base,
      sandbox: undefined,
      host: { name: () => attempt.host, run: (spec, link, signal) => attempt.run(spec, link, signal) },
      commit: (order) => this.#commit(order, base, attempt),
      release: () => attempt.release(),
    };
  }

  async #commit(
    { message, when, branch }: CommitOrder,
    base: string,
    { checkpoint, unsaved }: HostedAttempt,
  ): Promise<Committed | undefined> {
    if (unsaved !== undefined) throw new DroverError(unsaved);
    if (checkpoint === undefined || checkpoint.commit === base) return undefined;
    const { store, repository } = this.#options;
    const { out } = await store.git(['diff-tree', '-r', '-z', '--name-only', '--no-renames', base, checkpoint.commit]);
    const tree = (await store.git(['rev-parse', '--verify', `${checkpoint.commit}^{tree}`])).out.trim();
    const { identity: by } = repository;
    const commit = await store.commit({ tree, parent: base, message: message.replaceAll('\0', ''), by, when });
    await store.branch(branch, commit);
    return { commit, files: out.split('\0').filter((path) => path !== ''), leftOut: checkpoint.leftOut };
  }

  async #place(placing: Placing, onCheckpoint: (checkpoint: Checkpoint) => void): Promise<Placed> {
    const { wish } = placing;
    const { signal } = wish;
    const refused = new Map<string, string>(); // why, by host
    let next: Placing | undefined = placing;
    for (let refusals = 0; next !== undefined;) {
      const { job, order } = await this.#raise(next);
      const placement = await this.#offer({ job, order, placing: next }, onCheckpoint);
      if (signal.aborted) {
        placement?.break('the attempt was stopped');
        throw new DroverError(turnFailureOfSignal(signal));
      }
      const { host: _, ...anywhere } = placing;
      next = anywhere;
      if (placement === undefined) continue; // the host that took it is gone: with the next epoch
      try {
        const path = await placement.ready();
        const { tell } = this.#options;
        const { epoch } = job;
        tell(
          { type: 'placement', state: 'accepted', epoch, host: placement.host, workspace: path },
          placeOfHostedWorkspace(wish),
        );
        return { placement, epoch, path };
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#tellLost(wish, job.epoch, { host: placement.host, reason });
        refusals += 1;
        refused.set(placement.host.id, reason);
        const other = this.#otherHost(wish, refused);
        if (other !== undefined) next = { ...anywhere, host: other };
        else if (refusals >= REFUSALS_MAX) next = undefined;
      }
    }
    const reasons = [...new Set(refused.values())].join('; ');
    throw new DroverError({ kind: 'workspace.failed', message: `no host takes it: ${reasons}` });
  }

  /** A fitting host that has not refused, the least busy one first. */
  #otherHost({ runsOn = [] }: HostedWish, refused: ReadonlyMap<string, string>): string | undefined {
    const { hosts, version } = this.#options.fleet;
    const isOther = (host: PresentHost) =>
      isFit(host, version, runsOn) && host.idle === undefined && !refused.has(host.id);
    const free = ({ slots, work }: PresentHost) => slots - work.length;
    return hosts.filter((host) => isOther(host)).toSorted((a, b) => free(b) - free(a))[0]?.id;
  }

  #tellLost(wish: Wish, epoch: number, { host, reason }: { readonly host: HostName; readonly reason: string }): void {
    this.#options.tell({ type: 'placement', state: 'lost', epoch, host, reason }, placeOfHostedWorkspace(wish));
  }

  /** Raises the epoch durably. */
  async #raise({ wish, goesOn, checkpoint }: Placing): Promise<{ readonly job: Job; readonly order: Order }> {
    const { run, startedAt, asked, store, repository, fleet, tell, settled } = this.#options;
    const { task, attempt, worker, base } = wish;
    this.#epoch += 1;
    const epoch = this.#epoch;
    tell({ type: 'placement', state: 'queued', epoch }, placeOfHostedWorkspace(wish));
    await settled();
    const order: Order = {
      run,
      startedAt,
      task,
      attempt,
      worker,
      repository: basename(store.folder),
      objectFormat: repository.objectFormat,
      identity: repository.identity,
      base,
      ...(checkpoint !== undefined && { checkpoint: checkpoint.commit }),
      goesOn,
      ...asked,
    };
    return { job: { run, task, attempt, epoch, coordinator: fleet.address, digest: digestOfOrder(order) }, order };
  }

  /** Offers the job until a host takes it. Undefined if the job has vanished, or its host is gone. */
  async #offer(
    { job, order, placing }: { readonly job: Job; readonly order: Order; readonly placing: Placing },
    onCheckpoint: (checkpoint: Checkpoint) => void,
  ): Promise<Placement | undefined> {
    const { fleet, store, env } = this.#options;
    const { signal, runsOn = [] } = placing.wish;
    const line = placementId(job);
    const name = placing.host === undefined ? queueName(fleet.version, runsOn) : hostQueueName(placing.host);
    let taken: Placement | undefined;
    const waiting = new AbortController();
    fleet.expect(line, (from, host) => {
      fleet.forget(line);
      taken = new Placement({
        host,
        order,
        store: { gitDir: store.gitDir, env },
        open: (hear, broken) => fleet.open({ line, from, hear, broken }),
        drop: (opened, why) => fleet.drop(opened, why),
        onCheckpoint,
      });
      waiting.abort();
    });
    const stop = AbortSignal.any([signal, waiting.signal]);
    try {
      await this.#offerUntil(stop, { name, job, placing });
    } finally {
      fleet.forget(line);
    }
    await fleet.queues.withdraw(name, job);
    return taken;
  }

  async #offerUntil(
    stop: AbortSignal,
    { name, job, placing }: { readonly name: string; readonly job: Job; readonly placing: Placing },
  ): Promise<void> {
    const { fleet, tell } = this.#options;
    const { runsOn = [] } = placing.wish;
    const begun = performance.now();
    let isTold = false;
    while (!stop.aborted) {
      // A job that waits is not added again; one that a restarted Redis has forgotten is.
      const isThere = await fleet.queues.offer(name, job);
      if (stop.aborted) return;
      fleet.wake(name, runsOn);
      await pause(WAKE_EVERY_MS, stop);
      const isLate = performance.now() - begun >= HELLO_MS_MAX;
      if (!isLate || stop.aborted) continue;
      if (isThere === 'taken' || placing.host !== undefined) return;
      if (isTold) continue;
      isTold = true;
      tell({ type: 'warning', message: hostWaitWords(runsOn, fleet) }, placeOfHostedWorkspace(placing.wish));
    }
  }
}

/** The run's own slots for so many attempts at once, and hosts for the others. */
export function withLocalWorkspaces(slots: Workspaces, local: number, hosted: Workspaces): Workspaces {
  let busy = 0;
  const counted = (workspace: Workspace): Workspace => ({
    ...workspace,
    release: async (since) => {
      busy -= 1;
      await workspace.release(since);
    },
  });
  return {
    take: async (wish) => {
      if (busy >= local || (wish.runsOn ?? []).length > 0) return hosted.take(wish);
      busy += 1;
      try {
        return counted(await slots.take(wish));
      } catch (error) {
        busy -= 1;
        throw error;
      }
    },
    again: async (wish) => {
      const here = await slots.again(wish);
      if (here === undefined) return hosted.again(wish);
      busy += 1;
      return counted(here);
    },
  };
}

function hostWaitWords(labels: readonly string[], { hosts, version }: Pick<Fleet, 'hosts' | 'version'>): string {
  const fitting = hosts.filter((host) => isFit(host, version, labels));
  const flags = labels.map((label) => ` --label ${label}`).join('');
  if (fitting.length === 0) {
    const other = hosts.find((host) => isFit(host, host.version, labels));
    if (other !== undefined)
      return `the hosts run drover ${other.version}, and this one is ${version}, so the task waits: install the same version on both sides`;
    const which = labels.length === 0 ? 'no host is there' : `no host has the label ${labels.join(', ')}`;
    return `${which}, so the task waits: start one with drover worker --queue …${flags}`;
  }
  const [idle] = fitting.filter((host) => host.idle !== undefined);
  if (idle !== undefined) return `${idle.name} takes no work, so the task waits: ${idle.idle}`;
  return `all ${fitting.length} hosts are busy, so the task waits: start more, or give them more --slots`;
}

function placeOfHostedWorkspace({ worker, task, attempt }: Wish): Place {
  return { worker, task, attempt };
}
