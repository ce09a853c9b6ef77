// Bytes to frames: the standard's rules, for any split of the bytes.

import { DroverError } from '@drover/core/errors';
import { SseDecoder, type SseFrame } from '@drover/core/model/wire/http/sse';
import { describe, expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { decode, finished, readAll, recordings } from '../recordings.ts';

const framesOf = (text: string): readonly SseFrame[] => decode([Buffer.from(text)]).flat();
const data = (...lines: readonly string[]): readonly SseFrame[] => lines.map((line) => ({ event: '', data: line }));

test.each<[string, string, readonly SseFrame[]]>([
  ['an event has a name and data', 'event: x\ndata: 1\n\n', [{ event: 'x', data: '1' }]],
  ['the name counts once', 'event: x\ndata: 1\n\ndata: 2\n\n', [{ event: 'x', data: '1' }, ...data('2')]],
  ['one blank after the colon is left out', 'data:1\n\ndata:  2\n\n', data('1', ' 2')],
  ['several data lines are one text', 'data: a\ndata:\ndata: b\n\n', data('a\n\nb')],
  ['a field without a colon is empty', 'data\n\n', data('')],
  ['CRLF ends a line', 'data: 1\r\n\r\ndata: 2\r\n\r\n', data('1', '2')],
  ['CR ends a line', 'data: 1\r\rdata: 2\r\r', data('1', '2')],
  ['line ends may be mixed', 'data: 1\r\n\ndata: 2\n\rdata: 3\r\r\n', data('1', '2', '3')],
  ['a byte order mark may lead', '\uFEFFdata: 1\n\n', data('1')],
  ['only the first mark is one', 'data: 1\n\n\uFEFFdata: 2\n\n', data('1')],
  ['a comment says nothing', ': hello\ndata: 1\n: data: 2\n\n:\n\n', data('1')],
  ['unknown fields say nothing', 'id: 7\nretry: 10\ndatum: 1\ndata: 1\n\n', data('1')],
  ['an event without data is none', 'event: x\n\nevent: y\ndata: 1\n\n', [{ event: 'y', data: '1' }]],
  ['more blank lines mean nothing', '\n\n\ndata: 1\n\n\n\n', data('1')],
  ['the blank line at the end may be missing', 'data: 1\n\ndata: 2\n', data('1', '2')],
  ['and so may the line end', 'data: 1\n\ndata: 2', data('1', '2')],
])('%s', (_, text, frames) => {
  expect(framesOf(text)).toEqual(frames);
});

test('invalid bytes become replacement characters', () => {
  expect(decode([Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0x0a, 0x0a])]).flat()).toEqual(data('\uFFFD'));
});

/** Different bytes with the same meaning. */
const rewritings: Record<string, (text: string) => string> = {
  'as it is': (text) => text,
  'with CRLF': (text) => text.replaceAll('\n', '\r\n'),
  'with CR': (text) => text.replaceAll('\n', '\r'),
  'with a byte order mark': (text) => `\uFEFF${text}`,
  'with comments': (text) => text.replaceAll('\n\n', '\n\n: still here\n\n'),
  'without the last blank line': (text) => text.trimEnd(),
  'in several data lines': (text) => text.replaceAll(/^data: \{/gm, 'data: {\ndata:'),
};

/** The same bytes, split differently. */
const cuttings: Record<string, (bytes: Buffer) => Iterable<Uint8Array>> = {
  'in one piece': (bytes) => [bytes],
  'byte by byte': (bytes) => Array.from(bytes, (byte) => Uint8Array.of(byte)),
  'in odd pieces': (bytes) => pieces(bytes, (at) => 1 + ((at * 7_919) % 53)),
};

function* pieces(bytes: Buffer, sizeAt: (at: number) => number): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += sizeAt(at)) yield bytes.subarray(at, at + sizeAt(at));
}

describe.each(Object.entries(rewritings))('%s', (_, rewrite) => {
  test.each(Object.entries(cuttings))('%s, every recording says the same', async (__, cut) => {
    for (const { api, bytes } of recordings) {
      const plain = finished(await readAll(api, decode([bytes])));
      const other = finished(await readAll(api, decode(cut(Buffer.from(rewrite(bytes.toString('utf8')))))));
      expect(other).toEqual(plain);
    }
  });
});

proves('stream.any-bytes', 'the frames are the same for any split', () => {
  const bytes = Buffer.from('\uFEFFevent: x\r\ndata: – 🐄 –\r\n\r\n: hm\rdata: a\rdata: b\r\rdata: end');
  const whole = decode([bytes]).flat();
  expect(whole).toEqual([{ event: 'x', data: '– 🐄 –' }, ...data('a\nb', 'end')]);
  for (let at = 0; at <= bytes.length; at++) {
    expect(decode([bytes.subarray(0, at), bytes.subarray(at)]).flat()).toEqual(whole);
  }
});

const MEGABYTE = Buffer.alloc(1024 * 1024, 'x');

/** Pushes megabytes until it fails, and returns how many that took. */
function megabytesUntilFailure(decoder: SseDecoder, between: string): number {
  for (let count = 1; count <= 64; count++) {
    try {
      decoder.push(MEGABYTE);
      decoder.push(Buffer.from(between));
    } catch (error) {
      expect(error).toBeInstanceOf(DroverError);
      expect(error).toMatchObject({ failure: { kind: 'provider.garbled' } });
      return count;
    }
  }
  return Infinity;
}

test('a line without end fails once it is over 16 MB', () => {
  expect(megabytesUntilFailure(new SseDecoder(), '')).toBe(17);
});

test('an event of many lines fails once it is over 16 MB', () => {
  const decoder = new SseDecoder();
  decoder.push(Buffer.from('data: '));
  expect(megabytesUntilFailure(decoder, '\ndata: ')).toBeLessThanOrEqual(17);
});

test('an event of 15 MB is fine, and so is the one after it', () => {
  const decoder = new SseDecoder();
  decoder.push(Buffer.from('data: '));
  for (let count = 0; count < 15; count++) decoder.push(MEGABYTE);
  const [large] = decoder.push(Buffer.from('\n\n'));
  expect(large?.data.length).toBe(15 * 1024 * 1024);
  expect(decoder.push(Buffer.from('data: 1\n\n'))).toEqual(data('1'));
});

test('a megabyte that arrives byte by byte takes only seconds', () => {
  const decoder = new SseDecoder();
  decoder.push(Buffer.from('data: '));
  for (const byte of MEGABYTE) decoder.push(Uint8Array.of(byte));
  const [frame] = decoder.push(Buffer.from('\n\n'));
  expect(frame?.data.length).toBe(MEGABYTE.length);
});
