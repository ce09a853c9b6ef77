// Captures output for the model: truncates it in the middle and stores the full text on disk.
//
// Guarantees
//   1. The model sees up to OUTPUT_CHARS_MAX characters unchanged. Longer output keeps both ends, because compilers
//      print the first error first and test runners print the result last. A line between them says how much is
//      missing and which file has it. Binary data is described, not shown.
//   2. Memory is bounded by the size of the two ends.
//   3. The file is created only for truncated output, and stops growing at FILE_BYTES_MAX.
//
// Failure: if the file cannot be written (a full disk), the output says so and both ends remain.

import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  binaryOutputNote,
  outputByteSize,
  isBinaryOutput,
  markedOutputText,
  orphanedOutputBytes,
  toolOutputText,
  unfinishedOutputBytes,
} from './bytes.ts';
import { Ring } from './ring.ts';

export const OUTPUT_CHARS_MAX = 30_000;
const HEAD_CHARS = 12_000;
const TAIL_CHARS = 16_500; // the rest is for the omission line and for notes of the tool
const FILE_BYTES_MAX = 64_000_000;
const CUT_AT_LINE_WITHIN_CHARS = 500;
// A character of a JavaScript string takes at most three bytes of UTF-8.
const HEAD_BYTES = 3 * HEAD_CHARS;
const TAIL_BYTES = 3 * TAIL_CHARS;
const TEXT_SLICE_CHARS = 1_000_000;

export type Captured = {
  readonly text: string;
  readonly bytes: number;
  readonly file?: string;
  readonly lines?: number; // of the whole output; absent if `text` has all of it
};

const LF = 0x0a;

export class Capture {
  readonly #path: string;
  readonly #ends = new Ends();
  #bytes = 0;
  #lineEnds = 0;
  #endsInLine = false;
  #file: FileHandle | undefined;
  #fileBytes = 0;
  #fileProblem: string | undefined;
  #writes: Promise<void> = Promise.resolve();

  /** `path` is the file for the full text of a long output; its folder is created when needed. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Returns a promise if the chunk is written to disk: do not reuse the chunk before. It never rejects. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    const before = this.#bytes;
    this.#bytes += chunk.length;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, at + 1)) this.#lineEnds++;
    if (chunk.length > 0) this.#endsInLine = chunk.at(-1) !== LF;
    const isTooLong = this.#bytes > HEAD_BYTES + TAIL_BYTES;
    if (isTooLong && before <= HEAD_BYTES + TAIL_BYTES) void this.#store(this.#ends.whole());
    this.#ends.add(chunk);
    return isTooLong ? this.#store(chunk) : undefined;
  }

  async finish(): Promise<Captured> {
    const isWhole = this.#bytes <= HEAD_BYTES + TAIL_BYTES;
    const whole = isWhole ? toolOutputText(this.#ends.whole(), this.#bytes) : undefined;
    if (whole !== undefined && whole.length <= OUTPUT_CHARS_MAX) return { text: whole, bytes: this.#bytes };

    if (isWhole) void this.#store(this.#ends.whole());
    await this.#writes;
    await this.#file?.close();
    const text = whole === undefined ? this.#textOfEnds() : bothEndsOfOutput(whole, whole, (bytes) => this.#gap(bytes));
    // Data that is described and not shown has no lines.
    const isData = text.startsWith(binaryOutputNote(this.#bytes));
    const lines = isData ? {} : { lines: this.#lineEnds + (this.#endsInLine ? 1 : 0) };
    return { text, bytes: this.#bytes, ...lines, ...(this.#fileProblem === undefined && { file: this.#path }) };
  }

  #textOfEnds(): string {
    const parts = this.#ends.parts();
    const head = parts.head.subarray(0, parts.head.length - unfinishedOutputBytes(parts.head));
    const tail = parts.tail.subarray(orphanedOutputBytes(parts.tail));
    if (isBinaryOutput(Buffer.concat([head, tail]))) return `${binaryOutputNote(this.#bytes)}; ${this.#whereabouts()}`;
    return bothEndsOfOutput(markedOutputText(head), markedOutputText(tail), (bytes) => this.#gap(bytes));
  }

  #gap(shownBytes: number): string {
    return `[… ${outputByteSize(this.#bytes - shownBytes)} left out; ${this.#whereabouts()} …]`;
  }

  #whereabouts(): string {
    if (this.#fileProblem !== undefined) return `it could not be kept (${this.#fileProblem})`;
    const all =
      this.#bytes <= FILE_BYTES_MAX ? 'the whole output is' : `the first ${outputByteSize(FILE_BYTES_MAX)} are`;
    return `${all} in ${this.#path}`;
  }

  #store(chunk: Uint8Array): Promise<void> | undefined {
    const part = chunk.subarray(0, FILE_BYTES_MAX - this.#fileBytes);
    if (part.length === 0) return undefined;
    this.#fileBytes += part.length;
    this.#writes = this.#writes.then(async () => {
      try {
        if (this.#fileProblem === undefined) await this.#append(part);
      } catch (error) {
        this.#fileProblem = error instanceof Error ? error.message : String(error);
      }
    });
    return this.#writes;
  }

  async #append(part: Uint8Array): Promise<void> {
    if (this.#file === undefined) {
      await mkdir(dirname(this.#path), { recursive: true });
      this.#file = await open(this.#path, 'w', 0o600);
    }
    await this.#file.writeFile(part);
  }
}

/** Returns a short text unchanged; of a long one both ends, and stores the full text at `path`. */
export async function boundOutputText(text: string, path: string): Promise<string> {
  if (text.length <= OUTPUT_CHARS_MAX) return text;
  const capture = new Capture(path);
  for (let from = 0; from < text.length;) {
    const to = from + TEXT_SLICE_CHARS;
    const end = isHighOutputSurrogate(text.charCodeAt(to - 1)) ? to - 1 : to;
    await capture.write(Buffer.from(text.slice(from, end)));
    from = end;
  }
  return (await capture.finish()).text;
}

// The first and last bytes of a stream. `whole()` is the complete stream if it fits into both buffers.
class Ends {
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  readonly #tail = new Ring(TAIL_BYTES);

  add(chunk: Uint8Array): void {
    const forHead = Math.min(HEAD_BYTES - this.#headBytes, chunk.length);
    // Copy, because a slice would keep the whole chunk in memory.
    if (forHead > 0) this.#head.push(Buffer.from(chunk.subarray(0, forHead)));
    this.#headBytes += forHead;
    if (forHead < chunk.length) this.#tail.add(chunk.subarray(forHead));
  }

  whole(): Buffer {
    const { head, tail } = this.parts();
    return Buffer.concat([head, tail]);
  }

  parts(): { readonly head: Buffer; readonly tail: Buffer } {
    return { head: Buffer.concat(this.#head), tail: this.#tail.contents() };
  }
}

function bothEndsOfOutput(start: string, end: string, gap: (shownBytes: number) => string): string {
  const head = cutOutputHead(start);
  const tail = cutOutputTail(end);
  return `${head}\n${gap(Buffer.byteLength(head) + Buffer.byteLength(tail))}\n${tail}`;
}

function cutOutputHead(text: string): string {
  const cut = text.slice(0, isHighOutputSurrogate(text.charCodeAt(HEAD_CHARS - 1)) ? HEAD_CHARS - 1 : HEAD_CHARS);
  const line = cut.lastIndexOf('\n');
  return line >= cut.length - CUT_AT_LINE_WITHIN_CHARS ? cut.slice(0, line) : cut;
}

function cutOutputTail(text: string): string {
  const from = Math.max(0, text.length - TAIL_CHARS);
  const cut = text.slice(isLowOutputSurrogate(text.charCodeAt(from)) ? from + 1 : from);
  const line = cut.indexOf('\n');
  return line >= 0 && line < CUT_AT_LINE_WITHIN_CHARS ? cut.slice(line + 1) : cut;
}

function isHighOutputSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}

function isLowOutputSurrogate(code: number): boolean {
  return code >= 0xdc00 && code < 0xe000;
}
