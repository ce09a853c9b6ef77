// Bytes as text for a model. What is no text is described, never dumped.
//
// Output with a stray byte in it (one Latin-1 name in a log) is still worth reading: such bytes are
// named where they stand. Where they are many, the whole is binary data and only its size is told.

import { isUtf8 } from 'node:buffer';

// Below this share of bytes that are no text, output is text with blemishes.
const BINARY_SHARE = 0.1;

/** The bytes as text; `totalBytes` is the size to tell where they are a part of something binary. */
export function textOf(bytes: Buffer, totalBytes = bytes.length): string {
  return isBinary(bytes) ? binaryData(totalBytes) : markedText(bytes);
}

export function isBinary(bytes: Buffer): boolean {
  if (isPlainText(bytes)) return false;
  let odd = 0;
  for (const run of textRuns(bytes)) if (!run.isText) odd += run.bytes.length;
  return odd > bytes.length * BINARY_SHARE;
}

/** The bytes as text, each run of what is no text named in its place. */
export function markedText(bytes: Buffer): string {
  if (isPlainText(bytes)) return bytes.toString('utf8');
  let text = '';
  for (const run of textRuns(bytes)) {
    text += run.isText ? run.bytes.toString('utf8') : `[${byteSize(run.bytes.length)} not text]`;
  }
  return text;
}

export function isPlainText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}

export function binaryData(bytes: number): string {
  return `binary data, ${byteSize(bytes)}`;
}

/** 1234567 -> "1.2 MB" */
export function byteSize(bytes: number): string {
  if (bytes < 1_000) return bytes === 1 ? '1 byte' : `${bytes} bytes`;
  const units = ['KB', 'MB', 'GB', 'TB'];
  let size = bytes / 1_000;
  let unit = 0;
  for (; size >= 999.95 && unit < units.length - 1; unit++) size /= 1_000;
  return `${size.toFixed(1)} ${units[unit]}`;
}

/** How many bytes at the end are the beginning of a character whose rest is missing. */
export function unfinishedBytes(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (!isContinuation(byte)) return expectedBytes(byte) > back ? back : 0;
  }
  return 0;
}

/** How many bytes at the start are the end of a character whose beginning is missing. */
export function orphanedBytes(bytes: Buffer): number {
  let count = 0;
  while (count < 3 && isContinuation(bytes[count] ?? 0)) count++;
  return count;
}

function* textRuns(bytes: Buffer): Generator<{ readonly isText: boolean; readonly bytes: Buffer }> {
  let from = 0;
  let isText = true;
  for (let at = 0; at < bytes.length;) {
    const length = characterBytes(bytes, at);
    if (length > 0 !== isText) {
      if (at > from) yield { isText, bytes: bytes.subarray(from, at) };
      from = at;
      isText = length > 0;
    }
    at += Math.max(1, length);
  }
  if (bytes.length > from) yield { isText, bytes: bytes.subarray(from) };
}

// 0 where no character of text begins.
function characterBytes(bytes: Buffer, at: number): number {
  const first = bytes[at] ?? 0;
  const length = expectedBytes(first);
  if (length === 1) return first === 0 || isContinuation(first) ? 0 : 1;
  return at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)) ? length : 0;
}

function expectedBytes(first: number): number {
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}

function isContinuation(byte: number): boolean {
  return byte >= 0x80 && byte < 0xc0;
}
