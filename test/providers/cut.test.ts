// Streams that end too early. Only a stream with a stop reason is an answer.

import { DroverError } from '@drover/core/errors';
import { expect, test } from 'vitest';
import { proves } from '../support/proves.ts';
import { arriving, decode, finished, readAll, readers, recording, recordings, source, type Api } from './recordings.ts';

/** The part of a stream without which it is not an answer. */
const STOP: Readonly<Record<Api, RegExp>> = {
  anthropic: /"stop_reason":"\w/,
  'openai-responses': /"type":"response\.(completed|incomplete)"/,
  'openai-chat': /^(?!.*"index":1).*"finish_reason":"\w|\[DONE\]/m, // the first choice's
};

async function endOf(api: Api, text: string): Promise<'an answer' | 'garbled'> {
  try {
    finished(await readAll(api, decode([Buffer.from(text)])));
    return 'an answer';
  } catch (error) {
    if (error instanceof DroverError && error.failure.kind === 'provider.garbled') return 'garbled';
    throw error;
  }
}

proves('stream.never-half', 'a stream cut between any events is an answer only with its stop reason', async () => {
  for (const { api, bytes } of recordings) {
    const events = bytes.toString('utf8').split(/(?<=\n\n)/);
    for (let count = 0; count < events.length; count++) {
      const text = events.slice(0, count).join('');
      expect(await endOf(api, text)).toBe(STOP[api].test(text) ? 'an answer' : 'garbled');
    }
  }
});

test.each<[Api, string]>([
  ['anthropic', 'one-call'],
  ['openai-responses', 'reasoning-encrypted'],
  ['openai-chat', 'two-calls'],
])('cut at any byte, %s %s is an answer only with its stop reason', async (api, name) => {
  const bytes = recording(api, name);
  for (let size = 0; size < bytes.length; size++) {
    const text = bytes.subarray(0, size).toString('utf8');
    if ((await endOf(api, text)) === 'an answer') expect(text).toMatch(STOP[api]);
  }
});

test('content before the end is delivered before the failure', async () => {
  const events: string[] = [];
  const text = recording('anthropic', 'one-call').toString('utf8').split('event: message_delta')[0] ?? '';
  const reading = readers.anthropic(arriving(decode([Buffer.from(text)])), source);
  await expect(
    (async () => {
      for await (const event of reading) events.push(event.type);
    })(),
  ).rejects.toMatchObject({ failure: { kind: 'provider.garbled' } });
  expect(events).toEqual([
    'started',
    'text_start',
    'text_delta',
    'text_end',
    'toolcall_start',
    'toolcall_delta',
    'toolcall_end',
  ]);
});
