// The end of a journal as it grows: new records, looked for a few times a second, until nobody writes it or
// its run has ended.
//
// What was there at the start has been checked by its seals. What comes is read as it comes, line by
// whole line; a line that is no record ends it.

import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { isTaken } from '@drover/core/journal/lock';
import { isJsonObject, type Json, type JsonObject } from '@drover/core/json';

const LOOK_MS = 200;
const READ_BYTES_MAX = 16 * 1024 * 1024;
const LF = 0x0a;

export type Tail = { readonly path: string; readonly from: number };

export async function* journalTail({ path, from }: Tail, signal: AbortSignal): AsyncGenerator<JsonObject> {
  let at = from;
  while (!signal.aborted) {
    // Asked first: what was written before the writer left is read below.
    const wasLive = isTaken(`${path}.lock`);
    const bytes = await bytesFrom(path, at);
    const end = bytes.lastIndexOf(LF) + 1;
    at += end;
    for (const line of bytes.subarray(0, end).toString('utf8').split('\n').slice(0, -1)) {
      const record = parsed(line);
      if (record === undefined) return;
      yield record;
      if (record['type'] === 'run_end') return;
    }
    if (!wasLive) return;
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function bytesFrom(path: string, from: number): Promise<Buffer> {
  await using file = await open(path, 'r');
  const { size } = await file.stat();
  const length = Math.min(Math.max(size - from, 0), READ_BYTES_MAX);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, from);
  return buffer.subarray(0, bytesRead);
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
