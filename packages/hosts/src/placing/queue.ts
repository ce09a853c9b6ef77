// The queue of placements: one BullMQ job per placement, with a signature of its own.
//
// A job only hands an attempt to a host. The host takes it, answers over the line, and the job is done. Leases and
// epochs decide the rest, so nothing depends on what BullMQ believes about a job that is under way.
//
// Each set of labels has a queue of its own, and so has each host: the first for tasks that any host with these labels
// may take, the second for an attempt whose workspace a certain host has kept.

import { type Job as QueueJob, Queue, Worker } from 'bullmq';
import { bestEffort } from '@drover/core/promises';
import { connectRedisForQueue, type Connection, type QueueAddress } from '../line/redis.ts';
import type { Signer } from '../line/signature.ts';
import { type Job, placementId } from '../messages.ts';
import { PREFIX } from '../presence.ts';

const LOCK_MS = 10_000;

/** Version and labels are in the name, so a host never takes a job that it could not do. */
export function queueName(version: string, labels: readonly string[]): string {
  return [`v${version}`, ...labels.toSorted()].join('.');
}

export function hostQueueName(host: string): string {
  return `host.${host}`;
}

type SignedJob = { readonly job: string; readonly signature: string };

/** The coordinator's side: adds jobs and takes them back. */
export class PlacementQueues {
  readonly #connection: Connection;
  readonly #signer: Signer;
  readonly #queues = new Map<string, Queue<SignedJob>>();

  constructor(address: QueueAddress, signer: Signer) {
    this.#connection = connectRedisForQueue(address);
    this.#signer = signer;
  }

  /** Adds the job unless it is there already. `taken`: a host has it. */
  async offer(name: string, job: Job): Promise<'waiting' | 'taken'> {
    const state = await this.#queue(name).getJobState(placementId(job));
    if (state === 'active') return 'taken';
    if (state === 'unknown') await this.#add(name, job);
    return 'waiting';
  }

  async #add(name: string, job: Job): Promise<void> {
    const text = JSON.stringify(job);
    const signature = this.#signer.sign([name, text]).toString('base64');
    const options = { jobId: placementId(job), removeOnComplete: true, removeOnFail: true, attempts: 1 };
    await this.#queue(name).add('placement', { job: text, signature }, options);
  }

  /** Takes the job back. One that a host has just taken is left to end by itself. */
  async withdraw(name: string, job: Job): Promise<void> {
    await bestEffort(this.#queue(name).remove(placementId(job)));
  }

  /** Removes the queues from Redis, unless hosts wait at them. */
  async close(isUsed: (name: string) => boolean): Promise<void> {
    for (const [name, queue] of this.#queues) {
      // Its events still name jobs of this run.
      if (isUsed(name)) await bestEffort(queue.trimEvents(0));
      else await bestEffort(queue.obliterate({ force: true }));
      await bestEffort(queue.close());
    }
    this.#connection.disconnect();
  }

  #queue(name: string): Queue<SignedJob> {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = new Queue(name, { connection: this.#connection, prefix: PREFIX, skipMetasUpdate: true });
      queue.on('error', () => undefined);
      this.#queues.set(name, queue);
    }
    return queue;
  }
}

/** A job that a host has taken. */
export type TakenJob = { readonly job: Job; readonly done: () => Promise<void> };

/** The host's side: takes jobs out of the queues that it may serve. */
export class JobSource {
  readonly #connection: Connection;
  readonly #signer: Signer;
  readonly #workers = new Map<string, Worker<SignedJob>>();
  readonly #onRefused: (why: string, id: string) => void;
  #takes = 0;

  constructor(address: QueueAddress, signer: Signer, onRefused: (why: string, id: string) => void) {
    this.#connection = connectRedisForQueue(address);
    this.#signer = signer;
    this.#onRefused = onRefused;
  }

  /** Takes the next job of a queue, if there is one. */
  async take(name: string): Promise<TakenJob | undefined> {
    this.#takes += 1;
    const token = `${name}.${this.#takes}`;
    const taken = (await this.#worker(name).getNextJob(token, { block: false })) as QueueJob<SignedJob> | undefined;
    if (taken === undefined) return undefined;
    const done = async () => void (await bestEffort(taken.moveToCompleted('taken', token, false)));
    const job = this.#read(name, taken);
    if (job !== undefined) return { job, done };
    this.#onRefused('it is not signed with the key of this queue', taken.id ?? '');
    await done();
    return this.take(name);
  }

  /** Removes the queues that no other host serves from Redis as well. */
  async close(isOwn: (name: string) => boolean): Promise<void> {
    for (const [name, worker] of this.#workers) {
      await bestEffort(worker.close(true));
      if (!isOwn(name)) continue;
      const queue = new Queue(name, { connection: this.#connection, prefix: PREFIX, skipMetasUpdate: true });
      queue.on('error', () => undefined);
      await bestEffort(queue.obliterate({ force: true }));
      await bestEffort(queue.close());
    }
    this.#connection.disconnect();
  }

  #read(name: string, { id, data }: QueueJob<SignedJob>): Job | undefined {
    const signature = Buffer.from(String(data.signature), 'base64');
    if (!this.#signer.isSignature(signature, [name, String(data.job)])) return undefined;
    const job = JSON.parse(data.job) as Job;
    // A signed job under another id is a copy of it.
    return placementId(job) === id ? job : undefined;
  }

  #worker(name: string): Worker<SignedJob> {
    let worker = this.#workers.get(name);
    if (worker === undefined) {
      worker = new Worker<SignedJob>(name, null, {
        connection: this.#connection,
        prefix: PREFIX,
        autorun: false,
        maxStalledCount: 0,
        lockDuration: LOCK_MS,
        skipLockRenewal: true,
        skipStalledCheck: true,
      });
      worker.on('error', () => undefined);
      this.#workers.set(name, worker);
    }
    return worker;
  }
}
