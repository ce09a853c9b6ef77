// What each format makes of a request, and that what only a provider understands comes back to it.

import { toWire as toAnthropic } from '@drover/core/model/anthropic';
import { toWire as toChat } from '@drover/core/model/openai-chat';
import { toWire as toResponses } from '@drover/core/model/openai-responses';
import type { Message, ModelRequest, RequestMessage, WireLimits } from '@drover/core/model/protocol';
import { buildRequest } from '@drover/core/model/request';
import { describe, expect, test } from 'vitest';
import { decode, finished, providers, readAll, recording, source, type Api } from './recordings.ts';

const IMAGE = { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' } as const;

const REQUEST: ModelRequest = {
  model: 'model',
  system: 'You drive cattle.',
  tools: [{ name: 'read', description: 'Read a file.', schema: { type: 'object', properties: {} } }],
  messages: [
    { role: 'user', results: [], content: [{ type: 'text', text: 'go' }, IMAGE], cacheMark: false },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'I look.' },
        { type: 'tool_call', id: 'call_1', name: 'read', args: { path: 'a' } },
        { type: 'tool_call', id: 'call_2', name: 'read', args: {} },
      ],
    },
    {
      role: 'user',
      results: [
        { id: 'call_1', name: 'read', output: 'text', isError: false },
        { id: 'call_2', name: 'read', output: 'no such file', isError: true, images: [IMAGE] },
      ],
      content: [{ type: 'text', text: 'and?' }],
      cacheMark: true,
    },
  ],
  outputTokensMax: 1_000,
  cacheKey: 'k'.repeat(70),
};

test('Anthropic', () => {
  expect(toAnthropic(REQUEST)).toMatchInlineSnapshot(`
    {
      "max_tokens": 1000,
      "messages": [
        {
          "content": [
            {
              "text": "go",
              "type": "text",
            },
            {
              "source": {
                "data": "iVBORw0KGgo=",
                "media_type": "image/png",
                "type": "base64",
              },
              "type": "image",
            },
          ],
          "role": "user",
        },
        {
          "content": [
            {
              "text": "I look.",
              "type": "text",
            },
            {
              "id": "call_1",
              "input": {
                "path": "a",
              },
              "name": "read",
              "type": "tool_use",
            },
            {
              "id": "call_2",
              "input": {},
              "name": "read",
              "type": "tool_use",
            },
          ],
          "role": "assistant",
        },
        {
          "content": [
            {
              "content": "text",
              "tool_use_id": "call_1",
              "type": "tool_result",
            },
            {
              "content": [
                {
                  "text": "no such file",
                  "type": "text",
                },
                {
                  "source": {
                    "data": "iVBORw0KGgo=",
                    "media_type": "image/png",
                    "type": "base64",
                  },
                  "type": "image",
                },
              ],
              "is_error": true,
              "tool_use_id": "call_2",
              "type": "tool_result",
            },
            {
              "cache_control": {
                "type": "ephemeral",
              },
              "text": "and?",
              "type": "text",
            },
          ],
          "role": "user",
        },
      ],
      "model": "model",
      "stream": true,
      "system": [
        {
          "cache_control": {
            "type": "ephemeral",
          },
          "text": "You drive cattle.",
          "type": "text",
        },
      ],
      "tools": [
        {
          "description": "Read a file.",
          "input_schema": {
            "properties": {},
            "type": "object",
          },
          "name": "read",
        },
      ],
    }
  `);
});

test('Responses', () => {
  expect(toResponses(REQUEST)).toMatchInlineSnapshot(`
    {
      "include": [
        "reasoning.encrypted_content",
      ],
      "input": [
        {
          "content": [
            {
              "text": "go",
              "type": "input_text",
            },
            {
              "detail": "auto",
              "image_url": "data:image/png;base64,iVBORw0KGgo=",
              "type": "input_image",
            },
          ],
          "role": "user",
        },
        {
          "content": "I look.",
          "role": "assistant",
        },
        {
          "arguments": "{"path":"a"}",
          "call_id": "call_1",
          "name": "read",
          "type": "function_call",
        },
        {
          "arguments": "{}",
          "call_id": "call_2",
          "name": "read",
          "type": "function_call",
        },
        {
          "call_id": "call_1",
          "output": "text",
          "type": "function_call_output",
        },
        {
          "call_id": "call_2",
          "output": [
            {
              "text": "no such file",
              "type": "input_text",
            },
            {
              "detail": "auto",
              "image_url": "data:image/png;base64,iVBORw0KGgo=",
              "type": "input_image",
            },
          ],
          "type": "function_call_output",
        },
        {
          "content": [
            {
              "text": "and?",
              "type": "input_text",
            },
          ],
          "role": "user",
        },
      ],
      "instructions": "You drive cattle.",
      "max_output_tokens": 1000,
      "model": "model",
      "parallel_tool_calls": true,
      "prompt_cache_key": "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk",
      "store": false,
      "stream": true,
      "tools": [
        {
          "description": "Read a file.",
          "name": "read",
          "parameters": {
            "properties": {},
            "type": "object",
          },
          "strict": false,
          "type": "function",
        },
      ],
    }
  `);
});

test('Chat, to a compatible server', () => {
  expect(toChat(REQUEST, 'http://127.0.0.1:8080/v1')).toMatchInlineSnapshot(`
    {
      "max_tokens": 1000,
      "messages": [
        {
          "content": "You drive cattle.",
          "role": "system",
        },
        {
          "content": [
            {
              "text": "go",
              "type": "text",
            },
            {
              "image_url": {
                "url": "data:image/png;base64,iVBORw0KGgo=",
              },
              "type": "image_url",
            },
          ],
          "role": "user",
        },
        {
          "content": "I look.",
          "role": "assistant",
          "tool_calls": [
            {
              "function": {
                "arguments": "{"path":"a"}",
                "name": "read",
              },
              "id": "call_1",
              "type": "function",
            },
            {
              "function": {
                "arguments": "{}",
                "name": "read",
              },
              "id": "call_2",
              "type": "function",
            },
          ],
        },
        {
          "content": "text",
          "role": "tool",
          "tool_call_id": "call_1",
        },
        {
          "content": "no such file",
          "role": "tool",
          "tool_call_id": "call_2",
        },
        {
          "content": [
            {
              "text": "What read showed:",
              "type": "text",
            },
            {
              "image_url": {
                "url": "data:image/png;base64,iVBORw0KGgo=",
              },
              "type": "image_url",
            },
            {
              "text": "and?",
              "type": "text",
            },
          ],
          "role": "user",
        },
      ],
      "model": "model",
      "stream": true,
      "stream_options": {
        "include_usage": true,
      },
      "tools": [
        {
          "function": {
            "description": "Read a file.",
            "name": "read",
            "parameters": {
              "properties": {},
              "type": "object",
            },
          },
          "type": "function",
        },
      ],
    }
  `);
});

test('Chat, to OpenAI itself', () => {
  const { max_tokens, max_completion_tokens, prompt_cache_key } = toChat(REQUEST, 'https://api.openai.com/v1');
  expect({ max_tokens, max_completion_tokens, prompt_cache_key }).toEqual({
    max_tokens: undefined,
    max_completion_tokens: 1_000,
    prompt_cache_key: 'k'.repeat(64),
  });
});

test('a host that only looks like OpenAI is not OpenAI', () => {
  expect(toChat(REQUEST, 'https://api.openai.com.example.org/v1')).toHaveProperty('max_tokens', 1_000);
});

test('what there is none of is left out', () => {
  const bare: ModelRequest = { ...REQUEST, system: '', tools: [] };
  for (const wire of [toAnthropic(bare), toResponses(bare), toChat(bare, 'http://host/')]) {
    expect(wire).not.toHaveProperty('tools');
    expect(wire).not.toHaveProperty('system');
    expect(wire).not.toHaveProperty('instructions');
  }
});

test.each([
  ['gpt-4.1', false],
  ['gpt-5-chat-latest', false],
  ['gpt-5', true],
  ['o3', true],
  ['qwen3', true],
])('the reasoning of %s is asked for: %s', (model, isAsked) => {
  expect('include' in toResponses({ ...REQUEST, model })).toBe(isAsked);
});

describe('what a provider would not take back is left out', () => {
  const answering = (...content: Extract<RequestMessage, { role: 'assistant' }>['content']): ModelRequest => ({
    ...REQUEST,
    messages: [{ role: 'assistant', content }],
  });
  const text = { type: 'text', text: 'Done.' } as const;
  const sealed = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' };

  test('Anthropic: a block of a type it only sends', () => {
    const request = answering({ type: 'native', native: { type: 'fallback', from: 'a', to: 'b' } }, text);
    expect(toAnthropic(request).messages[0]?.content).toEqual([{ type: 'text', text: 'Done.' }]);
  });

  test('Anthropic: thinking that nobody signed', () => {
    const request = answering({ type: 'thinking', text: 'Hm.' }, text);
    expect(toAnthropic(request).messages[0]?.content).toEqual([{ type: 'text', text: 'Done.' }]);
  });

  test('Responses: reasoning that led to nothing', () => {
    const request = answering(text, { type: 'native', native: sealed });
    expect(toResponses(request).input).toEqual([{ role: 'assistant', content: 'Done.' }]);
  });

  test('Responses: an item of a type it only sends', () => {
    const request = answering({ type: 'native', native: { type: 'program', id: 'p_1' } }, text);
    expect(toResponses(request).input).toEqual([{ role: 'assistant', content: 'Done.' }]);
  });

  test('Chat: an answer that said nothing', () => {
    expect(toChat(answering({ type: 'thinking', text: 'Hm.' }), 'http://host/').messages).toEqual([
      { role: 'system', content: 'You drive cattle.' },
    ]);
  });
});

describe('what a provider said comes back to it', () => {
  /** The wire form of the recording's answer, as the next request holds it. */
  async function returned(api: Api, name: string, model: string = source.model): Promise<unknown> {
    const { message } = finished(await readAll(api, decode([recording(api, name)])));
    const { limits } = providers[api]({ id: source.provider, apiKey: 'k', timeouts: NONE });
    const messages: readonly Message[] = [says('go'), message, says('and?')];
    const request = requestOf(messages, model, limits);
    switch (api) {
      case 'anthropic':
        return toAnthropic(request).messages[1]?.content;
      case 'openai-responses':
        return (toResponses(request).input as readonly unknown[]).slice(1, -1);
      case 'openai-chat':
        return toChat(request, 'http://host/').messages.find(({ role }) => role === 'assistant');
    }
  }

  const NONE = { headersMs: 1, firstByteMs: 1, silenceMs: 1, progressMs: 1 };
  const says = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
  const requestOf = (messages: readonly Message[], model: string, limits: WireLimits): ModelRequest =>
    buildRequest({
      provider: { id: source.provider, limits },
      model,
      system: '',
      tools: [],
      messages,
      outputTokensMax: 1,
      cacheKey: '',
    });

  test('Anthropic: signed thinking', async () => {
    expect(await returned('anthropic', 'thinking-signed')).toEqual([
      { type: 'thinking', thinking: 'Which gate is open?', signature: 'c2lnbmF0dXJl' },
      { type: 'text', text: 'The north gate.' },
    ]);
  });

  test('Anthropic: thinking whose text was not sent', async () => {
    expect(await returned('anthropic', 'thinking-hidden')).toEqual([
      { type: 'thinking', thinking: '', signature: 'aGlkZGVu' },
      { type: 'tool_use', id: 'toolu_01', name: 'list', input: {} },
    ]);
  });

  test('Anthropic: redacted thinking', async () => {
    expect(await returned('anthropic', 'thinking-redacted')).toEqual([
      { type: 'redacted_thinking', data: 'b3BhcXVl' },
      { type: 'text', text: 'Done.' },
    ]);
  });

  test('Anthropic: the blocks of a tool on the server, and what was cited', async () => {
    expect(await returned('anthropic', 'server-tool')).toEqual([
      { type: 'server_tool_use', id: 'srvtoolu_01', name: 'web_search', input: { query: 'drovers' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_01',
        content: [
          {
            type: 'web_search_result',
            url: 'https://example.com/',
            title: 'Droving',
            encrypted_content: 'ZW5j',
            page_age: null,
          },
        ],
      },
      {
        type: 'text',
        text: 'Drovers move cattle.',
        citations: [
          {
            type: 'web_search_result_location',
            url: 'https://example.com/',
            title: 'Droving',
            encrypted_index: 'aWR4',
            cited_text: 'move',
          },
        ],
      },
    ]);
  });

  test('Responses: reasoning with its encrypted content, right before what it led to', async () => {
    expect(await returned('openai-responses', 'reasoning-encrypted')).toEqual([
      {
        id: 'rs_01',
        type: 'reasoning',
        summary: [
          { type: 'summary_text', text: '**Which gate**' },
          { type: 'summary_text', text: 'The north one.' },
        ],
        encrypted_content: 'gAAAA',
      },
      { type: 'function_call', call_id: 'call_01', name: 'list', arguments: '{}', id: 'fc_01' },
      {
        type: 'function_call_output',
        call_id: 'call_01',
        output: 'Interrupted: there is no result of this call, and it may or may not have run.',
      },
    ]);
  });

  test('Responses: the id and the phase of a message', async () => {
    expect(await returned('openai-responses', 'reasoning-hidden')).toEqual([
      { id: 'rs_01', type: 'reasoning', summary: [], encrypted_content: 'gAAAA' },
      {
        type: 'message',
        role: 'assistant',
        id: 'msg_01',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
        phase: 'final_answer',
      },
    ]);
  });

  test('Responses: the texts of one item stay one item', async () => {
    expect(await returned('openai-responses', 'items-only-when-done')).toMatchObject([
      { type: 'message', id: 'msg_01', content: [{ text: 'All ' }, { text: 'at once.' }] },
      { type: 'function_call' },
      { type: 'function_call_output' },
    ]);
  });

  test('Responses: reasoning that can’t be found again is left out', async () => {
    expect(await returned('openai-responses', 'reasoning-open')).toMatchObject([{ type: 'message', id: 'msg_01' }]);
  });

  test('Chat: reasoning in the field in which it came', async () => {
    expect(await returned('openai-chat', 'reasoning-content')).toEqual({
      role: 'assistant',
      content: 'The north one.',
      reasoning_content: 'Which gate?',
    });
  });

  test('Chat: reasoning in details, in one piece', async () => {
    expect(await returned('openai-chat', 'reasoning-details')).toEqual({
      role: 'assistant',
      content: 'North.',
      reasoning_details: [
        {
          type: 'reasoning.text',
          text: 'Which gate?',
          format: 'anthropic-claude-v1',
          index: 0,
          signature: 'c2ln',
        },
      ],
    });
  });

  test('Chat: plain reasoning is nobody’s but the reader’s', async () => {
    expect(await returned('openai-chat', 'reasoning')).not.toHaveProperty('reasoning');
  });

  test.each<[Api, string, unknown]>([
    ['anthropic', 'thinking-signed', [{ type: 'text', text: 'The north gate.' }]],
    ['anthropic', 'thinking-redacted', [{ type: 'text', text: 'Done.' }]],
    ['openai-responses', 'reasoning-hidden', [{ role: 'assistant', content: 'Done.' }]],
    ['openai-chat', 'reasoning-content', { role: 'assistant', content: 'The north one.' }],
  ])('%s: %s, and not to another model', async (api, name, wire) => {
    expect(await returned(api, name, 'another')).toEqual(wire);
  });
});
