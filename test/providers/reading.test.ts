// Recorded streams. Beside each recording is a readable file with drover's result.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ModelEvent } from '@drover/protocol/model';
import { apis, decode, finished, readAll, recordings } from './recordings.ts';

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

test('a prompt counter that a later event omits keeps its value', async () => {
  const started = { input_tokens: 1, cache_read_input_tokens: 20, cache_creation_input_tokens: 300, output_tokens: 1 };
  const frames = [
    { type: 'message_start', message: { id: 'm', role: 'assistant', content: [], usage: started } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'ok' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 2, output_tokens: 5 } },
    { type: 'message_stop' },
  ];
  const bytes = Buffer.from(frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join(''));
  const { message } = finished(await readAll('anthropic', decode([bytes])));
  expect(message.usage).toEqual({ input: 2, cacheRead: 20, cacheWrite: 300, output: 5 });
});

/** The parts as built from the events alone. */
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

test.each(apis)('%s: deltas of one block that arrive together are one delta', async (api) => {
  for (const { bytes } of recordings.filter((each) => each.api === api)) {
    const events = await readAll(api, [decode([bytes]).flat()]);
    const repeated = events.filter((event, at) => {
      const before = events[at - 1];
      return 'delta' in event && before !== undefined && 'delta' in before && before.part === event.part;
    });
    expect(repeated).toEqual([]);
  }
});
