// The wire to a server over its standard input and output: one message of JSON per line.
//
// Guarantees
//   1. A line is bounded. A longer one ends the connection.
//   2. Lines that are not messages are dropped and counted; the first is kept for the user.
//   3. stderr is always read, so that no server stalls, and its end is kept.

import type { Readable } from 'node:stream';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { cleanVisibleText } from '../hostile/listed-tool.ts';
import { pause } from '@drover/core/promises';
import type { Wire } from '../wire.ts';
import type { ServerProcess } from './server-process.ts';

const LINE_BYTES_MAX = 10 * 1024 * 1024;
const STDERR_BYTES_MAX = 8_192;
const GARBAGE_CHARS_MAX = 200;
const NEWLINE = 10;
const WINDOW_MS = 100;
const LINES_PER_WINDOW_MAX = 2_000;
const LAST_OUTPUT_MS = 1_500;
const NEVER = new AbortController().signal;

export class StdioWire implements Wire {
  onmessage: Wire['onmessage'];
  onclose: Wire['onclose'];
  onerror: Wire['onerror'];
  readonly stderr = undefined;
  readonly #server: ServerProcess;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #lines = 0; // in the current window
  #since = 0;
  #errors = Buffer.alloc(0);
  #garbage: { lines: number; first: string } | undefined;
  #why: string | undefined;
  #isClosed = false;

  constructor(server: ServerProcess) {
    this.#server = server;
    server.stderr.on('data', (chunk: Buffer) => this.#keepError(chunk));
    server.stderr.on('error', () => undefined);
    // Its last output may arrive after its exit.
    const streams = [server.stdout, server.stderr];
    const read = Promise.all(
      streams.map((each) => new Promise<void>((resolve) => each.once('close', () => resolve()))),
    );
    void server.gone.then(async (why) => {
      await Promise.race([read, pause(LAST_OUTPUT_MS, NEVER)]);
      this.#closed(why);
    });
  }

  get pid(): number {
    return this.#server.pid;
  }

  /** Why the connection ended; undefined while it is open. */
  get why(): string | undefined {
    return this.#why;
  }

  /** The end of what the server wrote on stderr, and the first of its lines that was not a message. */
  get complaints(): string {
    const errors = cleanVisibleText(this.#errors.toString('utf8'), STDERR_BYTES_MAX).trim();
    const garbage =
      this.#garbage && `${this.#garbage.lines} lines on stdout were no message, first: ${this.#garbage.first}`;
    return [errors, garbage].filter((each) => each !== undefined && each !== '').join('\n');
  }

  async start(): Promise<void> {
    this.#read(this.#server.stdout);
  }

  async send(message: JsonObject): Promise<void> {
    if (this.#isClosed) throw new Error(`the server is gone: ${this.#why}`);
    this.#server.stdin.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    this.#closed('it was closed');
    await this.#server.end();
  }

  #read(stdout: Readable): void {
    stdout.on('error', () => undefined);
    stdout.on('data', (chunk: Buffer) => {
      this.#slowDown(stdout);
      let rest = chunk;
      for (let at = rest.indexOf(NEWLINE); at !== -1 && !this.#isClosed; at = rest.indexOf(NEWLINE)) {
        this.#add(rest.subarray(0, at));
        this.#line();
        rest = rest.subarray(at + 1);
      }
      this.#add(rest);
    });
  }

  /** A server that floods is read more slowly, so that it cannot take all the time of this process. */
  #slowDown(stdout: Readable): void {
    const now = performance.now();
    if (now - this.#since > WINDOW_MS) {
      this.#since = now;
      this.#lines = 0;
    }
    if (this.#lines < LINES_PER_WINDOW_MAX) return;
    this.#lines = 0;
    stdout.pause();
    setTimeout(() => stdout.resume(), WINDOW_MS).unref();
  }

  #add(piece: Buffer): void {
    if (this.#isClosed || piece.length === 0) return;
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes <= LINE_BYTES_MAX) return;
    this.#pieces = [];
    this.#closed(`it sent a message of more than ${LINE_BYTES_MAX / 1024 / 1024} MiB`);
    void this.#server.end();
  }

  #line(): void {
    const text = Buffer.concat(this.#pieces).toString('utf8');
    this.#pieces = [];
    this.#bytes = 0;
    this.#lines += 1;
    if (text.trim() === '') return;
    const message = parseStdioLine(text);
    if (message !== undefined) return this.onmessage?.(message);
    this.#garbage ??= { lines: 0, first: cleanVisibleText(text.slice(0, GARBAGE_CHARS_MAX)) };
    this.#garbage.lines += 1;
  }

  #keepError(chunk: Buffer): void {
    this.#errors = Buffer.concat([this.#errors, chunk]).subarray(-STDERR_BYTES_MAX);
  }

  #closed(why: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#why = why;
    this.onclose?.();
  }
}

function parseStdioLine(text: string): JsonObject | undefined {
  try {
    const message = JSON.parse(text) as Json;
    return isJsonObject(message) && message['jsonrpc'] === '2.0' ? message : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined;
    throw error;
  }
}
