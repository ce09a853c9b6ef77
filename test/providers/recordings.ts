// The recorded streams, and their reader.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { anthropicProvider, readAnthropicAnswer as readAnthropic } from '@drover/core/model/providers/anthropic';
import { openaiChatProvider, readChatAnswer as readChat } from '@drover/core/model/providers/openai-chat';
import {
  openaiResponsesProvider,
  readResponsesAnswer as readResponses,
} from '@drover/core/model/providers/openai-responses';
import type { ModelEvent } from '@drover/protocol/model';
import type { Provider, ProviderOptions } from '@drover/core/model/provider';
import type { Source } from '@drover/core/model/wire/assembly';
import { SseDecoder, type Frames, type SseFrame } from '@drover/core/model/wire/http/sse';

export type Api = 'anthropic' | 'openai-responses' | 'openai-chat';

type Reader = (frames: Frames, source: Source) => AsyncIterable<ModelEvent>;

export const readers: Readonly<Record<Api, Reader>> = {
  anthropic: readAnthropic,
  'openai-responses': readResponses,
  'openai-chat': readChat,
};

export const providers: Readonly<Record<Api, (options: ProviderOptions) => Provider>> = {
  anthropic: anthropicProvider,
  'openai-responses': openaiResponsesProvider,
  'openai-chat': openaiChatProvider,
};

export const apis: readonly Api[] = ['anthropic', 'openai-responses', 'openai-chat'];

export type Recording = { readonly api: Api; readonly name: string; readonly bytes: Buffer };

const folder = join(import.meta.dirname, '../recordings');

export const recordings: readonly Recording[] = apis.flatMap((api) =>
  readdirSync(join(folder, api))
    .filter((file) => file.endsWith('.sse'))
    .map((file) => ({ api, name: file.slice(0, -4), bytes: readFileSync(join(folder, api, file)) })),
);

export function recording(api: Api, name: string): Buffer {
  return readFileSync(join(folder, api, `${name}.sse`));
}

export const source: Source = {
  provider: 'here',
  model: 'model',
  account: { key: 'secret-key', keyName: 'SOME_KEY', address: 'http://host/', shownAddress: 'http://host/' },
  headers: () => ({}),
  estimatePrompt: () => 1_000,
};

/** The frames of a byte stream that arrives in these pieces. */
export function decode(pieces: Iterable<Uint8Array>): readonly (readonly SseFrame[])[] {
  const decoder = new SseDecoder();
  return [...Array.from(pieces, (piece) => decoder.push(piece)), decoder.end()].filter((batch) => batch.length > 0);
}

export async function* arriving(batches: Iterable<readonly SseFrame[]>): Frames {
  for (const batch of batches) yield await Promise.resolve(batch);
}

export async function readAll(api: Api, batches: Iterable<readonly SseFrame[]>): Promise<readonly ModelEvent[]> {
  return Array.fromAsync(readers[api](arriving(batches), source));
}

/** The message and its metadata: the last event, which occurs exactly once. */
export function finished(events: readonly ModelEvent[]): Extract<ModelEvent, { type: 'finished' }> {
  const last = events.at(-1);
  if (last?.type !== 'finished' || events.filter(({ type }) => type === 'finished').length !== 1) {
    throw new Error('not exactly one finished event at the end');
  }
  return last;
}
