// A host: takes placements from the queue, up to its slots, and works on them until it is closed.
//
// Guarantees
//   1. A placement with an older epoch than one that this host has seen for the attempt is refused.
//   2. Without a confirmed lease for 15 s, the host ends the attempts of that coordinator and their processes, and
//      keeps their workspaces.
//   3. `close` ends everything and leaves no keys of this host in Redis.

import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { bestEffort } from '@drover/core/promises';
import type { Diagnose } from '@drover/core/diagnosis';
import { DroverError } from '@drover/core/errors';
import type { NetworkEvent } from '@drover/protocol/events';
import { describe } from '@drover/protocol/failures';
import type { RunTask } from '@drover/core/task/task';
import type { Contain } from '@drover/coordinator/slots/containment';
import { Slots, type Workspace } from '@drover/coordinator/slots/slots';
import { Lease, RENEW_EVERY_MS } from '../lease.ts';
import { connectRedis, type Connection, isRedisReady, type QueueAddress } from '../line/redis.ts';
import { Mailbox } from '../line/mailbox.ts';
import { Signer } from '../line/signature.ts';
import { type FromHost, type Job, type Note, type Order, placementId, type ToHost } from '../messages.ts';
import { announceHost, inboxOfHost, listHosts, type PresentHost, retractHost } from '../presence.ts';
import { hostQueueName, JobSource, queueName, type TakenJob } from '../placing/queue.ts';
import { PlacedTask, type OpenRun } from './placed-task.ts';
import { fetchBulk, type HostRepository, openHostRepository } from './repository.ts';

const CLOSE_MS_MAX = 10_000;
/** A host with less free disk takes no work: a checkout or a commit could fail half way. */
const FREE_MB_MIN = 32;

export type HostOptions = {
  readonly queue: QueueAddress;
  readonly id: string;
  readonly name?: string; // default: the name of the machine
  readonly slots: number;
  readonly labels: readonly string[];
  readonly version: string;
  readonly home: string;
  /** Whether it fetches the history from the remote of a repository. */
  readonly fetches: boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly runTask: RunTask;
  /** The sandbox of a run's commands. Throws Refusal if it cannot be what the order asks for. */
  readonly contain: (order: Order, onConnection: OnConnection) => Promise<Contain | undefined>;
  /** Tells the user of this host, in one line. */
  readonly tell: (line: string) => void;
  readonly onDiagnostic: Diagnose;
};

type OnConnection = (event: NetworkEvent, label: { readonly task?: string; readonly attempt?: number }) => void;

type RunHere = { readonly slots: Promise<OpenRun>; readonly links: Map<string, LinkEmit> };

type LinkEmit = (event: NetworkEvent, step: object) => void;

export class Host {
  readonly #options: HostOptions;
  readonly #signer: Signer;
  readonly #redis: Connection;
  readonly #mailbox: Mailbox;
  readonly #jobs: JobSource;
  readonly #placed = new Map<string, PlacedTask>(); // by the id of the line
  readonly #kept = new Map<string, Workspace>(); // by attempt
  readonly #epochs = new Map<string, number>(); // the highest of each attempt
  readonly #leases = new Map<string, Lease>(); // by coordinator
  readonly #runs = new Map<string, RunHere>();
  readonly #queues: Set<string>;
  readonly #ticking: NodeJS.Timeout;
  #filling: Promise<void> | undefined;
  #idleBecause: string | undefined; // why it takes no work
  #isClosing = false;

  constructor(options: HostOptions) {
    const { queue, id, version } = options;
    this.#options = options;
    this.#signer = new Signer(queue.key);
    this.#redis = connectRedis(queue);
    this.#queues = new Set([hostQueueName(id), queueName(version, [])]);
    const refused = (why: string, from: string) => this.#refuse(why, from);
    this.#jobs = new JobSource(queue, this.#signer, refused);
    this.#mailbox = new Mailbox({
      queue,
      signer: this.#signer,
      address: inboxOfHost(id),
      onNote: (from, body) => this.#hear(from, body as Note),
      onStranger: (from, line) => this.#mailbox.note(from, { type: 'closed', line, why: 'not open on this host' }),
      onRefused: refused,
    });
    this.#ticking = setInterval(() => void this.#tick(), RENEW_EVERY_MS);
  }

  /** Resolves when the host is announced and takes work. */
  async open(): Promise<void> {
    await Promise.all([this.#mailbox.opened(), isRedisReady(this.#redis)]);
    await bestEffort(announceHost(this.#redis, this.#signer, this.#present()));
    await this.#fill();
  }

  get name(): string {
    return this.#options.name ?? hostname();
  }

  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    clearInterval(this.#ticking);
    await this.#filling;
    const ended = [...this.#placed.values()].map((placed) => {
      placed.end({ kind: 'aborted', by: 'shutdown' }, 'stopped');
      return placed.ended;
    });
    await Promise.race([Promise.all(ended), new Promise((resolve) => setTimeout(resolve, CLOSE_MS_MAX).unref())]);
    for (const run of this.#runs.keys()) await this.#closeRun(run);
    await bestEffort(retractHost(this.#redis, this.#options.id));
    const others = await bestEffort(listHosts(this.#redis, this.#signer));
    const { id, version } = this.#options;
    const isLast = others?.hosts.every((host) => host.version !== version) === true;
    await this.#jobs.close((name) => isLast || name === hostQueueName(id));
    await this.#mailbox.close();
    this.#redis.disconnect();
  }

  #present(): PresentHost {
    const { id, name = hostname(), slots, labels, version } = this.#options;
    const work = [...this.#placed.values()].map(({ job: { run, task, attempt } }) => ({ run, task, attempt }));
    const idle = this.#idleBecause;
    const present = { id, name, address: inboxOfHost(id), version, slots, labels: [...labels], work };
    return idle === undefined ? present : { ...present, idle };
  }

  async #tick(): Promise<void> {
    for (const [coordinator, lease] of this.#leases) this.#renew(coordinator, lease);
    await bestEffort(announceHost(this.#redis, this.#signer, this.#present()));
    await this.#fill();
  }

  #renew(coordinator: string, lease: Lease): void {
    const lines = [...this.#placed].filter(([, { job }]) => job.coordinator === coordinator).map(([line]) => line);
    if (lines.length === 0) return void this.#leases.delete(coordinator);
    if (!lease.isOver) {
      this.#mailbox.note(coordinator, { type: 'renew', id: lease.renew(), host: this.#options.id, lines });
      return;
    }
    this.#leases.delete(coordinator);
    for (const line of lines) {
      this.#options.tell(
        `${servedJobName(this.#placed.get(line)?.job)}: its coordinator is silent, so it is ended here`,
      );
      this.#placed.get(line)?.end({ kind: 'worker.lost', message: 'the lease of this host is over' }, 'host');
    }
  }

  #hear(from: string, note: Note): void {
    switch (note.type) {
      case 'wake':
        if (note.labels.every((label) => this.#options.labels.includes(label))) this.#queues.add(note.queue);
        return void this.#fill();
      case 'renewed':
        return this.#leases.get(from)?.confirm(note.id);
      case 'closed': {
        const placed = this.#placed.get(note.line);
        if (placed?.job.coordinator !== from) return;
        return placed.end({ kind: 'worker.lost', message: note.why }, 'closed');
      }
      case 'run over':
        return void this.#closeRun(note.run);
      case 'hello':
      case 'renew':
        return;
    }
  }

  /** Takes work while there are free slots. */
  #fill(): Promise<void> {
    this.#filling ??= bestEffort(this.#takeAll()).then(() => (this.#filling = undefined));
    return this.#filling;
  }

  async #takeAll(): Promise<void> {
    if (await this.#isShortOfDisk()) return;
    for (const name of this.#queues) {
      while (!this.#isClosing && this.#placed.size < this.#options.slots) {
        const taken = await this.#jobs.take(name);
        if (taken === undefined) break;
        this.#accept(taken);
      }
    }
  }

  async #isShortOfDisk(): Promise<boolean> {
    const { bavail, bsize } = await statfs(this.#options.home);
    const before = this.#idleBecause;
    const isShort = bavail * bsize < FREE_MB_MIN * 1024 * 1024;
    this.#idleBecause = isShort ? `its disk has less than ${FREE_MB_MIN} MB free` : undefined;
    if (isShort && before === undefined) this.#options.tell(`takes no work: ${this.#idleBecause}`);
    return isShort;
  }

  #accept({ job, done }: TakenJob): void {
    const attempt = servedAttemptName(job);
    const newest = this.#epochs.get(attempt) ?? 0;
    if (job.epoch <= newest) {
      this.#refuse(`its epoch ${job.epoch} is not newer than ${newest}`, placementId(job));
      return void done();
    }
    this.#epochs.set(attempt, job.epoch);
    const older = [...this.#placed.values()].filter((placed) => servedAttemptName(placed.job) === attempt);
    for (const each of older) each.end({ kind: 'worker.lost', message: 'it was placed anew' }, 'host');
    const id = placementId(job);
    const placed: PlacedTask = new PlacedTask((self) => this.#contextOf(job, self, { older, done }));
    this.#placed.set(id, placed);
    if (!this.#leases.has(job.coordinator)) this.#leases.set(job.coordinator, new Lease(() => performance.now()));
    this.#options.tell(`${servedJobName(job)}: begins`);
    void this.#follow(id, placed);
  }

  async #follow(id: string, placed: PlacedTask): Promise<void> {
    await placed.ended;
    this.#placed.delete(id);
    this.#options.tell(`${servedJobName(placed.job)}: over`);
    await this.#fill();
  }

  #contextOf(
    job: Job,
    self: PlacedTask,
    { older, done }: { readonly older: readonly PlacedTask[]; readonly done: () => Promise<void> },
  ): ConstructorParameters<typeof PlacedTask>[0] extends (placed: PlacedTask) => infer Context ? Context : never {
    const { home, env, runTask, id, name = hostname() } = this.#options;
    const attempt = servedAttemptName(job);
    const line = this.#mailbox.open<ToHost, FromHost>({
      id: placementId(job),
      peer: job.coordinator,
      hear: (frame) => self.hear(frame),
      broken: (message) => self.end({ kind: 'worker.lost', message }, 'host'),
    });
    return {
      job,
      line,
      hello: () => this.#mailbox.note(job.coordinator, { type: 'hello', line: line.id, host: { id, name } }),
      home,
      env,
      runTask,
      open: async (order) => {
        void done();
        await Promise.all(older.map(({ ended }) => ended));
        return this.#openRun(order);
      },
      kept: () => {
        const workspace = this.#kept.get(attempt);
        this.#kept.delete(attempt);
        return workspace;
      },
      keep: (workspace) => void this.#kept.set(attempt, workspace),
      onLink: (emit) => {
        const links = this.#runs.get(job.run)?.links;
        if (emit === undefined) links?.delete(attempt);
        else links?.set(attempt, emit);
        if (emit === undefined) void this.#leave(line);
      },
    };
  }

  /** Forgets the line once the coordinator has all of it. */
  async #leave(line: { readonly id: string; readonly close: () => void; readonly drained: () => Promise<void> }) {
    await Promise.race([line.drained(), new Promise((resolve) => setTimeout(resolve, CLOSE_MS_MAX).unref())]);
    this.#mailbox.drop(line);
  }

  #openRun(order: Order): Promise<OpenRun> {
    const { run } = order;
    const links = new Map<string, LinkEmit>();
    let here = this.#runs.get(run);
    if (here === undefined) {
      here = { links, slots: this.#openSlots(order, links) };
      this.#runs.set(run, here);
      here.slots.catch(() => this.#runs.delete(run));
    }
    return here.slots;
  }

  async #openSlots(order: Order, links: ReadonlyMap<string, LinkEmit>): Promise<OpenRun> {
    const { home, env } = this.#options;
    const { run, setup } = order;
    const contain = await this.#options.contain(order, (event, { task, attempt }) =>
      links.get(`${run} ${task} ${attempt}`)?.(event, {}),
    );
    const repository = await openHostRepository(order, { home, env });
    await this.#fetch(order, repository);
    const slots = await Slots.open({
      home,
      repository: repository.repository,
      run,
      env,
      setup: { commands: setup, outputFolder: join(home, 'hosts', 'outputs', run, 'setup') },
      ...(contain !== undefined && { contain }),
    });
    return { slots, repository, contained: contain !== undefined };
  }

  /** The coordinator sends what could not be fetched. */
  async #fetch({ run, remote }: Order, repository: HostRepository): Promise<void> {
    if (!this.#options.fetches || remote === undefined) return;
    const end = await fetchBulk(repository, remote).then(
      () => 'fetched',
      (error: unknown) => `could not fetch (${error instanceof DroverError ? describe(error.failure) : String(error)})`,
    );
    this.#options.tell(`${run}: ${end} from ${remote}`);
  }

  async #closeRun(run: string): Promise<void> {
    const here = this.#runs.get(run);
    if (here === undefined || [...this.#placed.values()].some(({ job }) => job.run === run && !this.#isClosing)) return;
    this.#runs.delete(run);
    for (const [attempt, workspace] of this.#kept) {
      if (!attempt.startsWith(`${run} `)) continue;
      this.#kept.delete(attempt);
      // Still this run's where the host itself closes: it may be resumed.
      if (!this.#isClosing) await bestEffort(workspace.release());
    }
    const open = await bestEffort(here.slots);
    await open?.slots.close();
  }

  #refuse(why: string, from: string): void {
    this.#options.onDiagnostic('a message was refused', { why, from }, 'warn');
    this.#options.tell(`refused a message of ${from}: ${why}`);
  }
}

function servedAttemptName({ run, task, attempt }: Pick<Job, 'run' | 'task' | 'attempt'>): string {
  return `${run} ${task} ${attempt}`;
}

function servedJobName(job: Job | undefined): string {
  return job === undefined ? 'an attempt' : `${job.task} (attempt ${job.attempt}, ${job.run})`;
}
