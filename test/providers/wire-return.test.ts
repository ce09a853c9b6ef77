// Parts of an answer that return to their provider, and parts that are left out.

import { toAnthropicRequest as toAnthropic } from '@drover/core/model/providers/anthropic';
import { toChatRequest as toChat } from '@drover/core/model/providers/openai-chat';
import { toResponsesRequest as toResponses } from '@drover/core/model/providers/openai-responses';
import type { Message } from '@drover/protocol/messages';
import type { ModelRequest, RequestMessage } from '@drover/protocol/model';
import type { WireLimits } from '@drover/core/model/provider';
import { buildModelRequest } from '@drover/core/model/request';
import { describe, expect, test } from 'vitest';
import { decode, finished, providers, readAll, recording, source, type Api } from './recordings.ts';
import { REQUEST } from './requests.ts';

describe('content that a provider would not take back is left out', () => {
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

  test('Anthropic: unsigned thinking', () => {
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

  test('Chat: an empty answer', () => {
    expect(toChat(answering({ type: 'thinking', text: 'Hm.' }), 'http://host/').messages).toEqual([
      { role: 'system', content: 'You drive cattle.' },
    ]);
  });
});

describe('content of a provider returns to it', () => {
  /** The recorded answer in wire form, as the next request contains it. */
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
    buildModelRequest({
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

  test('Anthropic: blocks and citations of a server tool', async () => {
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

  test('Responses: reasoning with encrypted content, right before its item', async () => {
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

  test('Responses: reasoning without a stored item is left out', async () => {
    expect(await returned('openai-responses', 'reasoning-open')).toMatchObject([{ type: 'message', id: 'msg_01' }]);
  });

  test('Chat: reasoning in its original field', async () => {
    expect(await returned('openai-chat', 'reasoning-content')).toEqual({
      role: 'assistant',
      content: 'The north one.',
      reasoning_content: 'Which gate?',
    });
  });

  test('Chat: reasoning details in one piece', async () => {
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

  test('Chat: plain reasoning is for the reader only', async () => {
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
