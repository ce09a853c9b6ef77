// The hosts as the coordinator of a run sees them: who is there, whose lease runs, and which lines are open.
//
// The coordinator decides by its own clock. A host that it has not heard for 20 s is lost, and so is an attempt that
// its host does not name any more.

import type { HostName } from '@drover/protocol/events';
import { randomBytes } from 'node:crypto';
import { bestEffort } from '@drover/core/promises';
import type { Diagnose } from '@drover/core/diagnosis';
import { LOST_MS } from '../lease.ts';
import type { Frame, Line } from '../line/line.ts';
import { Mailbox } from '../line/mailbox.ts';
import { connectRedis, type Connection, isRedisReady, type QueueAddress } from '../line/redis.ts';
import { Signer } from '../line/signature.ts';
import type { FromHost, Note, ToHost } from '../messages.ts';
import { inboxOfHost, isFit, listHosts, listKeys, PRESENCE_EVERY_MS, type PresentHost } from '../presence.ts';
import { hostQueueName, PlacementQueues, queueName } from './queue.ts';

const CHECK_EVERY_MS = 1_000;

export type FleetOptions = {
  readonly run: string;
  readonly version: string; // hosts of another one are not given work
  readonly onDiagnostic: Diagnose;
};

export type Opened = {
  readonly line: string;
  readonly from: string;
  readonly hear: (frame: Frame<FromHost>) => void;
  readonly broken: (why: string) => void;
};

/** An attempt that works on a host. */
type Working = { readonly address: string; readonly broken: (why: string) => void; isNamed: boolean };

export class Fleet {
  readonly queues: PlacementQueues;
  readonly address: string;
  readonly version: string; // of drover
  readonly #run: string;
  readonly #signer: Signer;
  readonly #redis: Connection;
  readonly #mailbox: Mailbox;
  readonly #onDiagnostic: Diagnose;
  readonly #hellos = new Map<string, (from: string, host: HostName) => void>(); // by line, while it is placed
  readonly #working = new Map<string, Working>(); // by line
  readonly #heardAt = new Map<string, number>(); // by address
  readonly #used = new Set<string>(); // addresses of hosts that worked for the run
  readonly #timers: readonly NodeJS.Timeout[];
  #hosts: readonly PresentHost[] = [];

  constructor(queue: QueueAddress, { run, version, onDiagnostic }: FleetOptions) {
    this.#run = run;
    this.version = version;
    this.#onDiagnostic = onDiagnostic;
    this.#signer = new Signer(queue.key);
    this.#redis = connectRedis(queue);
    this.queues = new PlacementQueues(queue, this.#signer);
    // Another process of the same run gets another inbox, so that messages of this one cannot be replayed to it.
    this.address = inboxOfHost(`${run}.${randomBytes(6).toString('hex')}`);
    this.#mailbox = new Mailbox({
      queue,
      signer: this.#signer,
      address: this.address,
      onNote: (from, body) => this.#hear(from, body as Note),
      onStranger: (from, line) => this.#refuse(from, line),
      onRefused: (why, from) => onDiagnostic('a message was refused', { why, from }, 'warn'),
    });
    this.#timers = [
      setInterval(() => void this.look(), PRESENCE_EVERY_MS),
      setInterval(() => this.#check(), CHECK_EVERY_MS),
    ];
  }

  get hosts(): readonly PresentHost[] {
    return this.#hosts;
  }

  /** Looks who is there. */
  async look(): Promise<readonly PresentHost[]> {
    const found = await bestEffort(listHosts(this.#redis, this.#signer));
    if (found !== undefined) this.#hosts = found.hosts;
    return this.#hosts;
  }

  async opened(): Promise<void> {
    await Promise.all([this.#mailbox.opened(), isRedisReady(this.#redis)]);
    await bestEffort(this.#clearEarlier());
    await this.look();
  }

  /** Removes inboxes of earlier processes of the run: one that was killed has left its own. */
  async #clearEarlier(): Promise<void> {
    const found = await listKeys(this.#redis, `${inboxOfHost(this.#run)}.`);
    for (const address of found) if (address !== this.address) await this.#mailbox.remove(address);
  }

  /** Calls `take` when a host says that it took the placement. */
  expect(line: string, take: (from: string, host: HostName) => void): void {
    this.#hellos.set(line, take);
  }

  forget(line: string): void {
    this.#hellos.delete(line);
  }

  wake(queue: string, labels: readonly string[]): void {
    for (const host of this.#hosts)
      if (isFit(host, this.version, labels))
        this.#mailbox.note(host.address, { type: 'wake', queue, labels: [...labels] } satisfies Note);
  }

  open({ line, from, hear, broken }: Opened): Line<FromHost, ToHost> {
    this.#used.add(from);
    this.#heardAt.set(from, performance.now());
    this.#working.set(line, { address: from, broken, isNamed: false });
    return this.#mailbox.open<FromHost, ToHost>({ id: line, peer: from, hear, broken });
  }

  /** `why`: the placement is over against the host's will, so the host is told. */
  drop(line: Line<FromHost, ToHost>, why: string | undefined): void {
    this.#working.delete(line.id);
    this.#mailbox.drop(line);
    if (why !== undefined) this.#mailbox.note(line.peer, { type: 'closed', line: line.id, why } satisfies Note);
  }

  /** Ends with no keys of this run left in Redis. `isOver`: hosts need not keep workspaces for a resume. */
  async close(isOver: boolean): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    const hosts = await this.look();
    const isThere = (address: string) => hosts.some((host) => host.address === address);
    for (const address of this.#used) {
      if (isOver && isThere(address)) this.#mailbox.note(address, { type: 'run over', run: this.#run } satisfies Note);
      // A lost host does not clear its own inbox.
      if (!isThere(address)) await this.#mailbox.remove(address);
    }
    const waited = new Set(hosts.flatMap(({ id, version }) => [hostQueueName(id), queueName(version, [])]));
    await this.queues.close((name) => waited.has(name));
    await this.#mailbox.close();
    this.#redis.disconnect();
  }

  #hear(from: string, note: Note): void {
    if (note.type === 'hello') {
      const take = this.#hellos.get(note.line);
      if (take !== undefined) return take(from, note.host);
      if (this.#working.get(note.line)?.address !== from) this.#refuse(from, note.line);
    } else if (note.type === 'renew') this.#renew(from, note.id, new Set(note.lines));
    else if (note.type === 'closed') {
      const working = this.#working.get(note.line);
      if (working?.address === from) working.broken(note.why);
    }
  }

  #renew(from: string, id: number, lines: ReadonlySet<string>): void {
    this.#heardAt.set(from, performance.now());
    this.#mailbox.note(from, { type: 'renewed', id } satisfies Note);
    for (const [line, working] of this.#working) {
      if (working.address !== from) continue;
      if (lines.has(line)) working.isNamed = true;
      else if (working.isNamed) working.broken('the host ended it');
    }
  }

  #check(): void {
    const now = performance.now();
    for (const { address, broken } of this.#working.values()) {
      const silentMs = now - (this.#heardAt.get(address) ?? now);
      if (silentMs >= LOST_MS) broken(`its host gave no sign of life for ${Math.round(silentMs / 1_000)} s`);
    }
  }

  #refuse(from: string, line: string): void {
    const why = 'its placement is over: the attempt has a newer epoch, or none';
    this.#onDiagnostic('a frame of another placement was refused', { from, line }, 'warn');
    this.#mailbox.note(from, { type: 'closed', line, why } satisfies Note);
  }
}
