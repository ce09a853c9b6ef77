// read: returns a text file with line numbers, or an image.
//
// Only the requested lines are held in memory, so files may have any size.

import type { FileHandle } from 'node:fs/promises';
import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { outputByteSize, isPlainOutput, unfinishedOutputBytes } from './output/bytes.ts';
import { openToolFile } from './files/content.ts';
import { OUTPUT_CHARS_MAX } from './output/capture.ts';
import { type Place, readableToolPath, tidyToolPath } from './files/paths.ts';
import { defineTool, type ToolOutput } from './tool.ts';

const LINES = 1_000;
const LINES_MAX = 5_000;
const LINE_NUMBER_MAX = 1_000_000_000;
const LINE_CHARS_MAX = 2_000;
const LINE_BYTES_MAX = 4 * LINE_CHARS_MAX;
// Below the limit of all output, to leave room for the line that says where to continue.
const SHOWN_CHARS_MAX = OUTPUT_CHARS_MAX - 500;
const CHUNK_BYTES = 64 * 1024;
// As base64 this is 5 MiB, the limit of providers.
const IMAGE_BYTES_MAX = 3_932_160;

export const read = defineTool({
  name: 'read',
  description: 'Read a text file, lines numbered from 1, or look at an image.',
  input: z.strictObject({
    path: z.string(),
    from: z.optional(z.int().check(z.gte(1), z.lte(LINE_NUMBER_MAX), z.describe('First line.'))),
    lines: z.optional(z.int().check(z.gte(1), z.lte(LINES_MAX), z.describe(`Default ${LINES}.`))),
  }),
  access: 'read',
  repeatable: true,
  subject: ({ path }) => tidyToolPath(path),
  async run({ path, from = 1, lines = LINES }, context) {
    const place = await readableToolPath(path, context);
    const { file, stats } = await openToolFile(place);
    try {
      const start = await firstBytesForReadTool(file);
      const mediaType = imageTypeForReadTool(start);
      if (mediaType !== undefined) return await imageOutputOfReadTool(file, place, { mediaType, bytes: stats.size });
      if (start.includes(0)) throw readToolFileIsNotText(place, stats.size);
      return await textOutputOfReadTool(file, place, { from, lines, bytes: stats.size, signal: context.signal });
    } finally {
      await file.close();
    }
  },
});

async function firstBytesForReadTool(file: FileHandle): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(8_000), 0, 8_000, 0);
  return buffer.subarray(0, bytesRead);
}

// Detects the type by content, because providers reject an image whose declared type is wrong.
export function imageTypeForReadTool(start: Buffer): string | undefined {
  const text = start.toString('latin1', 0, 12);
  if (text.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (/^GIF8[79]a/.test(text)) return 'image/gif';
  return /^RIFF....WEBP/s.test(text) ? 'image/webp' : undefined;
}

async function imageOutputOfReadTool(
  file: FileHandle,
  { shown }: Place,
  { mediaType, bytes }: { readonly mediaType: string; readonly bytes: number },
): Promise<ToolOutput> {
  const told = `${shown}: ${mediaType}, ${outputByteSize(bytes)}`;
  if (bytes > IMAGE_BYTES_MAX) throw new ToolError(`${told}: too large, at most ${outputByteSize(IMAGE_BYTES_MAX)}`);
  const data = (await file.readFile()).toString('base64');
  return { output: told, images: [{ type: 'image', mediaType, data }] };
}

function readToolFileIsNotText({ shown }: Place, bytes: number): ToolError {
  return new ToolError(`${shown} is not UTF-8 text (${outputByteSize(bytes)})`);
}

type Wanted = {
  readonly from: number;
  readonly lines: number;
  readonly bytes: number;
  readonly signal: AbortSignal;
};

async function textOutputOfReadTool(file: FileHandle, place: Place, wanted: Wanted): Promise<string> {
  const { lines, counted, hasMore } = await linesForReadTool(file, wanted);
  if (lines.some((line) => !isPlainOutput(line.bytes))) throw readToolFileIsNotText(place, wanted.bytes);
  if (lines.length === 0) {
    if (counted === 0 && wanted.from === 1) return '(empty file)';
    throw new ToolError(`${place.shown} ends with line ${counted}`);
  }
  const numbered = lines.map((line, index) => `${wanted.from + index}\t${shownLineOfReadTool(line)}`);
  if (wanted.from === 1) numbered[0] = numbered[0]?.replace('\t\uFEFF', '\t') ?? '';
  if (hasMore) numbered.push(`[more lines follow: go on with from=${wanted.from + lines.length}]`);
  return numbered.join('\n');
}

/** `bytes` is the line without its line end, truncated if long; `length` is its full size in bytes. */
type Line = { readonly bytes: Buffer; readonly length: number };
type Lines = { readonly lines: readonly Line[]; readonly counted: number; readonly hasMore: boolean };

async function linesForReadTool(file: FileHandle, { from, lines: linesMax, signal }: Wanted): Promise<Lines> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const lines: Line[] = [];
  let counted = 0; // lines that have ended
  let shownBytes = 0;
  let kept: Buffer[] = [];
  let length = 0;
  const endLine = () => {
    counted++;
    if (counted >= from) lines.push(closedLineOfReadTool(kept, length));
    shownBytes += Math.min(length, LINE_CHARS_MAX) + 8;
    kept = [];
    length = 0;
  };

  for (let position = 0; ;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    for (let at = 0; at < bytesRead;) {
      if (counted + 1 === from) shownBytes = 0;
      if (lines.length === linesMax || shownBytes > SHOWN_CHARS_MAX) {
        if (lines.length > 0) return { lines, counted, hasMore: true };
      }
      const found = chunk.subarray(0, bytesRead).indexOf(10, at);
      const end = found === -1 ? bytesRead : found;
      const isWanted = counted + 1 >= from && length < LINE_BYTES_MAX;
      if (isWanted) kept.push(Buffer.from(chunk.subarray(at, Math.min(end, at + LINE_BYTES_MAX))));
      length += end - at;
      at = end + 1;
      if (found !== -1) endLine();
    }
  }
  if (length > 0) endLine();
  return { lines, counted, hasMore: false };
}

function closedLineOfReadTool(parts: readonly Buffer[], length: number): Line {
  const bytes = Buffer.concat(parts);
  // Truncation may have split the last character.
  return {
    length,
    bytes: bytes.length === length ? bytes : bytes.subarray(0, bytes.length - unfinishedOutputBytes(bytes)),
  };
}

function shownLineOfReadTool({ bytes, length }: Line): string {
  const line = bytes.toString('utf8').replace(/\r$/, '');
  if (line.length <= LINE_CHARS_MAX && length === bytes.length) return line;
  return `${line.slice(0, LINE_CHARS_MAX).toWellFormed()}… [the line has ${outputByteSize(length)}]`;
}
