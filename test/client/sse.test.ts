// Server-sent events split at every byte: the standard holds for any split.

import { expect, test } from 'vitest';
import { type SseEvent, SseParser, SseTooLarge } from '@drover/client/sse';

const encoder = new TextEncoder();

function parse(pieces: readonly Uint8Array[]): readonly SseEvent[] {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.push(piece));
}

function whole(text: string): readonly SseEvent[] {
  return parse([encoder.encode(text)]);
}

const CASES: readonly (readonly [string, string, readonly SseEvent[]])[] = [
  ['one event', 'data: a\n\n', [{ type: 'message', data: 'a', id: '' }]],
  ['a named one', 'event: x\ndata: a\n\n', [{ type: 'x', data: 'a', id: '' }]],
  ['data on several lines', 'data: a\ndata:\ndata: b\n\n', [{ type: 'message', data: 'a\n\nb', id: '' }]],
  ['only the first space is taken off', 'data:  a\ndata:b\n\n', [{ type: 'message', data: ' a\nb', id: '' }]],
  ['a byte order mark leads', '\uFEFFdata: a\n\n', [{ type: 'message', data: 'a', id: '' }]],
  ['a second one is a part of the name', '\uFEFF\uFEFFdata: a\n\n', []],
  ['comments', ': hello\ndata: a\n:data: b\n\n', [{ type: 'message', data: 'a', id: '' }]],
  ['a field without a colon', 'data\n\n', [{ type: 'message', data: '', id: '' }]],
  ['two blank lines', 'data: a\n\n\n\ndata: b\n\n', ['a', 'b'].map((data) => ({ type: 'message', data, id: '' }))],
  ['an id stays', 'id: 7\ndata: a\n\ndata: b\n\n', ['a', 'b'].map((data) => ({ type: 'message', data, id: '7' }))],
  [
    'an empty id takes it back',
    'id: 7\ndata: a\n\nid\ndata: b\n\n',
    [
      { type: 'message', data: 'a', id: '7' },
      { type: 'message', data: 'b', id: '' },
    ],
  ],
  ['an id with a NUL is none', 'id: 7\n\nid: 8\0\ndata: a\n\n', [{ type: 'message', data: 'a', id: '7' }]],
  ['an event without data is none', 'event: x\nid: 3\n\ndata: a\n\n', [{ type: 'message', data: 'a', id: '3' }]],
  ['fields nobody knows', 'datas: b\nData: c\nfoo\ndata: a\n\n', [{ type: 'message', data: 'a', id: '' }]],
  ['the last one is unfinished', 'data: a\n\ndata: b\n', [{ type: 'message', data: 'a', id: '' }]],
  ['characters of several bytes', 'data: naïve 日本 🐑\n\n', [{ type: 'message', data: 'naïve 日本 🐑', id: '' }]],
];

test.each(CASES)('%s, however it is split', (_, text, expected) => {
  for (const ends of ['\n', '\r\n', '\r']) {
    const bytes = encoder.encode(text.replaceAll('\n', ends));
    expect(parse([bytes])).toEqual(expected);
    expect(parse([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expected);
    for (let cut = 1; cut < bytes.length; cut++)
      expect(parse([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual(expected);
  }
});

test('an event that ends in CR is delivered at once, and a following LF ends no other', () => {
  const parser = new SseParser();
  expect(parser.push(encoder.encode('data: a\r\n\r'))).toEqual([{ type: 'message', data: 'a', id: '' }]);
  expect(parser.push(encoder.encode('\ndata: b\n\n'))).toEqual([{ type: 'message', data: 'b', id: '' }]);
});

test('invalid UTF-8 becomes replacement characters', () => {
  expect(parse([Uint8Array.of(...encoder.encode('data: '), 0xff, 0x61, 0x0a, 0x0a)])).toEqual([
    { type: 'message', data: '\uFFFDa', id: '' },
  ]);
});

test('a retry time is digits only, or ignored', () => {
  const parser = new SseParser();
  parser.push(encoder.encode('retry: 1s\nretry: -5\nretry:\n'));
  expect(parser.retryMs).toBeUndefined();
  parser.push(encoder.encode('retry: 250\n'));
  expect(parser.retryMs).toBe(250);
});

test('a line or event without an end fails at its bound', () => {
  const line = new SseParser(100);
  expect(() => Array.from({ length: 200 }, () => line.push(encoder.encode('x')))).toThrow(SseTooLarge);
  const event = new SseParser(100);
  expect(() => Array.from({ length: 20 }, () => event.push(encoder.encode('data: 0123456789\n')))).toThrow(SseTooLarge);
});

test('a megabyte that arrives byte by byte costs linear time', () => {
  const text = 'x'.repeat(1_000_000);
  const parser = new SseParser();
  const events = [...encoder.encode(`data: ${text}\n\n`)].flatMap((byte) => parser.push(Uint8Array.of(byte)));
  expect(events).toEqual(whole(`data: ${text}\n\n`));
});
