// The format of a journal: one JSON object a line, split on LF only, each line sealed.
//
// FORMAT
//   The first line is the head: {"journal":1,"session":"…","sum":"…"}, or with "run". Every further line is one record
//   with "sum" as its last key: the CRC-32 of the line before it and of itself up to there. So a changed
//   byte, a line that is missing and a line out of place are all noticed, at their line.
//   A record is in the journal if and only if its newline is.
//
// WHAT A CRASH CAN DO
//   Leave something behind the last newline: half a line, or the zeros of a block that never came.
//   Nobody was told of it, so readers leave it out and the next writer cuts it off. Anything else that
//   does not check is damage and not a crash: reading stops there and says so. Skipping it would make a
//   resumed session forget work that was done.
//
// VERSIONS
//   Records of unknown types are kept. A head with a higher number is of a newer drover: such a journal
//   is read by nobody older.

import { crc32 } from 'node:zlib';
import type { Owner } from '@drover/protocol/events';
import { type Json, type JsonObject, isJsonObject } from '@drover/protocol/json';

export const FORMAT_VERSION = 1;

const LF = 0x0a;
const SEAL = /^(\{.*),"sum":"([0-9a-f]{8})"\}$/s;

export type Line = { readonly text: string; readonly sum: string };

/** A record as a line without its newline, sealed to the one before it. */
export function seal(record: JsonObject, before: string): Line {
  const open = JSON.stringify(record).slice(0, -1);
  const sum = sumOf(before, open);
  return { text: `${open},"sum":"${sum}"}`, sum };
}

export function headOf(owner: Owner): JsonObject {
  return { journal: FORMAT_VERSION, ...owner };
}

export type Damage = { readonly line: number; readonly what: string };

export type Contents = {
  readonly version: number;
  readonly records: readonly JsonObject[]; // without the head
  /** Up to the last good line; the rest is torn, or damaged. */
  readonly goodBytes: number;
  readonly lastSum: string;
  readonly damage?: Damage;
};

export function readContents(bytes: Uint8Array): Contents {
  const records: JsonObject[] = [];
  let version = 0;
  let lastSum = '';
  let start = 0;
  for (let line = 1; ; line++) {
    const end = bytes.indexOf(LF, start);
    if (end === -1) return { version, records, goodBytes: start, lastSum };
    const checked = check(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8'), lastSum);
    if (typeof checked === 'string')
      return { version, records, goodBytes: start, lastSum, damage: { line, what: checked } };
    if (line > 1) records.push(checked.record);
    else version = Number(checked.record['journal']);
    lastSum = checked.sum;
    start = end + 1;
  }
}

/** A line as a record, sealed to the one before it; or what is wrong with it. */
export function check(text: string, before: string): { readonly record: JsonObject; readonly sum: string } | string {
  const [, open, sum] = SEAL.exec(text) ?? [];
  if (open === undefined || sum === undefined)
    return text.includes('\0') ? 'zeros where a record should be' : 'not a sealed record';
  if (sumOf(before, open) !== sum)
    return 'its seal does not fit: a byte was changed here, or a line is missing before it';
  const record: Json = JSON.parse(`${open}}`);
  return isJsonObject(record) ? { record, sum } : 'not a record';
}

function sumOf(before: string, open: string): string {
  return crc32(open, crc32(before)).toString(16).padStart(8, '0');
}
