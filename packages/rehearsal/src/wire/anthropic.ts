// Anthropic Messages: reads requests and writes answers in this format.

import { isList, objectsIn, textOf, type Json, type JsonObject } from '../json.ts';
import {
  argumentPieces,
  slices,
  type Frame,
  type Refusal,
  type Reply,
  type ReplyPart,
  type Said,
  type Stop,
  type Wire,
} from './wire.ts';

export const anthropic: Wire = {
  api: 'anthropic',
  requestIdHeader: 'request-id',
  outline: (body) => ({
    model: textOf(body['model']),
    stream: body['stream'] === true,
    system: blockText(body['system']),
    tools: objectsIn(body['tools']).map((tool) => textOf(tool['name'])),
    said: objectsIn(body['messages']).flatMap(said),
  }),
  frames,
  whole: (reply) => ({
    ...message(reply),
    content: wholeBlocks(reply),
    stop_reason: STOP_REASONS[reply.stop],
    stop_details: stopDetails(reply),
    usage: usage(reply, reply.usage.output),
  }),
  errorBody: (refusal, requestId) => ({ ...errorObject(refusal), request_id: requestId }),
  errorFrame: (refusal) => frame('other', 'error', errorObject(refusal)),
};

// ── request ───────────────────────────────────────────────────────────────────────────────────

function said(message: JsonObject): Said[] {
  const content = message['content'];
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : objectsIn(content);
  if (message['role'] === 'assistant') {
    const calls = blocks.filter((block) => block['type'] === 'tool_use');
    return [{ by: 'assistant', calls: calls.map((call) => ({ id: textOf(call['id']), name: textOf(call['name']) })) }];
  }
  const results = blocks
    .filter((block) => block['type'] === 'tool_result')
    .map((block): Said => ({ by: 'tool', id: textOf(block['tool_use_id']), output: blockText(block['content']) }));
  const text = blockText(blocks);
  return text === '' ? results : [...results, { by: 'user', text }];
}

function blockText(content: Json | undefined): string {
  if (!isList(content)) return textOf(content);
  return objectsIn(content)
    .filter((block) => block['type'] === 'text')
    .map((block) => textOf(block['text']))
    .join('\n');
}

// ── response ──────────────────────────────────────────────────────────────────────────────────

const STOP_REASONS: Record<Stop, string> = {
  end: 'end_turn',
  calls: 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
  filter: 'refusal',
  pause: 'pause_turn',
  context: 'model_context_window_exceeded',
  failed: 'end_turn',
};

function* frames(reply: Reply): Generator<Frame> {
  // The start event counts the first token, as in the real API; the last event has the total.
  yield frame('start', 'message_start', {
    type: 'message_start',
    message: { ...message(reply), usage: usage(reply, 1) },
  });
  let index = 0;
  for (const part of reply.parts) {
    yield frame('other', 'content_block_start', {
      type: 'content_block_start',
      index,
      content_block: emptyBlock(part),
    });
    if (index === 0) yield frame('other', 'ping', { type: 'ping' });
    yield* deltas(part, index, reply.chunkChars);
    yield frame('other', 'content_block_stop', { type: 'content_block_stop', index });
    index += 1;
  }
  yield frame('stop', 'message_delta', {
    type: 'message_delta',
    delta: {
      stop_reason: STOP_REASONS[reply.stop],
      stop_sequence: null,
      stop_details: stopDetails(reply),
      container: null,
    },
    usage: {
      input_tokens: reply.usage.input,
      cache_creation_input_tokens: reply.usage.cacheWrite,
      cache_read_input_tokens: reply.usage.cacheRead,
      output_tokens: reply.usage.output,
      output_tokens_details: { thinking_tokens: reply.usage.reasoning },
      server_tool_use: null,
    },
  });
  yield frame('end', 'message_stop', { type: 'message_stop' });
}

function* deltas(part: ReplyPart, index: number, chunkChars: number): Generator<Frame> {
  // The fixed text around a delta is made once: an answer may have hundreds of thousands of deltas.
  const start = `{"type":"content_block_delta","index":${index},"delta":`;
  const delta = (json: string): Frame => ({ kind: 'content', event: 'content_block_delta', data: `${start}${json}}` });
  switch (part.type) {
    case 'text':
      for (const piece of part.pieces.each()) yield delta(`{"type":"text_delta","text":${JSON.stringify(piece)}}`);
      return;
    case 'thinking':
      for (const piece of slices(part.text, chunkChars))
        yield delta(`{"type":"thinking_delta","thinking":${JSON.stringify(piece)}}`);
      yield delta(`{"type":"signature_delta","signature":${JSON.stringify(part.seal)}}`);
      return;
    case 'call':
      yield delta('{"type":"input_json_delta","partial_json":""}');
      // A call without arguments streams no JSON at all.
      if (part.wireArgs === '{}') return;
      for (const piece of argumentPieces(part.wireArgs, chunkChars))
        yield delta(`{"type":"input_json_delta","partial_json":${JSON.stringify(piece)}}`);
      return;
    case 'redacted':
      return;
  }
}

function emptyBlock(part: ReplyPart): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: '', citations: null };
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' };
    case 'redacted':
      return { type: 'redacted_thinking', data: part.seal };
    case 'call':
      return {
        type: 'tool_use',
        id: part.id,
        name: part.name,
        input: typeof part.wireArgs === 'string' ? {} : part.wireArgs,
        caller: { type: 'direct' },
      };
  }
}

export function wholeBlocks(reply: Reply): readonly JsonObject[] {
  return reply.parts.map(wholeBlock);
}

function wholeBlock(part: ReplyPart): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.pieces.whole(), citations: null };
    case 'thinking':
      return { type: 'thinking', thinking: part.text, signature: part.seal };
    case 'redacted':
      return { type: 'redacted_thinking', data: part.seal };
    case 'call':
      return { type: 'tool_use', id: part.id, name: part.name, input: part.args, caller: { type: 'direct' } };
  }
}

function message(reply: Reply): JsonObject {
  return {
    id: `msg_${reply.id}`,
    type: 'message',
    role: 'assistant',
    model: reply.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    container: null,
  };
}

function stopDetails(reply: Reply): Json {
  return reply.stop === 'refusal'
    ? { type: 'refusal', category: null, explanation: 'The rehearsed model declines.' }
    : null;
}

function usage(reply: Reply, outputTokens: number): JsonObject {
  return {
    input_tokens: reply.usage.input,
    cache_creation_input_tokens: reply.usage.cacheWrite,
    cache_read_input_tokens: reply.usage.cacheRead,
    cache_creation: { ephemeral_5m_input_tokens: reply.usage.cacheWrite, ephemeral_1h_input_tokens: 0 },
    output_tokens: outputTokens,
    server_tool_use: null,
    service_tier: 'standard',
  };
}

function errorObject(refusal: Refusal): JsonObject {
  return { type: 'error', error: { type: refusal.type, message: refusal.message } };
}

function frame(kind: Frame['kind'], event: string, data: JsonObject): Frame {
  return { kind, event, data: JSON.stringify(data) };
}
