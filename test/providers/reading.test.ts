// What each recorded stream says. Next to a recording stands what drover makes of it, to be read by eye.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ModelEvent } from '@drover/core/model/protocol';
import { decode, finished, readAll, recordings } from './recordings.ts';

test.each(recordings)('$api: $name', async ({ api, name, bytes }) => {
  const events = await readAll(api, decode([bytes]));
  const { message, notes } = finished(events);
  const { ignored, explanation } = notes;
  const said = { ...message, notes: { ignored, explanation } };
  await expect(`${JSON.stringify(said, undefined, 2)}\n`).toMatchFileSnapshot(
    join(import.meta.dirname, '../recordings', api, `${name}.json`),
  );
});

test.each(recordings)('the events of $api: $name tell its message', async ({ api, bytes }) => {
  const events = await readAll(api, decode([bytes]));
  const { message } = finished(events);
  expect(events[0]?.type).toBe('started');
  expect(partsOf(events)).toEqual(
    message.content.map((part) => (part.type === 'tool_call' ? { call: part.id, name: part.name } : part)),
  );
});

/** The parts as someone sees them who only follows the events. */
function partsOf(events: readonly ModelEvent[]): unknown[] {
  const parts: ({ type?: string; text: string; end?: unknown } | undefined)[] = [];
  for (const event of events) {
    if (event.type === 'text_start' || event.type === 'thinking_start') {
      expect(parts[event.part]).toBeUndefined();
      parts[event.part] = { type: event.type.replace('_start', ''), text: '' };
    } else if (event.type === 'toolcall_start') {
      expect(parts[event.part]).toBeUndefined();
      parts[event.part] = { text: '', end: { call: event.id, name: event.name } };
    } else if ('delta' in event) {
      const part = parts[event.part];
      if (part !== undefined) part.text += event.delta;
    } else if (event.type === 'text_end' || event.type === 'thinking_end') {
      expect(parts[event.part]?.text).toBe(event.text);
      parts[event.part] = { text: '', end: { type: event.type.replace('_end', ''), text: event.text } };
    }
  }
  return parts.map((part) => part?.end);
}

const sse = (data: object): Buffer => Buffer.from(`data: ${JSON.stringify(data)}\n\n`);
const begun = (index: number): Buffer =>
  sse({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } });
const piece = (index: number, text: string): Buffer =>
  sse({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } });
const stopped = sse({ type: 'message_delta', delta: { stop_reason: 'end_turn' } });

async function deltasOf(reads: readonly Uint8Array[]): Promise<readonly { part: number; delta: string }[]> {
  const events = await readAll('anthropic', decode(reads));
  return events.flatMap((event) => ('delta' in event ? [{ part: event.part, delta: event.delta }] : []));
}

test('the pieces of a block are told one by one, unless a read holds more than can be followed', async () => {
  const words = Array.from({ length: 1_000 }, (_, n) => `word${n} `);
  const pieces = [begun(0), ...words.map((word) => piece(0, word)), stopped];

  const few = await deltasOf(pieces);
  const many = await deltasOf([Buffer.concat(pieces)]);

  expect(few).toEqual(words.map((delta) => ({ part: 0, delta })));
  expect(many.slice(0, 50)).toEqual(few.slice(0, 50));
  expect(many.length).toBeLessThan(100);
  expect(many.map(({ delta }) => delta).join('')).toBe(words.join(''));
});

test('however much comes in one read, the pieces of two blocks are not joined', async () => {
  const words = Array.from({ length: 300 }, (_, n) => ({ part: n % 2, delta: `word${n} ` }));
  const pieces = [begun(0), begun(1), ...words.map(({ part, delta }) => piece(part, delta)), stopped];
  expect(await deltasOf([Buffer.concat(pieces)])).toEqual(words);
});
