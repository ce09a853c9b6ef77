// OpenAI Responses: reads requests and writes answers in this format.

import { isRehearsalList, rehearsalObjectsIn, rehearsalText, type Json, type JsonObject } from '../json.ts';
import { chatWireContentText, chatWireErrorObject } from './openai-chat.ts';
import {
  wireArgumentPieces,
  wireTextSlices,
  type Frame,
  type Reply,
  type ReplyPart,
  type Said,
  type Wire,
} from './wire.ts';

export const openaiResponses: Wire = {
  api: 'openai',
  requestIdHeader: 'x-request-id',
  outline: (body) => {
    const input = responsesWireInputItems(body['input']);
    const system = input
      .filter(({ role }) => role === 'system' || role === 'developer')
      .map(({ content }) => chatWireContentText(content));
    return {
      model: rehearsalText(body['model']),
      stream: body['stream'] === true,
      system: [rehearsalText(body['instructions']), ...system].filter((text) => text !== '').join('\n'),
      tools: rehearsalObjectsIn(body['tools']).map((tool) => rehearsalText(tool['name'])),
      said: input.flatMap(saidInResponsesWire),
    };
  },
  frames: responsesWireFrames,
  whole: (reply, request) => responsesWireClosing(reply, request, responsesWireOutput(reply, request)).response,
  errorBody: chatWireErrorObject,
  errorFrame: (refusal) =>
    responsesWireFrame('other', {
      type: 'error',
      sequence_number: 0,
      code: refusal.code ?? refusal.type,
      message: refusal.message,
      param: null,
    }),
};

// ── request ───────────────────────────────────────────────────────────────────────────────────

function responsesWireInputItems(input: Json | undefined): readonly JsonObject[] {
  return isRehearsalList(input) ? rehearsalObjectsIn(input) : [{ role: 'user', content: rehearsalText(input) }];
}

function saidInResponsesWire(item: JsonObject): Said[] {
  switch (item['type'] ?? 'message') {
    case 'message':
      if (item['role'] === 'assistant') return [{ by: 'assistant', calls: [] }];
      return item['role'] === 'user' ? [{ by: 'user', text: chatWireContentText(item['content']) }] : [];
    case 'function_call':
      return [{ by: 'assistant', calls: [{ id: rehearsalText(item['call_id']), name: rehearsalText(item['name']) }] }];
    case 'function_call_output':
      return [{ by: 'tool', id: rehearsalText(item['call_id']), output: chatWireContentText(item['output']) }];
    case 'reasoning':
      return [{ by: 'assistant', calls: [] }];
    default:
      return [];
  }
}

// ── response ──────────────────────────────────────────────────────────────────────────────────

function* responsesWireFrames(reply: Reply, request: JsonObject): Generator<Frame> {
  let sequence = 0;
  const number = (made: (sequence: number) => Frame): Frame => made(sequence++);
  const event = (kind: Frame['kind'], type: string, rest: JsonObject): Frame =>
    number((sequence_number) => responsesWireFrame(kind, { type, sequence_number, ...rest }));

  const opening = responsesWireResponse(reply, request, { status: 'in_progress' });
  yield event('start', 'response.created', { response: opening });
  yield event('start', 'response.in_progress', { response: opening });
  const items = responsesWireOutput(reply, request);
  for (const [output_index, part] of reply.parts.entries()) {
    const item = items[output_index] ?? {};
    yield event('other', 'response.output_item.added', {
      output_index,
      item: { ...item, ...emptiedResponsesItem(part) },
    });
    yield* responsesWireItemFrames(part, { reply, number, output_index, item_id: rehearsalText(item['id']) });
    yield event('other', 'response.output_item.done', { output_index, item });
  }
  const { type, response: closed } = responsesWireClosing(reply, request, items);
  yield event('end', type, { response: closed });
}

type Place = {
  readonly reply: Reply;
  readonly number: (made: (sequence: number) => Frame) => Frame;
  readonly output_index: number;
  readonly item_id: string;
};

function* responsesWireItemFrames(part: ReplyPart, { reply, number, output_index, item_id }: Place): Generator<Frame> {
  const event = (type: string, rest: JsonObject): Frame =>
    number((sequence_number) => responsesWireFrame('other', { type, sequence_number, item_id, output_index, ...rest }));
  // The fixed text of a delta is made once: an answer may have hundreds of thousands of deltas.
  const deltas = (type: string, rest: JsonObject): ((piece: string) => Frame) => {
    const tail = JSON.stringify({ item_id, output_index, ...rest }).slice(1);
    return (piece) =>
      number((sequence) => ({
        kind: 'content',
        event: type,
        data: `{"type":"${type}","sequence_number":${sequence},"delta":${JSON.stringify(piece)},${tail}`,
      }));
  };
  switch (part.type) {
    case 'text': {
      const refused = reply.stop === 'refusal';
      const place = { content_index: 0 };
      yield event('response.content_part.added', { ...place, part: responsesWireTextPart('', refused) });
      const delta = refused
        ? deltas('response.refusal.delta', place)
        : deltas('response.output_text.delta', { ...place, logprobs: [] });
      for (const piece of part.pieces.each()) yield delta(piece);
      const text = part.pieces.whole();
      yield refused
        ? event('response.refusal.done', { ...place, refusal: text })
        : event('response.output_text.done', { ...place, text, logprobs: [] });
      yield event('response.content_part.done', { ...place, part: responsesWireTextPart(text, refused) });
      return;
    }
    case 'thinking': {
      const place = { summary_index: 0 };
      yield event('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } });
      const delta = deltas('response.reasoning_summary_text.delta', place);
      for (const piece of wireTextSlices(part.text, reply.chunkChars)) yield delta(piece);
      yield event('response.reasoning_summary_text.done', { ...place, text: part.text });
      yield event('response.reasoning_summary_part.done', {
        ...place,
        part: { type: 'summary_text', text: part.text },
      });
      return;
    }
    case 'call': {
      const delta = deltas('response.function_call_arguments.delta', {});
      for (const piece of wireArgumentPieces(part.wireArgs, reply.chunkChars)) yield delta(piece);
      yield event('response.function_call_arguments.done', { arguments: part.wireArgs });
      return;
    }
    case 'redacted':
      return;
  }
}

/** Fields that an item lacks when it is announced. */
function emptiedResponsesItem(part: ReplyPart): JsonObject {
  switch (part.type) {
    case 'text':
      return { status: 'in_progress', content: [] };
    case 'call':
      return { status: 'in_progress', arguments: '' };
    case 'thinking':
    case 'redacted':
      return { summary: [] };
  }
}

function responsesWireOutput(reply: Reply, request: JsonObject): readonly JsonObject[] {
  const sealed = isRehearsalList(request['include']) && request['include'].includes('reasoning.encrypted_content');
  const cutShort = reply.stop === 'length' || reply.stop === 'context' || reply.stop === 'filter';
  return reply.parts.map((part, index): JsonObject => {
    const status = cutShort && index === reply.parts.length - 1 ? 'incomplete' : 'completed';
    const id = responsesWireOutputId(reply, index);
    switch (part.type) {
      case 'text':
        return {
          id,
          type: 'message',
          status,
          content: [responsesWireTextPart(part.pieces.whole(), reply.stop === 'refusal')],
          role: 'assistant',
        };
      case 'thinking':
        return {
          id,
          type: 'reasoning',
          summary: [{ type: 'summary_text', text: part.text }],
          ...(sealed && { encrypted_content: part.seal }),
        };
      case 'redacted':
        return { id, type: 'reasoning', summary: [], ...(sealed && { encrypted_content: part.seal }) };
      case 'call':
        return {
          id,
          type: 'function_call',
          status,
          arguments: part.wireArgs,
          call_id: part.id,
          name: part.name,
        };
    }
  });
}

const ID_PREFIXES: Record<ReplyPart['type'], string> = { text: 'msg_', thinking: 'rs_', redacted: 'rs_', call: 'fc_' };

/** The id of an output item. */
export function responsesWireOutputId(reply: Reply, index: number): string {
  const part = reply.parts[index];
  return `${part === undefined ? '' : ID_PREFIXES[part.type]}${reply.id}${index.toString(16).padStart(4, '0')}`;
}

function responsesWireTextPart(text: string, refused: boolean): JsonObject {
  return refused ? { type: 'refusal', refusal: text } : { type: 'output_text', annotations: [], logprobs: [], text };
}

function responsesWireClosing(
  reply: Reply,
  request: JsonObject,
  items: readonly JsonObject[],
): { readonly type: string; readonly response: JsonObject } {
  const { input, cacheRead, cacheWrite, output: produced, reasoning } = reply.usage;
  const prompt = input + cacheRead + cacheWrite;
  const usage = {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: produced,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + produced,
  };
  const ended = (status: string, rest: JsonObject) => ({
    type: `response.${status}`,
    response: responsesWireResponse(reply, request, { status, output: items, usage, ...rest }),
  });
  switch (reply.stop) {
    case 'length':
    case 'context':
      return ended('incomplete', { incomplete_details: { reason: 'max_output_tokens' } });
    case 'filter':
      return ended('incomplete', { incomplete_details: { reason: 'content_filter' } });
    case 'failed':
      return ended('failed', {
        error: { code: 'server_error', message: 'The model failed to generate a response.' },
        usage: null,
      });
    case 'end':
    case 'calls':
    case 'refusal':
    case 'pause':
      return ended('completed', { completed_at: reply.createdSeconds });
  }
}

function responsesWireResponse(reply: Reply, request: JsonObject, rest: JsonObject): JsonObject {
  return {
    id: `resp_${reply.id}`,
    object: 'response',
    created_at: reply.createdSeconds,
    status: 'in_progress',
    background: false,
    completed_at: null,
    error: null,
    incomplete_details: null,
    instructions: request['instructions'] ?? null,
    max_output_tokens: request['max_output_tokens'] ?? null,
    max_tool_calls: null,
    model: reply.model,
    output: [],
    parallel_tool_calls: request['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    prompt_cache_key: request['prompt_cache_key'] ?? null,
    reasoning: request['reasoning'] ?? { effort: null, summary: null },
    service_tier: 'default',
    store: request['store'] ?? true,
    temperature: 1,
    text: { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: request['tool_choice'] ?? 'auto',
    tools: request['tools'] ?? [],
    top_p: 1,
    truncation: 'disabled',
    usage: null,
    metadata: {},
    ...rest,
  };
}

function responsesWireFrame(kind: Frame['kind'], data: JsonObject): Frame {
  return { kind, event: rehearsalText(data['type']), data: JSON.stringify(data) };
}
