// Anthropic Messages: reads requests and writes answers in this format.

import { isRehearsalList, rehearsalObjectsIn, rehearsalText, type Json, type JsonObject } from '../json.ts';
import {
  wireArgumentPieces,
  wireTextSlices,
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
    model: rehearsalText(body['model']),
    stream: body['stream'] === true,
    system: anthropicWireBlockText(body['system']),
    tools: rehearsalObjectsIn(body['tools']).map((tool) => rehearsalText(tool['name'])),
    said: rehearsalObjectsIn(body['messages']).flatMap(saidInAnthropicWire),
  }),
  frames: anthropicWireFrames,
  whole: (reply) => ({
    ...anthropicWireMessage(reply),
    content: wholeAnthropicBlocks(reply),
    stop_reason: STOP_REASONS[reply.stop],
    stop_details: anthropicStopDetails(reply),
    usage: anthropicWireUsage(reply, reply.usage.output),
  }),
  errorBody: (refusal, requestId) => ({ ...anthropicErrorObject(refusal), request_id: requestId }),
  errorFrame: (refusal) => anthropicWireFrame('other', 'error', anthropicErrorObject(refusal)),
};

// ── request ───────────────────────────────────────────────────────────────────────────────────

function saidInAnthropicWire(message: JsonObject): Said[] {
  const content = message['content'];
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : rehearsalObjectsIn(content);
  if (message['role'] === 'assistant') {
    const calls = blocks.filter((block) => block['type'] === 'tool_use');
    return [
      {
        by: 'assistant',
        calls: calls.map((call) => ({ id: rehearsalText(call['id']), name: rehearsalText(call['name']) })),
      },
    ];
  }
  const results = blocks
    .filter((block) => block['type'] === 'tool_result')
    .map((block): Said => ({
      by: 'tool',
      id: rehearsalText(block['tool_use_id']),
      output: anthropicWireBlockText(block['content']),
    }));
  const text = anthropicWireBlockText(blocks);
  return text === '' ? results : [...results, { by: 'user', text }];
}

function anthropicWireBlockText(content: Json | undefined): string {
  if (!isRehearsalList(content)) return rehearsalText(content);
  return rehearsalObjectsIn(content)
    .filter((block) => block['type'] === 'text')
    .map((block) => rehearsalText(block['text']))
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

function* anthropicWireFrames(reply: Reply): Generator<Frame> {
  // The start event counts the first token, as in the real API; the last event has the total.
  yield anthropicWireFrame('start', 'message_start', {
    type: 'message_start',
    message: { ...anthropicWireMessage(reply), usage: anthropicWireUsage(reply, 1) },
  });
  let index = 0;
  for (const part of reply.parts) {
    yield anthropicWireFrame('other', 'content_block_start', {
      type: 'content_block_start',
      index,
      content_block: emptyAnthropicBlock(part),
    });
    if (index === 0) yield anthropicWireFrame('other', 'ping', { type: 'ping' });
    yield* anthropicWireDeltas(part, index, reply.chunkChars);
    yield anthropicWireFrame('other', 'content_block_stop', { type: 'content_block_stop', index });
    index += 1;
  }
  yield anthropicWireFrame('stop', 'message_delta', {
    type: 'message_delta',
    delta: {
      stop_reason: STOP_REASONS[reply.stop],
      stop_sequence: null,
      stop_details: anthropicStopDetails(reply),
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
  yield anthropicWireFrame('end', 'message_stop', { type: 'message_stop' });
}

function* anthropicWireDeltas(part: ReplyPart, index: number, chunkChars: number): Generator<Frame> {
  // The fixed text around a delta is made once: an answer may have hundreds of thousands of deltas.
  const start = `{"type":"content_block_delta","index":${index},"delta":`;
  const delta = (json: string): Frame => ({ kind: 'content', event: 'content_block_delta', data: `${start}${json}}` });
  switch (part.type) {
    case 'text':
      for (const piece of part.pieces.each()) yield delta(`{"type":"text_delta","text":${JSON.stringify(piece)}}`);
      return;
    case 'thinking':
      for (const piece of wireTextSlices(part.text, chunkChars))
        yield delta(`{"type":"thinking_delta","thinking":${JSON.stringify(piece)}}`);
      yield delta(`{"type":"signature_delta","signature":${JSON.stringify(part.seal)}}`);
      return;
    case 'call':
      yield delta('{"type":"input_json_delta","partial_json":""}');
      // A call without arguments streams no JSON at all.
      if (part.wireArgs === '{}') return;
      for (const piece of wireArgumentPieces(part.wireArgs, chunkChars))
        yield delta(`{"type":"input_json_delta","partial_json":${JSON.stringify(piece)}}`);
      return;
    case 'redacted':
      return;
  }
}

function emptyAnthropicBlock(part: ReplyPart): JsonObject {
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

export function wholeAnthropicBlocks(reply: Reply): readonly JsonObject[] {
  return reply.parts.map(wholeAnthropicBlock);
}

function wholeAnthropicBlock(part: ReplyPart): JsonObject {
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

function anthropicWireMessage(reply: Reply): JsonObject {
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

function anthropicStopDetails(reply: Reply): Json {
  return reply.stop === 'refusal'
    ? { type: 'refusal', category: null, explanation: 'The rehearsed model declines.' }
    : null;
}

function anthropicWireUsage(reply: Reply, outputTokens: number): JsonObject {
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

function anthropicErrorObject(refusal: Refusal): JsonObject {
  return { type: 'error', error: { type: refusal.type, message: refusal.message } };
}

function anthropicWireFrame(kind: Frame['kind'], event: string, data: JsonObject): Frame {
  return { kind, event, data: JSON.stringify(data) };
}
