// Journal format: one JSON object per line, separated by LF only, each line sealed by a checksum.
//
// Format
//   The first line is the head: {"journal":1,"session":"…","sum":"…"}, or with "run". Other lines are records.
//   "sum" is the last key of a line: the CRC-32 of the previous line's "sum" and of the line up to this key.
//   A changed byte, a missing line and a misplaced line are therefore detected at their line.
//   A record is in the journal if and only if its newline is.
//
// Crash
//   A crash can leave a torn tail after the last newline: half a line, or zeros of a block that was never written.
//   No reader has seen it, so readers ignore it and the next writer truncates it. Any other mismatch is damage:
//   reading stops there and reports it. Skipping a damaged line would make a resumed session forget finished work.
//
// Versions
//   Records of unknown types are kept. A head with a higher number comes from a newer drover, and this one refuses it.

import { crc32 } from 'node:zlib';
import type { Owner } from '@drover/protocol/events';
import { type Json, type JsonObject, isJsonObject } from '@drover/protocol/json';

export const FORMAT_VERSION = 1;

const LF = 0x0a;
const SEAL = /^(\{.*),"sum":"([0-9a-f]{8})"\}$/s;

export type SealedLine = { readonly text: string; readonly sum: string };

/** Returns the record as a line without newline, sealed to the previous line's sum. */
export function sealJournalRecord(record: JsonObject, before: string): SealedLine {
  const open = JSON.stringify(record).slice(0, -1);
  const sum = journalLineSum(before, open);
  return { text: `${open},"sum":"${sum}"}`, sum };
}

export function journalFileHead(owner: Owner): JsonObject {
  return { journal: FORMAT_VERSION, ...owner };
}

export type Damage = { readonly line: number; readonly what: string };

export type Contents = {
  readonly version: number;
  readonly records: readonly JsonObject[]; // without the head
  /** Length up to the end of the last good line. The rest is torn or damaged. */
  readonly goodBytes: number;
  readonly lastSum: string;
  readonly damage?: Damage;
};

export function readJournalContents(bytes: Uint8Array): Contents {
  const records: JsonObject[] = [];
  let version = 0;
  let lastSum = '';
  let start = 0;
  for (let line = 1; ; line++) {
    const end = bytes.indexOf(LF, start);
    if (end === -1) return { version, records, goodBytes: start, lastSum };
    const checked = checkJournalLine(
      Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8'),
      lastSum,
    );
    if (typeof checked === 'string')
      return { version, records, goodBytes: start, lastSum, damage: { line, what: checked } };
    if (line > 1) records.push(checked.record);
    else version = Number(checked.record['journal']);
    lastSum = checked.sum;
    start = end + 1;
  }
}

/** Checks a line against the previous line's sum. Returns its record, or a description of the damage. */
export function checkJournalLine(
  text: string,
  before: string,
): { readonly record: JsonObject; readonly sum: string } | string {
  const [, open, sum] = SEAL.exec(text) ?? [];
  if (open === undefined || sum === undefined)
    return text.includes('\0') ? 'zeros where a record should be' : 'not a sealed record';
  if (journalLineSum(before, open) !== sum)
    return 'its seal does not fit: a byte was changed here, or a line is missing before it';
  const record: Json = JSON.parse(`${open}}`);
  return isJsonObject(record) ? { record, sum } : 'not a record';
}

function journalLineSum(before: string, open: string): string {
  return crc32(open, crc32(before)).toString(16).padStart(8, '0');
}
