// Endless answers: more blocks than allowed end an answer as garbled, and the rest is not read.

import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { DroverError } from '@drover/core/errors';
import type { ModelEvent } from '@drover/protocol/model';
import { expect, test } from 'vitest';
import { memoryGrowthDuring } from '../support/workspace.ts';
import { never, loopback, providerAt, REQUEST } from './http/loopback.ts';
import { type Api, finished } from './recordings.ts';

const MANY = 100_000;
const FILL = 'x'.repeat(1_000);

type Flow = {
  readonly api: Api;
  readonly what: string;
  readonly head: readonly object[];
  /** The events of one block. */
  readonly block: (at: number) => readonly object[];
  readonly end: readonly object[];
};

const messages = (what: string, block: Flow['block']): Flow => ({
  api: 'anthropic',
  what,
  head: [{ type: 'message_start', message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 1 } } }],
  block,
  end: [
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ],
});

const responses = (what: string, block: Flow['block']): Flow => ({
  api: 'openai-responses',
  what,
  head: [{ type: 'response.created', response: {} }],
  block,
  end: [
    { type: 'response.completed', response: { status: 'completed', usage: { input_tokens: 1, output_tokens: 1 } } },
  ],
});

const chat = (what: string, delta: (at: number) => object): Flow => ({
  api: 'openai-chat',
  what,
  head: [],
  block: (at) => [{ choices: [{ index: 0, delta: delta(at) }] }],
  end: [{ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }],
});

const message = (at: number) => ({ type: 'message', id: `m${at}`, content: [{ type: 'output_text', text: FILL }] });

const FLOWS: readonly Flow[] = [
  messages('texts', (at) => [
    { type: 'content_block_start', index: at, content_block: { type: 'text', text: FILL } },
    { type: 'content_block_stop', index: at },
  ]),
  messages('texts at one index', () => [
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: FILL } },
    { type: 'content_block_stop', index: 0 },
  ]),
  messages('empty texts', (at) => [
    { type: 'content_block_start', index: at, content_block: { type: 'text', text: '' } },
    { type: 'content_block_stop', index: at },
  ]),
  messages('calls', (at) => [
    {
      type: 'content_block_start',
      index: at,
      content_block: { type: 'tool_use', id: `c${at}`, name: 'read', input: {} },
    },
    { type: 'content_block_stop', index: at },
  ]),
  messages('blocks that only the provider understands', (at) => [
    { type: 'content_block_start', index: at, content_block: { type: 'redacted_thinking', data: FILL } },
    { type: 'content_block_stop', index: at },
  ]),
  responses('messages', (at) => [
    { type: 'response.output_item.added', output_index: at, item: { type: 'message', id: `m${at}` } },
    { type: 'response.output_item.done', output_index: at, item: message(at) },
  ]),
  responses('one message that ends again and again', (at) => [
    { type: 'response.output_item.done', output_index: 0, item: message(at) },
  ]),
  responses('items that only the provider understands', (at) => [
    {
      type: 'response.output_item.done',
      output_index: at,
      item: { type: 'web_search_call', id: `s${at}`, data: FILL },
    },
  ]),
  chat('texts and thoughts in turn', (at) => (at % 2 === 0 ? { content: FILL } : { reasoning_content: FILL })),
  chat('calls', (at) => ({
    tool_calls: [{ index: at, id: `c${at}`, function: { name: 'read', arguments: '{}' } }],
  })),
];

/** Sends blocks as fast as the reader reads. Returns their number when the reader hangs up. */
async function sendBlocks(response: ServerResponse, { head, block, end }: Flow, count: number): Promise<number> {
  const text = (events: readonly object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(text(head));
  const gone = once(response, 'close');
  for (let at = 0; at < count; at++) {
    if (response.destroyed) return at;
    if (!response.write(text(block(at)))) await Promise.race([once(response, 'drain'), gone]);
  }
  response.end(text(end));
  return count;
}

async function streamed(flow: Flow, count: number) {
  let sent: Promise<number> = Promise.resolve(0);
  const { url } = await loopback((response) => (sent = sendBlocks(response, flow, count)));
  const events: ModelEvent[] = [];
  try {
    for await (const event of providerAt(url, flow.api).stream(REQUEST, never)) events.push(event);
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    return { events, failure: error.failure, sent: await sent };
  }
  return { events, failure: undefined, sent: await sent };
}

const TOO_MANY = { kind: 'provider.garbled', message: 'the answer has more than 1000 content blocks' };

test.each(FLOWS)('$api: 100,000 $what end as garbled', async (flow) => {
  let failure: unknown;
  let sent = 0;
  const growth = await memoryGrowthDuring(async () => ({ failure, sent } = await streamed(flow, MANY)));
  expect(failure).toEqual(TOO_MANY);
  // The reader stops at the bound; a few more are in the buffers of both ends.
  expect(sent).toBeLessThan(MANY / 2);
  expect(growth.all).toBeLessThan(200 * 1024 * 1024);
});

test.each(FLOWS.filter(({ what }) => what === 'calls' || what === 'texts' || what === 'messages'))(
  '$api: 1,000 $what are an answer, and one more is garbled',
  async (flow) => {
    const { events, failure } = await streamed(flow, 1_000);
    expect([failure, finished(events).message.content.length]).toEqual([undefined, 1_000]);
    expect((await streamed(flow, 1_001)).failure).toEqual(TOO_MANY);
  },
);

test('endless signatures in one block end as garbled', async () => {
  const endless = messages('signatures', () => [
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: FILL } },
  ]);
  const start = { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: 'a' } };
  const { failure } = await streamed({ ...endless, head: [...endless.head, start] }, MANY);
  expect(failure).toEqual({ kind: 'provider.garbled', message: 'the answer is over 64 MB' });
});
