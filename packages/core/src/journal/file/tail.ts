// Journal tail: reads a journal as it grows, one piece at a time, from any position.
//
// A caller that knows the sum of the last line gets every later line checked, and damage as a failure.
// `readJournalPiece` has no sum, so it only parses whole lines and stops at the first line that is not a record.

import { open, type FileHandle } from 'node:fs/promises';
import { DroverError } from '../../errors.ts';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { checkJournalLine, type Damage } from './format.ts';
import { isJournalLocked } from './lock.ts';
import { pause } from '../../promises.ts';

const LOOK_MS = 200;
const PIECE_BYTES = 256 * 1024;
const LINE_BYTES_MAX = 256 * 1024 * 1024;
const LF = 0x0a;

export type JournalTail = {
  readonly path: string;
  readonly from: number;
  readonly to?: number /* default: end of file */;
};

/** The next whole records and the position after them. `end` is undefined if a line is damaged. */
export type Piece = { readonly records: readonly JsonObject[]; readonly end: number | undefined };

/** The last line that was read: its number, its sum and the position after it. */
export type ReadTo = { readonly line: number; readonly sum: string; readonly bytes: number };

export type ReadOn = {
  readonly records: readonly JsonObject[];
  readonly readTo: ReadTo;
  readonly version: number | undefined;
  readonly damage?: Damage;
};

/** Polls for new records until no process writes the journal or the run has ended. Throws on damage. */
export async function* journalTail(path: string, last: ReadTo, signal: AbortSignal): AsyncGenerator<JsonObject> {
  let readTo = last;
  while (!signal.aborted) {
    // Check the lock before reading: records written before the writer left are then read below.
    const wasLive = isJournalLocked(`${path}.lock`);
    for (let lines = await readJournalLinesAt({ path, from: readTo.bytes }); lines.length > 0;) {
      const { records, damage, ...at } = checkJournalBytes(lines, readTo);
      for (const record of records) {
        yield record;
        if (record['type'] === 'run_end') return;
      }
      if (damage !== undefined) throw new DroverError({ kind: 'journal.damaged', path, ...damage });
      readTo = at;
      lines = await readJournalLinesAt({ path, from: readTo.bytes });
    }
    if (!wasLive) return;
    await pause(LOOK_MS, signal);
  }
}

/** Reads and checks all records after `last`. `version` is set if the head was among the lines read. */
export async function readFurtherJournalRecords(path: string, last: ReadTo): Promise<ReadOn> {
  const records: JsonObject[] = [];
  let readTo = last;
  let version: number | undefined;
  while (true) {
    const lines = await readJournalLinesAt({ path, from: readTo.bytes });
    if (lines.length === 0) return { records, readTo, version };
    if (readTo.line === 0) version = Number(parseJournalLine(journalLinesIn(lines)[0] ?? '')?.['journal']);
    const { records: found, damage, ...at } = checkJournalBytes(lines, readTo);
    records.push(...found);
    if (damage !== undefined) return { records, readTo, version, damage };
    readTo = at;
  }
}

/** Reads as many whole lines as fit into one piece, or a single longer line. */
export async function readJournalPiece(tail: JournalTail): Promise<Piece> {
  const bytes = await readJournalLinesAt(tail);
  const records: JsonObject[] = [];
  for (const line of journalLinesIn(bytes)) {
    const record = parseJournalLine(line);
    if (record === undefined) return { records, end: undefined };
    records.push(record);
  }
  return { records, end: tail.from + bytes.length };
}

async function readJournalLinesAt({ path, from, to = Number.POSITIVE_INFINITY }: JournalTail): Promise<Buffer> {
  await using file = await open(path, 'r');
  for (let size = PIECE_BYTES; size <= LINE_BYTES_MAX; size *= 4) {
    const bytes = await readJournalBytesAt(file, from, Math.min(size, to - from));
    const end = bytes.lastIndexOf(LF) + 1;
    if (end > 0) return bytes.subarray(0, end);
    if (bytes.length < size) break; // end of file, or a line that is still being written
  }
  return Buffer.alloc(0);
}

/** The position after the last whole line within the first `size` bytes. */
export async function endOfJournalLines(path: string, size: number): Promise<number> {
  await using file = await open(path, 'r');
  for (let to = size; to > 0;) {
    const from = Math.max(0, to - PIECE_BYTES);
    const at = (await readJournalBytesAt(file, from, to - from)).lastIndexOf(LF);
    if (at >= 0) return from + at + 1;
    to = from;
  }
  return 0;
}

async function readJournalBytesAt(file: FileHandle, from: number, size: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(size), 0, size, from);
  return buffer.subarray(0, bytesRead);
}

function checkJournalBytes(
  bytes: Buffer,
  last: ReadTo,
): ReadTo & { readonly records: JsonObject[]; readonly damage?: Damage } {
  const records: JsonObject[] = [];
  let { line, sum } = last;
  for (const text of journalLinesIn(bytes)) {
    const found = checkJournalLine(text, sum);
    if (typeof found === 'string') return { ...last, records, damage: { line: line + 1, what: found } };
    if (line > 0) records.push(found.record); // line 0 is the head
    ({ sum } = found);
    line += 1;
  }
  return { records, line, sum, bytes: last.bytes + bytes.length };
}

function journalLinesIn(bytes: Buffer): readonly string[] {
  return bytes.toString('utf8').split('\n').slice(0, -1);
}

function parseJournalLine(line: string): JsonObject | undefined {
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
