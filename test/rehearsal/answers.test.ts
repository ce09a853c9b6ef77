// Ordinary answers through the real SDKs, streamed and whole.

import { expect, test } from 'vitest';
import { at, dataIn, post, requestFor, send, stage, textAt } from './clients.ts';

const READS = {
  thinking: 'Which file?',
  text: 'I read it.',
  calls: [{ name: 'read', args: { path: 'a.txt' } }, { name: 'status' }],
} as const;

const user = { role: 'user', content: 'go' } as const;

test('answers are given in order, one per request', async () => {
  const { anthropic, server } = await stage({ answers: [{ text: 'one' }, { text: 'two' }] });
  const ask = async () => (await anthropic.messages.create({ model: 'm', max_tokens: 99, messages: [user] })).content;

  expect([await ask(), await ask()]).toEqual([
    [{ type: 'text', text: 'one', citations: null }],
    [{ type: 'text', text: 'two', citations: null }],
  ]);
  expect(server.requests.map(({ n, api, path, status }) => ({ n, api, path, status }))).toEqual([
    { n: 1, api: 'anthropic', path: '/v1/messages', status: 200 },
    { n: 2, api: 'anthropic', path: '/v1/messages', status: 200 },
  ]);
});

test('Anthropic: thinking, text and calls, streamed and whole, are the same message', async () => {
  const { anthropic } = await stage({ answers: [READS, READS] });
  const request = { model: 'm', max_tokens: 99, messages: [user] };
  const streamed = await anthropic.messages.stream(request).finalMessage();
  const whole = await anthropic.messages.create(request);

  const content = [
    { type: 'thinking', thinking: 'Which file?', signature: expect.stringMatching(/.{40}/) },
    { type: 'text', text: 'I read it.', citations: null },
    {
      type: 'tool_use',
      id: expect.stringMatching(/^toolu_\w{24}$/),
      name: 'read',
      input: { path: 'a.txt' },
      caller: { type: 'direct' },
    },
    {
      type: 'tool_use',
      id: expect.stringMatching(/^toolu_\w{24}$/),
      name: 'status',
      input: {},
      caller: { type: 'direct' },
    },
  ];
  for (const message of [streamed, whole]) {
    expect(message.content).toEqual(content);
    expect(message.stop_reason).toBe('tool_use');
    expect(message.usage).toMatchObject({ input_tokens: 1, output_tokens: 12 });
  }
  expect(
    new Set([...streamed.content, ...whole.content].flatMap((block) => ('id' in block ? [block.id] : []))).size,
  ).toBe(4);
});

test('the same request again gets new ids', async () => {
  const { server } = await stage({ otherwise: { calls: [{ name: 'read' }] } });
  const ids = async () => {
    const { json } = await post(server, 'openai', requestFor('openai'));
    return ['id', 'output.0.id', 'output.0.call_id'].map((path) => textAt(json, path));
  };
  expect(new Set([...(await ids()), ...(await ids())]).size).toBe(6);
});

test('Anthropic: the events of a stream', async () => {
  const { server } = await stage({
    answers: [
      { thinking: 'hm', redactedThinking: 'secret', text: 'hi', calls: [{ name: 'read', args: { path: 'a' } }] },
    ],
  });
  const response = await send(server, 'anthropic', { body: requestFor('anthropic', { stream: true }) });

  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  expect(response.headers.get('request-id')).toBe('req_1');
  const told = dataIn(await response.text()).map((event) =>
    ['type', 'index', 'content_block.type', 'delta.type', 'delta.stop_reason']
      .map((path) => textAt(event, path))
      .filter((part) => part !== '')
      .join(' '),
  );
  expect(told).toEqual([
    'message_start',
    'content_block_start 0 thinking',
    'ping',
    'content_block_delta 0 thinking_delta',
    'content_block_delta 0 signature_delta',
    'content_block_stop 0',
    'content_block_start 1 redacted_thinking',
    'content_block_stop 1',
    'content_block_start 2 text',
    'content_block_delta 2 text_delta',
    'content_block_stop 2',
    'content_block_start 3 tool_use',
    'content_block_delta 3 input_json_delta',
    'content_block_delta 3 input_json_delta',
    'content_block_stop 3',
    'message_delta tool_use',
    'message_stop',
  ]);
});

test('Chat Completions: text and calls, streamed and whole, are the same message', async () => {
  const { openai } = await stage({ answers: [READS, READS] });
  const request = { model: 'm', messages: [user] };
  const streamed = await openai.chat.completions
    .stream({ ...request, stream_options: { include_usage: true } })
    .finalChatCompletion();
  const whole = await openai.chat.completions.create(request);

  for (const completion of [streamed, whole]) {
    expect(completion.choices).toHaveLength(1);
    expect(completion.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        role: 'assistant',
        content: 'I read it.',
        refusal: null,
        tool_calls: [
          {
            id: expect.stringMatching(/^call_\w{24}$/),
            type: 'function',
            function: { name: 'read', arguments: '{"path":"a.txt"}' },
          },
          {
            id: expect.stringMatching(/^call_\w{24}$/),
            type: 'function',
            function: { name: 'status', arguments: '{}' },
          },
        ],
      },
    });
    expect(completion.usage).toMatchObject({
      prompt_tokens: 1,
      completion_tokens: 12,
      total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 3 },
    });
  }
});

test('Chat Completions: usage comes in its own chunk, and only on request', async () => {
  const { server } = await stage({ answers: [{ text: 'hi' }], loop: true });
  const chunks = async (more: { readonly [key: string]: boolean | { readonly include_usage: boolean } }) =>
    dataIn(
      await (await send(server, 'openai-chat', { body: requestFor('openai-chat', { stream: true, ...more }) })).text(),
    );

  const plain = await chunks({});
  expect(plain.map((chunk) => at(chunk, 'choices.0.delta') ?? chunk)).toEqual([
    { role: 'assistant', content: '', refusal: null },
    { content: 'hi' },
    {},
    '[DONE]',
  ]);
  expect(plain.map((chunk) => at(chunk, 'usage'))).toEqual([undefined, undefined, undefined, undefined]);
  const counted = await chunks({ stream_options: { include_usage: true } });
  expect(counted.map((chunk) => at(chunk, 'usage.total_tokens') ?? at(chunk, 'usage'))).toEqual([
    null,
    null,
    null,
    2,
    undefined,
  ]);
});

test('Responses: reasoning, text and calls, streamed and whole, are the same items', async () => {
  const { openai } = await stage({ answers: [READS, READS] });
  const request = { model: 'm', input: 'go', include: ['reasoning.encrypted_content' as const] };
  const streamed = await openai.responses.stream(request).finalResponse();
  const whole = await openai.responses.create(request);

  for (const response of [streamed, whole]) {
    expect(response.status).toBe('completed');
    expect(response.output_text).toBe('I read it.');
    expect(response.output).toMatchObject([
      {
        id: expect.stringMatching(/^rs_/),
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: 'Which file?' }],
        encrypted_content: expect.stringMatching(/.{40}/),
      },
      {
        id: expect.stringMatching(/^msg_/),
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'I read it.' }],
      },
      {
        id: expect.stringMatching(/^fc_/),
        type: 'function_call',
        name: 'read',
        arguments: '{"path":"a.txt"}',
        call_id: expect.stringMatching(/^call_/),
      },
      { id: expect.stringMatching(/^fc_/), type: 'function_call', name: 'status', arguments: '{}' },
    ]);
    expect(response.usage).toMatchObject({
      output_tokens: 12,
      output_tokens_details: { reasoning_tokens: 3 },
      input_tokens_details: { cached_tokens: 0 },
    });
  }
});

test('Responses: the events of a stream, numbered without a gap', async () => {
  const { server } = await stage({
    answers: [{ thinking: 'hm', text: 'hi', calls: [{ name: 'read', args: { path: 'a' } }] }],
  });
  const response = await send(server, 'openai', { body: requestFor('openai', { stream: true }) });
  const events = dataIn(await response.text());

  expect(events.map((event) => at(event, 'sequence_number'))).toEqual(events.map((_, index) => index));
  expect(events.map((event) => at(event, 'type'))).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.reasoning_summary_part.added',
    'response.reasoning_summary_text.delta',
    'response.reasoning_summary_text.done',
    'response.reasoning_summary_part.done',
    'response.output_item.done',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.output_item.added',
    'response.function_call_arguments.delta',
    'response.function_call_arguments.done',
    'response.output_item.done',
    'response.completed',
  ]);
});

test.each([
  ['length', 'max_tokens', 'length', 'incomplete max_output_tokens'],
  ['refusal', 'refusal', 'stop', 'completed '],
  ['filter', 'refusal', 'content_filter', 'incomplete content_filter'],
  ['pause', 'pause_turn', 'stop', 'completed '],
  ['context', 'model_context_window_exceeded', 'length', 'incomplete max_output_tokens'],
] as const)('the stop `%s` in the words of each API', async (stop, inAnthropic, inChat, inResponses) => {
  const { server } = await stage({ answers: [{ text: 'so', stop }], loop: true });
  const [messages, chat, responses] = [
    await post(server, 'anthropic', requestFor('anthropic')),
    await post(server, 'openai-chat', requestFor('openai-chat')),
    await post(server, 'openai', requestFor('openai')),
  ];
  expect(at(messages.json, 'stop_reason')).toBe(inAnthropic);
  expect(at(chat.json, 'choices.0.finish_reason')).toBe(inChat);
  expect(`${textAt(responses.json, 'status')} ${textAt(responses.json, 'incomplete_details.reason')}`).toBe(
    inResponses,
  );
});

test('a refusal appears where each API puts it', async () => {
  const { server } = await stage({ answers: [{ text: 'no', stop: 'refusal' }], loop: true });
  const messages = await post(server, 'anthropic', requestFor('anthropic'));
  expect(at(messages.json, 'stop_details.type')).toBe('refusal');
  const chat = await post(server, 'openai-chat', requestFor('openai-chat'));
  expect(at(chat.json, 'choices.0.message')).toEqual({
    role: 'assistant',
    content: null,
    refusal: 'no',
    annotations: [],
  });
  const responses = await post(server, 'openai', requestFor('openai'));
  expect(at(responses.json, 'output.0.content.0')).toEqual({ type: 'refusal', refusal: 'no' });
});

test('parts come in scripted order', async () => {
  const { anthropic } = await stage({
    answers: [{ parts: [{ text: 'a' }, { call: { name: 'x', id: 'toolu_own' } }, { thinking: 'b' }, { text: 'c' }] }],
  });
  const { content } = await anthropic.messages.create({ model: 'm', max_tokens: 9, messages: [user] });
  expect(content.map((block) => block.type)).toEqual(['text', 'tool_use', 'thinking', 'text']);
  expect(content[1]).toMatchObject({ id: 'toolu_own' });
});

test('a text is streamed in pieces that never split a surrogate pair', async () => {
  const text = '🐑'.repeat(50);
  const { server } = await stage({ answers: [{ text }], chunkChars: 3 });
  const response = await send(server, 'anthropic', { body: requestFor('anthropic', { stream: true }) });
  const pieces = dataIn(await response.text())
    .map((event) => textAt(event, 'delta.text'))
    .filter((piece) => piece !== '');
  expect(pieces.length).toBeGreaterThan(20);
  expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
  expect(pieces.join('')).toBe(text);
});

test('usage may be scripted', async () => {
  const { anthropic } = await stage({
    answers: [{ text: 'hi', usage: { input: 1000, cacheRead: 5, cacheWrite: 6, output: 7 } }],
  });
  const { usage } = await anthropic.messages.create({ model: 'm', max_tokens: 9, messages: [user] });
  expect(usage).toMatchObject({
    input_tokens: 1000,
    cache_read_input_tokens: 5,
    cache_creation_input_tokens: 6,
    output_tokens: 7,
  });
});

test('a raw response is served unchanged', async () => {
  const { server } = await stage({
    answers: [
      { raw: { status: 418, contentType: 'text/x-tea', headers: { 'x-pot': 'yes' }, body: Buffer.from([1, 2, 3]) } },
    ],
  });
  const response = await send(server, 'openai', { body: requestFor('openai') });
  expect([response.status, response.headers.get('content-type'), response.headers.get('x-pot')]).toEqual([
    418,
    'text/x-tea',
    'yes',
  ]);
  expect([...new Uint8Array(await response.arrayBuffer())]).toEqual([1, 2, 3]);
});

test('an answer of many tokens is streamed whole', async () => {
  const { server } = await stage({ answers: [{ text: { repeat: 'word ', times: 50_000 } }], loop: true });
  for (const api of ['anthropic', 'openai', 'openai-chat'] as const) {
    const response = await send(server, api, { body: requestFor(api, { stream: true }) });
    const pieces = (await response.text()).match(/word /g) ?? [];
    // Responses repeats the whole text at the end: in the text, the part, the item and the response.
    expect(pieces.length).toBe(api === 'openai' ? 250_000 : 50_000);
  }
});

test('tokens come at the scripted rate', async () => {
  const { server } = await stage({ answers: [{ text: 'x'.repeat(80), tokensPerSecond: 100 }] });
  const started = performance.now();
  await (await send(server, 'openai-chat', { body: requestFor('openai-chat', { stream: true }) })).text();
  expect(performance.now() - started).toBeGreaterThan(150);
});

test('a delay comes before the response', async () => {
  const { server } = await stage({ answers: [{ text: 'late', delayMs: 120 }] });
  const started = performance.now();
  await send(server, 'openai-chat', { body: requestFor('openai-chat', { stream: true }) });
  expect(performance.now() - started).toBeGreaterThan(100);
});
