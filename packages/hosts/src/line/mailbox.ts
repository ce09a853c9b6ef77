// A mailbox: the inbox of this process as a Redis stream, and the way to the inboxes of others.
//
// Guarantees
//   1. One stream per process, and two connections: one that reads, one that writes. All lines share them.
//   2. An entry is signed over its receiver, its sender, a counter and its content. One with a wrong signature, or with
//      a counter that was seen already, is refused and reported.
//   3. Read entries are trimmed at the next read. `close` removes the stream; without it, the stream expires. Only its
//      owner makes it.
//
// The reader always begins at the oldest entry: ids of entries follow Redis's clock, which may be set back.

import { bestEffort, pause } from '@drover/core/promises';
import { Line, type LineEnds, type LineItem } from './line.ts';
import { type Connection, connectRedis, isRedisReady, type QueueAddress } from './redis.ts';
import type { Signer } from './signature.ts';

const BLOCK_MS = 1_000;
const ENTRIES_AT_ONCE = 200;
const EXPIRE_S = 600;
const RESEND_EVERY_MS = 500;
const PAUSE_MS = 200; // after a failed read
const BATCH_ITEMS_MAX = 500;
const BATCH_BYTES_MAX = 1024 * 1024;
const SENDERS_MAX = 10_000;

export type MailboxOptions = {
  readonly queue: QueueAddress;
  readonly signer: Signer;
  readonly address: string;
  /** Takes a message that belongs to no line. */
  readonly onNote: (from: string, body: unknown) => void;
  /** Takes a frame of a line that is not open here. */
  readonly onStranger: (from: string, line: string) => void;
  /** An entry was refused. */
  readonly onRefused: (why: string, from: string) => void;
  readonly now?: () => number;
};

type Outgoing = { readonly item: LineItem; readonly blob: Buffer | undefined };

type Letter = {
  readonly from: string;
  readonly count: number;
  /** Each item, with the number of bytes of the blob that belong to it. */
  readonly items: readonly (readonly [LineItem, number])[];
};

export class Mailbox {
  readonly address: string;
  readonly #options: MailboxOptions;
  readonly #reading: Connection;
  readonly #writing: Connection;
  readonly #lines = new Map<string, Line<never, never>>();
  readonly #outgoing = new Map<string, Outgoing[]>();
  readonly #counts = new Map<string, number>(); // the highest count of each sender
  readonly #closing = new AbortController();
  readonly #resending: NodeJS.Timeout;
  readonly #reader: Promise<void>;
  #count = 0;
  #isDue = false;

  constructor(options: MailboxOptions) {
    this.#options = options;
    this.address = options.address;
    this.#reading = connectRedis(options.queue);
    this.#writing = connectRedis(options.queue);
    this.#writing.on('ready', () => this.#resend('now'));
    this.#resending = setInterval(() => this.#resend('if silent'), RESEND_EVERY_MS);
    this.#reader = this.#read();
  }

  /** Resolves when both connections are open. */
  async opened(): Promise<void> {
    const { signal } = this.#closing;
    await Promise.all([this.#reading, this.#writing].map((each) => isRedisReady(each, signal)));
    // A Redis that is slow for a moment must not end a host.
    while (!signal.aborted && (await bestEffort(this.#keep().then(() => true))) !== true) await pause(PAUSE_MS, signal);
  }

  open<In, Out>(ends: LineEnds<In>): Line<In, Out> {
    const line = new Line<In, Out>(ends, {
      send: (to, item, blob) => this.#send(to, item, blob),
      now: this.#options.now ?? (() => performance.now()),
    });
    this.#lines.set(ends.id, line as Line<never, never>);
    return line;
  }

  /** Forgets the line. Frames that arrive for it later are a stranger's. */
  drop(line: { readonly id: string; readonly close: () => void }): void {
    line.close();
    if (this.#lines.get(line.id) === line) this.#lines.delete(line.id);
  }

  /** Sends a message that may be lost. */
  note(to: string, body: unknown): void {
    this.#send(to, { t: 'note', body });
  }

  /** Removes the inbox of another process, which is gone. */
  async remove(address: string): Promise<void> {
    await bestEffort(this.#writing.del(address));
  }

  /** Waits for what was sent, then removes the inbox. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    await this.#flush();
    this.#closing.abort();
    clearInterval(this.#resending);
    for (const line of this.#lines.values()) line.close();
    this.#reading.disconnect();
    await this.#reader;
    await bestEffort(this.#writing.del(this.address));
    this.#writing.disconnect();
  }

  #resend(isDue: 'now' | 'if silent'): void {
    for (const line of this.#lines.values()) line.resend(isDue);
  }

  #send(to: string, item: LineItem, blob?: Buffer): void {
    if (this.#closing.signal.aborted) return;
    const queued = this.#outgoing.get(to) ?? [];
    queued.push({ item, blob });
    this.#outgoing.set(to, queued);
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => void this.#flush());
  }

  async #flush(): Promise<void> {
    this.#isDue = false;
    const all = [...this.#outgoing];
    this.#outgoing.clear();
    await Promise.all(
      all.flatMap(([to, items]) => batchMailboxItems(items).map((batch) => bestEffort(this.#write(to, batch)))),
    );
  }

  async #write(to: string, batch: readonly Outgoing[]): Promise<void> {
    this.#count += 1;
    const letter: Letter = {
      from: this.address,
      count: this.#count,
      items: batch.map(({ item, blob }) => [item, blob?.length ?? 0]),
    };
    const text = JSON.stringify(letter);
    const blob = Buffer.concat(batch.flatMap((each) => each.blob ?? []));
    const signature = this.#options.signer.sign([to, text, blob]);
    // Lost if it fails: the line sends its frames again.
    // An inbox that its owner has removed is not made again.
    await this.#writing.xadd(to, 'NOMKSTREAM', '*', 'j', text, 'b', blob, 's', signature);
  }

  async #read(): Promise<void> {
    const { signal } = this.#closing;
    let trimTo: string | undefined;
    while (!signal.aborted) {
      if (this.#reading.status !== 'ready') {
        await isRedisReady(this.#reading, signal);
        await bestEffort(this.#keep());
      }
      const answer = await bestEffort(this.#readOnce(trimTo));
      if (answer === undefined) {
        // The connection is gone, or Redis refuses for a moment: the entries are still there.
        await pause(PAUSE_MS, signal);
        continue;
      }
      trimTo = undefined;
      if (answer === null) await bestEffort(this.#keep());
      for (const { id, fields } of mailboxEntries(answer)) {
        this.#take(fields);
        trimTo = mailboxIdAfter(id);
      }
    }
  }

  /** Makes the inbox if Redis has lost it, and renews its time. */
  async #keep(): Promise<void> {
    if ((await this.#reading.expire(this.address, EXPIRE_S)) > 0) return;
    // Only a group can make an empty stream, and without a trim that could remove entries. Its reader is not used.
    // It fails if another call has made the stream meanwhile.
    await bestEffort(this.#reading.xgroup('CREATE', this.address, 'owner', '$', 'MKSTREAM'));
    await this.#reading.expire(this.address, EXPIRE_S);
  }

  /** Null if nothing has arrived. */
  async #readOnce(trimTo: string | undefined): Promise<unknown> {
    // Both at once: what was read is gone before the next entries are looked for.
    const [trimmed, answer] = await Promise.all([
      trimTo === undefined ? 0 : this.#reading.xtrim(this.address, 'MINID', trimTo),
      this.#reading.callBuffer('XREAD', 'COUNT', ENTRIES_AT_ONCE, 'BLOCK', BLOCK_MS, 'STREAMS', this.address, '0'),
    ]);
    return trimmed >= 0 ? answer : null;
  }

  #take(fields: ReadonlyMap<string, Buffer>): void {
    const text = fields.get('j')?.toString() ?? '';
    const blob = fields.get('b') ?? Buffer.alloc(0);
    if (!this.#options.signer.isSignature(fields.get('s'), [this.address, text, blob]))
      return this.#options.onRefused('it is not signed with the key of this queue', 'an unknown sender');
    const { from, count, items } = JSON.parse(text) as Letter;
    if (count <= (this.#counts.get(from) ?? 0)) return this.#options.onRefused('it was received before', from);
    if (this.#counts.size > SENDERS_MAX) this.#counts.clear();
    this.#counts.set(from, count);
    const acks = new Map<string, number>();
    let at = 0;
    for (const [item, bytes] of items) {
      this.#deliver(from, item, { blob: blob.subarray(at, at + bytes), acks });
      at += bytes;
    }
    for (const [line, n] of acks) this.#send(from, { t: 'ack', line, n });
  }

  #deliver(from: string, item: LineItem, { blob, acks }: { blob: Buffer; acks: Map<string, number> }): void {
    if (item.t === 'note') return this.#options.onNote(from, item.body);
    const line = this.#lines.get(item.line);
    if (line === undefined || line.peer !== from) {
      if (item.t === 'frame') this.#options.onStranger(from, item.line);
    } else if (item.t === 'ack') line.acknowledge(item.n);
    else acks.set(item.line, line.take(item.n, { body: item.body as never, ...(blob.length > 0 && { blob }) }));
  }
}

function batchMailboxItems(items: readonly Outgoing[]): readonly (readonly Outgoing[])[] {
  const all: Outgoing[][] = [];
  let bytes = 0;
  for (const item of items) {
    const last = all.at(-1);
    const size = item.blob?.length ?? 0;
    if (last === undefined || last.length >= BATCH_ITEMS_MAX || bytes + size > BATCH_BYTES_MAX) {
      all.push([item]);
      bytes = size;
    } else {
      last.push(item);
      bytes += size;
    }
  }
  return all;
}

type Entry = { readonly id: string; readonly fields: ReadonlyMap<string, Buffer> };

/** The answer to XREAD of one stream: `[[key, [[id, [name, value, …]], …]]]`. */
function mailboxEntries(answer: unknown): readonly Entry[] {
  if (!Array.isArray(answer)) return [];
  const [[, entries]] = answer as [[Buffer, [Buffer, Buffer[]][]]];
  return entries.map(([id, flat]) => {
    const fields = new Map<string, Buffer>();
    for (let n = 0; n + 1 < flat.length; n += 2) fields.set(String(flat[n]), flat[n + 1] ?? Buffer.alloc(0));
    return { id: id.toString(), fields };
  });
}

/** The id that follows: entries before it are trimmed. */
function mailboxIdAfter(id: string): string {
  const [ms = '0', n = '0'] = id.split('-');
  return `${ms}-${BigInt(n) + 1n}`;
}
