// Reads file contents by object id from one long-lived git process. Starting a git for a few files would take longer
// than all the rest.
//
// The process starts on first use and ends with its parent, because its input closes. After a lost process or an
// unexpected reply, reads return undefined and the caller uses another git command.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { type GitPlace, gitProcess } from '../git/git.ts';

const LINE_END = 0x0a;
const HEADER = /^([0-9a-f]+) blob (\d+)$/;

type Wanted = {
  readonly objects: readonly string[];
  readonly found: Buffer[];
  readonly done: (found: readonly Buffer[] | undefined) => void;
};

export class Blobs {
  readonly #place: GitPlace;
  #child: ChildProcessByStdio<Writable, Readable, null> | undefined;
  #isLost = false;
  #waiting: Wanted[] = [];
  #chunks: Buffer[] = [];
  #bytes = 0;
  #bytesNeeded = 0; // bytes until the next object can be complete

  constructor(place: GitPlace) {
    this.#place = place;
  }

  /** Reads objects in the given order; undefined if this way fails. The contents must fit into memory. */
  read(objects: readonly string[]): Promise<readonly Buffer[] | undefined> {
    const child = this.#isLost ? undefined : (this.#child ??= this.#start());
    if (child === undefined) return Promise.resolve(undefined);
    return new Promise((done) => {
      this.#waiting.push({ objects, found: [], done });
      child.stdin.write(objects.map((object) => `${object}\n`).join(''));
    });
  }

  async close(): Promise<void> {
    const child = this.#child;
    this.#lose();
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  #start(): ChildProcessByStdio<Writable, Readable, null> | undefined {
    const { file, args, cwd, env } = gitProcess(this.#place, ['cat-file', '--batch']);
    const child = spawn(file, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
    const lose = () => this.#lose();
    child.on('error', lose).on('exit', lose);
    child.stdin.on('error', lose);
    child.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    // Unref'd: only open reads keep the process alive.
    child.unref();
    return child;
  }

  #lose(): void {
    this.#isLost = true;
    for (const { done } of this.#waiting.splice(0)) done(undefined);
    this.#child?.stdin.destroy();
    this.#child?.stdout.destroy();
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < this.#bytesNeeded) return;
    const bytes = Buffer.concat(this.#chunks);
    let at = 0;
    for (let next = this.#takeOne(bytes, at); next !== undefined; next = this.#takeOne(bytes, at)) at = next;
    const rest = bytes.subarray(at);
    this.#chunks = [rest];
    this.#bytes = rest.length;
  }

  // Parses "<id> blob <size>", a newline, the content, a newline. Returns the end position if all of it has arrived.
  #takeOne(bytes: Buffer, at: number): number | undefined {
    this.#bytesNeeded = 0;
    const headerEnd = bytes.indexOf(LINE_END, at);
    const wanted = this.#waiting[0];
    if (headerEnd < 0 || wanted === undefined) return undefined;
    const [, object, size] = HEADER.exec(bytes.toString('latin1', at, headerEnd)) ?? [];
    if (size === undefined || object !== wanted.objects[wanted.found.length]) {
      this.#lose();
      return undefined;
    }
    const end = headerEnd + 1 + Number(size);
    if (end >= bytes.length) {
      this.#bytesNeeded = end + 1 - at;
      return undefined;
    }
    wanted.found.push(bytes.subarray(headerEnd + 1, end));
    if (wanted.found.length === wanted.objects.length) {
      this.#waiting.shift();
      wanted.done(wanted.found);
    }
    return end + 1;
  }
}
