// Converts bytes to text for a model. Binary data is described, never printed.
//
// A few invalid bytes (one Latin-1 name in a log) are replaced by a note in place. If there are many, the whole
// is treated as binary data and only its size is reported.

import { isUtf8 } from 'node:buffer';

// Output with at most this share of invalid bytes counts as text.
const BINARY_SHARE = 0.1;

/** Converts bytes to text. `totalBytes` is the size to report if they are part of binary data. */
export function toolOutputText(bytes: Buffer, totalBytes = bytes.length): string {
  return isBinaryOutput(bytes) ? binaryOutputNote(totalBytes) : markedOutputText(bytes);
}

export function isBinaryOutput(bytes: Buffer): boolean {
  if (isPlainOutput(bytes)) return false;
  let odd = 0;
  for (const run of outputTextRuns(bytes)) if (!run.isText) odd += run.bytes.length;
  return odd > bytes.length * BINARY_SHARE;
}

/** Converts bytes to text, with a note in place of each run of invalid bytes. */
export function markedOutputText(bytes: Buffer): string {
  if (isPlainOutput(bytes)) return bytes.toString('utf8');
  let text = '';
  for (const run of outputTextRuns(bytes)) {
    text += run.isText ? run.bytes.toString('utf8') : `[${outputByteSize(run.bytes.length)} not text]`;
  }
  return text;
}

export function isPlainOutput(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}

export function binaryOutputNote(bytes: number): string {
  return `binary data, ${outputByteSize(bytes)}`;
}

/** Formats a size: 1234567 -> "1.2 MB". */
export function outputByteSize(bytes: number): string {
  if (bytes < 1_000) return bytes === 1 ? '1 byte' : `${bytes} bytes`;
  const units = ['KB', 'MB', 'GB', 'TB'];
  let size = bytes / 1_000;
  let unit = 0;
  for (; size >= 999.95 && unit < units.length - 1; unit++) size /= 1_000;
  return `${size.toFixed(1)} ${units[unit]}`;
}

/** Returns the number of bytes at the end that belong to an incomplete character. */
export function unfinishedOutputBytes(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (!isOutputContinuation(byte)) return expectedOutputBytes(byte) > back ? back : 0;
  }
  return 0;
}

/** Returns the number of bytes at the start that belong to a character whose start is missing. */
export function orphanedOutputBytes(bytes: Buffer): number {
  let count = 0;
  while (count < 3 && isOutputContinuation(bytes[count] ?? 0)) count++;
  return count;
}

function* outputTextRuns(bytes: Buffer): Generator<{ readonly isText: boolean; readonly bytes: Buffer }> {
  let from = 0;
  let isText = true;
  for (let at = 0; at < bytes.length;) {
    const length = outputCharacterBytes(bytes, at);
    if (length > 0 !== isText) {
      if (at > from) yield { isText, bytes: bytes.subarray(from, at) };
      from = at;
      isText = length > 0;
    }
    at += Math.max(1, length);
  }
  if (bytes.length > from) yield { isText, bytes: bytes.subarray(from) };
}

// Returns the length of the character at a position, or 0 if it is invalid.
function outputCharacterBytes(bytes: Buffer, at: number): number {
  const first = bytes[at] ?? 0;
  const length = expectedOutputBytes(first);
  if (length === 1) return first === 0 || isOutputContinuation(first) ? 0 : 1;
  return at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)) ? length : 0;
}

function expectedOutputBytes(first: number): number {
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}

function isOutputContinuation(byte: number): boolean {
  return byte >= 0x80 && byte < 0xc0;
}
