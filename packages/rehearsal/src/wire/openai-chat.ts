// OpenAI Chat Completions: reads requests and writes answers in this format.

import {
  isRehearsalList,
  isRehearsalObject,
  rehearsalObjectsIn,
  rehearsalText,
  type Json,
  type JsonObject,
} from '../json.ts';
import {
  wireArgumentPieces,
  type Frame,
  type Refusal,
  type Reply,
  type ReplyPart,
  type Said,
  type Stop,
  type Wire,
} from './wire.ts';

export const openaiChat: Wire = {
  api: 'openai-chat',
  requestIdHeader: 'x-request-id',
  outline: (body) => ({
    model: rehearsalText(body['model']),
    stream: body['stream'] === true,
    system: rehearsalObjectsIn(body['messages'])
      .filter(({ role }) => role === 'system' || role === 'developer')
      .map(({ content }) => chatWireContentText(content))
      .join('\n'),
    tools: rehearsalObjectsIn(body['tools']).map((tool) =>
      isRehearsalObject(tool['function']) ? rehearsalText(tool['function']['name']) : '',
    ),
    said: rehearsalObjectsIn(body['messages']).flatMap(saidInChatWire),
  }),
  frames: chatWireFrames,
  whole: wholeChatWireAnswer,
  errorBody: chatWireErrorObject,
  errorFrame: (refusal) => ({ kind: 'other', data: JSON.stringify(chatWireErrorObject(refusal)) }),
};

// ── request ───────────────────────────────────────────────────────────────────────────────────

function saidInChatWire(message: JsonObject): Said[] {
  const text = chatWireContentText(message['content']);
  switch (message['role']) {
    case 'assistant': {
      const calls = rehearsalObjectsIn(message['tool_calls']);
      return [
        {
          by: 'assistant',
          calls: calls.map((call) => ({
            id: rehearsalText(call['id']),
            name: isRehearsalObject(call['function']) ? rehearsalText(call['function']['name']) : '',
          })),
        },
      ];
    }
    case 'tool':
      return [{ by: 'tool', id: rehearsalText(message['tool_call_id']), output: text }];
    case 'user':
      return [{ by: 'user', text }];
    default:
      return [];
  }
}

export function chatWireContentText(content: Json | undefined): string {
  if (!isRehearsalList(content)) return rehearsalText(content);
  return rehearsalObjectsIn(content)
    .map((part) => rehearsalText(part['text']))
    .join('\n');
}

// ── response ──────────────────────────────────────────────────────────────────────────────────

const FINISH_REASONS: Record<Stop, string> = {
  end: 'stop',
  calls: 'tool_calls',
  length: 'length',
  refusal: 'stop',
  filter: 'content_filter',
  pause: 'stop',
  context: 'length',
  failed: 'stop',
};

function* chatWireFrames(reply: Reply, request: JsonObject): Generator<Frame> {
  const options = request['stream_options'];
  const wantsUsage = isRehearsalObject(options) && options['include_usage'] === true;
  const head = JSON.stringify({
    id: `chatcmpl-${reply.id}`,
    object: 'chat.completion.chunk',
    created: reply.createdSeconds,
    model: reply.model,
    service_tier: 'default',
    system_fingerprint: FINGERPRINT,
  }).slice(0, -1);
  const tail = wantsUsage ? ',"usage":null}' : '}';
  const chunk = (kind: Frame['kind'], delta: string, finish: string): Frame => ({
    kind,
    data: `${head},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]${tail}`,
  });

  const content = reply.stop === 'refusal' ? 'refusal' : 'content';
  yield chunk(
    'start',
    JSON.stringify({ role: 'assistant', content: hasChatWireText(reply) ? '' : null, refusal: null }),
    'null',
  );
  let index = 0;
  for (const part of reply.parts) {
    // Chat Completions hides reasoning; only compatible servers show it, and those are faults here.
    if (part.type === 'text')
      for (const piece of part.pieces.each()) yield chunk('content', `{"${content}":${JSON.stringify(piece)}}`, 'null');
    if (part.type !== 'call') continue;
    const whole = typeof part.wireArgs === 'string' ? '' : part.wireArgs;
    yield chunk(
      'content',
      JSON.stringify({
        tool_calls: [{ index, id: part.id, type: 'function', function: { name: part.name, arguments: whole } }],
      }),
      'null',
    );
    for (const piece of wireArgumentPieces(part.wireArgs, reply.chunkChars))
      yield chunk(
        'content',
        `{"tool_calls":[{"index":${index},"function":{"arguments":${JSON.stringify(piece)}}}]}`,
        'null',
      );
    index += 1;
  }
  yield chunk('stop', '{}', JSON.stringify(FINISH_REASONS[reply.stop]));
  if (wantsUsage)
    yield { kind: 'other', data: `${head},"choices":[],"usage":${JSON.stringify(chatWireUsage(reply))}}` };
  yield { kind: 'end', data: '[DONE]' };
}

function wholeChatWireAnswer(reply: Reply): JsonObject {
  const text = hasChatWireText(reply) ? wholeChatWireText(reply.parts) : null;
  const calls = reply.parts.flatMap((part) =>
    part.type === 'call'
      ? [{ id: part.id, type: 'function', function: { name: part.name, arguments: part.wireArgs } }]
      : [],
  );
  return {
    id: `chatcmpl-${reply.id}`,
    object: 'chat.completion',
    created: reply.createdSeconds,
    model: reply.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: reply.stop === 'refusal' ? null : text,
          refusal: reply.stop === 'refusal' ? text : null,
          annotations: [],
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        logprobs: null,
        finish_reason: FINISH_REASONS[reply.stop],
      },
    ],
    usage: chatWireUsage(reply),
    service_tier: 'default',
    system_fingerprint: FINGERPRINT,
  };
}

const FINGERPRINT = 'fp_rehearsal';

function hasChatWireText(reply: Reply): boolean {
  return reply.parts.some(({ type }) => type === 'text');
}

function wholeChatWireText(parts: readonly ReplyPart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.pieces.whole() : '')).join('');
}

function chatWireUsage({ usage }: Reply): JsonObject {
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

export function chatWireErrorObject(refusal: Refusal): JsonObject {
  return {
    error: { message: refusal.message, type: refusal.type, param: refusal.param ?? null, code: refusal.code ?? null },
  };
}
