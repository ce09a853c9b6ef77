// A request in each wire format.

import { toAnthropicRequest as toAnthropic } from '@drover/core/model/providers/anthropic';
import { toChatRequest as toChat } from '@drover/core/model/providers/openai-chat';
import { toResponsesRequest as toResponses } from '@drover/core/model/providers/openai-responses';
import type { ModelRequest } from '@drover/protocol/model';
import { expect, test } from 'vitest';
import { REQUEST } from './requests.ts';

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

test('an empty cache key is sent to no provider', () => {
  const request: ModelRequest = { ...REQUEST, cacheKey: '' };
  expect(toChat(request, 'https://api.openai.com/v1')).not.toHaveProperty('prompt_cache_key');
  expect(toResponses(request)).not.toHaveProperty('prompt_cache_key');
});

test('a host that only resembles OpenAI is not OpenAI', () => {
  expect(toChat(REQUEST, 'https://api.openai.com.example.org/v1')).toHaveProperty('max_tokens', 1_000);
});

test('absent parts are left out of the request', () => {
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
