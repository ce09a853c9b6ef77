// A journal read as it grows: a piece at a time, from wherever somebody has read to.
//
// What was there at the start has been checked by its seals, or is checked by whoever opens it. What is
// read here is taken line by whole line as it stands; a line that is no record ends it.

import { open, type FileHandle } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { isTaken } from './lock.ts';

const LOOK_MS = 200;
const PIECE_BYTES = 256 * 1024;
const LINE_BYTES_MAX = 256 * 1024 * 1024;
const LF = 0x0a;

export type Tail = { readonly path: string; readonly from: number; readonly to?: number /* its end, unless told */ };

/** The next whole records, and where they end; none where there are no more, and no end where one is damaged. */
export type Piece = { readonly records: readonly JsonObject[]; readonly end: number | undefined };

/** New records, looked for a few times a second, until nobody writes it or its run has ended. */
export async function* journalTail({ path, from }: Tail, signal: AbortSignal): AsyncGenerator<JsonObject> {
  let at = from;
  while (!signal.aborted) {
    // Asked first: what was written before the writer left is read below.
    const wasLive = isTaken(`${path}.lock`);
    for (
      let piece = await readPiece({ path, from: at });
      piece.end !== at;
      piece = await readPiece({ path, from: at })
    ) {
      for (const record of piece.records) {
        yield record;
        if (record['type'] === 'run_end') return;
      }
      if (piece.end === undefined) return;
      at = piece.end;
    }
    if (!wasLive) return;
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** As many whole lines as fit in a piece, or one where it is longer. */
export async function readPiece({ path, from, to = Number.POSITIVE_INFINITY }: Tail): Promise<Piece> {
  await using file = await open(path, 'r');
  for (let size = PIECE_BYTES; size <= LINE_BYTES_MAX; size *= 4) {
    const bytes = await bytesAt(file, from, Math.min(size, to - from));
    const end = bytes.lastIndexOf(LF) + 1;
    if (end > 0) return pieceOf(bytes.subarray(0, end), from);
    if (bytes.length < size) break; // nothing more, or a line that is still being written
  }
  return { records: [], end: from };
}

/** Where the last whole line among its first so many bytes ends. */
export async function endOfLines(path: string, size: number): Promise<number> {
  await using file = await open(path, 'r');
  for (let to = size; to > 0;) {
    const from = Math.max(0, to - PIECE_BYTES);
    const at = (await bytesAt(file, from, to - from)).lastIndexOf(LF);
    if (at >= 0) return from + at + 1;
    to = from;
  }
  return 0;
}

async function bytesAt(file: FileHandle, from: number, size: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(size), 0, size, from);
  return buffer.subarray(0, bytesRead);
}

function pieceOf(bytes: Buffer, from: number): Piece {
  const records: JsonObject[] = [];
  for (const line of bytes.toString('utf8').split('\n').slice(0, -1)) {
    const record = parsed(line);
    if (record === undefined) return { records, end: undefined };
    records.push(record);
  }
  return { records, end: from + bytes.length };
}

function parsed(line: string): JsonObject | undefined {
  try {
    const value: Json = JSON.parse(line);
    if (!isJsonObject(value)) return undefined;
    const { sum: _, ...record } = value;
    return record;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
