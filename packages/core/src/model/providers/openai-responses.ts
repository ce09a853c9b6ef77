// Provider for OpenAI's Responses API, with nothing stored on the server.
//
// Requests send back unchanged: reasoning with its encrypted content, and the ids and phases of messages and calls.
// Items are read from `output_item.done`, because the final `output` may be empty. The final `output` is used only
// if the server sent no items.

import { OpenAI } from 'openai/client';
import type {
  ResponseCreateParamsStreaming,
  ResponseInputContent,
  ResponseInputItem,
} from 'openai/resources/responses/responses';
import { DroverError } from '../../errors.ts';
import type { JsonObject } from '@drover/protocol/json';
import type { ImagePart, TextPart, ToolResult } from '@drover/protocol/messages';
import type { ModelEvent, ModelRequest, RequestMessage, RequestPart } from '@drover/protocol/model';
import type { Provider, ProviderOptions, WireLimits } from '../provider.ts';
import { assembleWireAnswer, Assembly, type WireDialect, type Ending, type Source } from '../wire/assembly.ts';
import { looseCount, looseObject, looseObjects, looseText } from '../wire/loose.ts';
import { httpAccountOf, failureOfHttpError } from '../wire/http/rejection.ts';
import type { Frames, SseFrame } from '../wire/http/sse.ts';
import { openHttpAnswer, httpSdkOptions } from '../wire/http/transport.ts';
import { estimatePromptTokens } from '../wire/usage.ts';

const LIMITS: WireLimits = {
  callIdPattern: /^[a-zA-Z0-9_-]+$/,
  callIdCharsMax: 64,
  cacheMarksMax: 0,
  leadingTypes: ['reasoning'],
  bodyBytesMax: 32 * 1024 * 1024,
  imageBytesMax: 5 * 1024 * 1024,
};
const USUAL = { keyEnv: 'OPENAI_API_KEY', baseUrl: 'https://api.openai.com/v1' };
const CACHE_KEY_CHARS_MAX = 64;
const OUTPUT_TOKENS_MIN = 16; // the API refuses smaller limits

// ── request ───────────────────────────────────────────────────────────────────────────────────

// These models never reason, and the API refuses a request for their reasoning.
const PLAIN_MODELS = /^(ft:)?(gpt-3|gpt-4|chatgpt|gpt-5[\w.]*-chat)/;

/** Standalone item types that the API accepts back. */
const RETURNABLE: ReadonlySet<string> = new Set<NonNullable<ResponseInputItem['type']>>([
  'reasoning',
  'compaction',
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
]);

export function toResponsesRequest(request: ModelRequest): ResponseCreateParamsStreaming {
  const { model, system, tools, messages, outputTokensMax, cacheKey, sampling = {} } = request;
  return {
    model,
    ...(system.trim() !== '' && { instructions: system }),
    input: messages.flatMap(toResponsesItems),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, schema }) => ({
        type: 'function' as const,
        name,
        description,
        parameters: schema as Record<string, unknown>,
        strict: false,
      })),
      parallel_tool_calls: true,
    }),
    max_output_tokens: Math.max(OUTPUT_TOKENS_MIN, outputTokensMax),
    ...(cacheKey !== '' && { prompt_cache_key: cacheKey.slice(0, CACHE_KEY_CHARS_MAX) }),
    ...(sampling.temperature !== undefined && { temperature: sampling.temperature }),
    ...(sampling.topP !== undefined && { top_p: sampling.topP }),
    store: false,
    ...(!PLAIN_MODELS.test(model) && { include: ['reasoning.encrypted_content' as const] }),
    stream: true,
  };
}

function toResponsesItems(message: RequestMessage): readonly ResponseInputItem[] {
  if (message.role === 'user') {
    const content = message.content.map(toResponsesInput);
    return [
      ...message.results.map(toResponsesOutput),
      ...(content.length > 0 ? [{ role: 'user' as const, content }] : []),
    ];
  }
  const items: ResponseInputItem[] = [];
  for (const part of message.content) addResponsesPart(items, part);
  // The API refuses reasoning that is not directly followed by its message or call.
  while (items.at(-1)?.type === 'reasoning') items.pop();
  return items;
}

function toResponsesInput(part: TextPart | ImagePart): ResponseInputContent {
  if (part.type === 'text') return { type: 'input_text', text: part.text };
  return { type: 'input_image', image_url: `data:${part.mediaType};base64,${part.data}`, detail: 'auto' };
}

function toResponsesOutput({ id, output, images = [] }: ToolResult): ResponseInputItem.FunctionCallOutput {
  const shown =
    images.length === 0 ? output : [{ type: 'input_text' as const, text: output }, ...images.map(toResponsesInput)];
  return { type: 'function_call_output', call_id: id, output: shown };
}

function addResponsesPart(items: ResponseInputItem[], part: RequestPart): void {
  const native = looseObject(part.native) ?? {};
  const id = looseText(native['id']);
  switch (part.type) {
    case 'text':
      addResponsesText(items, part.text, native);
      return;
    case 'tool_call': {
      const { id: call_id, name, args } = part;
      const call = { type: 'function_call' as const, call_id, name, arguments: JSON.stringify(args) };
      items.push(id === '' ? call : { ...call, id });
      return;
    }
    case 'thinking':
    case 'native':
      if (RETURNABLE.has(looseText(native['type']))) items.push(native as unknown as ResponseInputItem);
  }
}

/** Adds a text. Texts of one message item go back as one item. */
function addResponsesText(items: ResponseInputItem[], text: string, native: JsonObject): void {
  const { id, phase } = native;
  if (typeof id !== 'string') {
    items.push({ role: 'assistant', content: text });
    return;
  }
  const content = { type: 'output_text' as const, text, annotations: [] };
  const last = items.at(-1);
  if (last !== undefined && 'id' in last && last.id === id && last.type === 'message' && last.role === 'assistant') {
    last.content.push(content);
    return;
  }
  items.push({
    type: 'message',
    role: 'assistant',
    id,
    status: 'completed',
    content: [content],
    ...((phase === 'commentary' || phase === 'final_answer') && { phase }),
  });
}

// ── response ──────────────────────────────────────────────────────────────────────────────────

export function readResponsesAnswer(frames: Frames, source: Source): AsyncIterable<ModelEvent> {
  const assembly = new Assembly(source);
  return assembleWireAnswer(frames, assembly, new ResponsesDialect(assembly, source));
}

// Events that repeat what the end of their item or part says.
const SILENT =
  /^(keepalive|response\.(in_progress|queued|content_part\.|output_text\.annotation|reasoning_\w+_part\.done|\w+_call[._]|mcp_))/;

class ResponsesDialect implements WireDialect {
  readonly #assembly: Assembly;
  readonly #source: Source;
  readonly #slots = new Map<number | string, number>(); // output index or item id -> item number
  #phase: 'before' | 'response' | 'after' = 'before';
  #started = 0; // items
  #finished = 0;
  #ending: Ending | undefined;
  #refusal = '';

  constructor(assembly: Assembly, source: Source) {
    this.#assembly = assembly;
    this.#source = source;
  }

  take(event: JsonObject): void {
    const type = looseText(event['type']);
    if (this.#phase === 'after' && type !== 'response.created') return this.#assembly.ignore();
    // Some servers change an item's id between events, so the output index is preferred.
    const place = looseCount(event['output_index']) ?? looseText(event['item_id']);
    if (type === 'response.output_item.added') return this.#startItem(place, looseObject(event['item']) ?? {});
    const at = this.#slot(place);
    const part = `${at}:${looseCount(event['content_index']) ?? 0}`;
    switch (type) {
      case 'response.created':
        if (this.#phase === 'after') this.#assembly.ignore();
        this.#phase = 'response';
        return this.#assembly.start();
      case 'response.output_text.delta':
        return this.#write(part, 'text', looseText(event['delta']));
      case 'response.output_text.done':
        this.#assembly.complete(part, looseText(event['text']));
        return this.#assembly.close(part);
      case 'response.refusal.delta':
        this.#assembly.keep(looseText(event['delta']));
        this.#refusal += looseText(event['delta']);
        return;
      case 'response.refusal.done':
        this.#refusal = looseText(event['refusal']) || this.#refusal;
        return;
      case 'response.reasoning_summary_part.added':
        if (this.#assembly.textOf(`${at}:thinking`) !== '') this.#write(`${at}:thinking`, 'thinking', '\n\n');
        return;
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#write(`${at}:thinking`, 'thinking', looseText(event['delta']));
      case 'response.reasoning_summary_text.done':
      case 'response.reasoning_text.done':
        return;
      case 'response.function_call_arguments.delta':
        return this.#assembly.write(at, looseText(event['delta']));
      case 'response.function_call_arguments.done':
        return this.#assembly.complete(at, looseText(event['arguments']));
      case 'response.output_item.done':
        return this.#finishItem(at, looseObject(event['item']) ?? {});
      case 'response.completed':
      case 'response.incomplete':
        return this.#finish(looseObject(event['response']) ?? {});
      case 'response.failed':
      case 'response.cancelled':
      case 'error':
        return this.#fail(event);
      default:
        if (!SILENT.test(type)) this.#assembly.ignore();
    }
  }

  takeDone(): void {} // Some compatible servers send [DONE]; `response.completed` already ended the answer.

  ending(): Ending | undefined {
    return this.#ending;
  }

  #write(key: string, kind: 'text' | 'thinking', text: string): void {
    if (this.#assembly.kindOf(key) === undefined) this.#assembly.open(key, kind);
    this.#assembly.write(key, text);
  }

  #slot(place: number | string): number {
    const known = this.#slots.get(place);
    if (known !== undefined) return known;
    this.#assembly.keep(place);
    this.#slots.set(place, this.#started);
    return this.#started++;
  }

  /** Starts a new item, even if its output index was used before. */
  #startItem(place: number | string, item: JsonObject): void {
    this.#assembly.start();
    this.#slots.delete(place);
    const at = this.#slot(place);
    // Opening the block now fixes its position, in whatever order the texts arrive.
    if (item['type'] === 'message') this.#assembly.open(`${at}:0`, 'text');
    if (item['type'] === 'reasoning') this.#assembly.open(`${at}:thinking`, 'thinking');
    if (item['type'] === 'function_call') {
      this.#assembly.openCall(at, looseText(item['call_id']), looseText(item['name']));
    }
  }

  #finishItem(at: number, item: JsonObject): void {
    this.#finished++;
    switch (item['type']) {
      case 'message':
        return this.#finishMessage(at, item);
      case 'reasoning':
        return this.#finishReasoning(`${at}:thinking`, item);
      case 'function_call':
        return this.#finishCall(at, item);
      default:
        this.#assembly.insert(item);
    }
  }

  #finishMessage(at: number, item: JsonObject): void {
    const { id, phase } = item;
    if (looseObjects(item['content']).length === 0) this.#assembly.close(`${at}:0`);
    looseObjects(item['content']).forEach((content, index) => {
      if (content['type'] === 'refusal') this.#refusal = looseText(content['refusal']) || this.#refusal;
      const key = `${at}:${index}`;
      const text = looseText(content['text']);
      if (text === '') return this.#assembly.close(key);
      if (this.#assembly.kindOf(key) !== 'text' && this.#assembly.textOf(key) === '') this.#assembly.open(key, 'text');
      this.#assembly.complete(key, text);
      this.#assembly.close(key);
      if (typeof id === 'string') {
        this.#assembly.attach(key, { type: 'message', id, ...(typeof phase === 'string' && { phase }) });
      }
    });
  }

  #finishReasoning(key: string, item: JsonObject): void {
    const texts = [...looseObjects(item['summary']), ...looseObjects(item['content'])].map(({ text }) =>
      looseText(text),
    );
    const said = texts.filter((text) => text !== '').join('\n\n');
    if (said !== '' && this.#assembly.textOf(key) === '') this.#write(key, 'thinking', said);
    this.#assembly.close(key);
    // The server stores nothing, so a reasoning item without encrypted content cannot go back.
    if (looseText(item['encrypted_content']) !== '') this.#assembly.attach(key, item);
  }

  #finishCall(at: number, item: JsonObject): void {
    const { id, call_id, name, status } = item;
    if (this.#assembly.kindOf(at) !== 'call') this.#assembly.openCall(at, looseText(call_id), looseText(name));
    this.#assembly.identify(at, looseText(call_id), looseText(name));
    const given = item['arguments'];
    this.#assembly.complete(at, looseObject(given) === undefined ? looseText(given) : JSON.stringify(given));
    if (typeof id === 'string') this.#assembly.attach(at, { id });
    if (status !== 'incomplete') this.#assembly.close(at);
  }

  #finish(response: JsonObject): void {
    if (response['status'] === 'failed') return this.#fail({ response });
    if (this.#finished === 0) {
      looseObjects(response['output']).forEach((item, place) => this.#finishItem(this.#slot(place), item));
    }
    this.#assembly.usage.takeWhole(looseObject(response['usage']));
    this.#phase = 'after';
    const reason = looseText(looseObject(response['incomplete_details'])?.['reason']);
    if (this.#refusal !== '') this.#ending = { stop: 'refusal', explanation: this.#refusal };
    else if (reason === 'content_filter') this.#ending = { stop: 'refusal', explanation: reason };
    else if (reason !== '' || response['status'] === 'incomplete') this.#ending = { stop: 'length' };
    else this.#ending = { stop: 'stop' };
  }

  #fail(event: JsonObject): never {
    const error = looseObject(event['error']) ?? looseObject(looseObject(event['response'])?.['error']) ?? event;
    throw new DroverError(failureOfHttpError(error, this.#source.account));
  }
}

// ── provider ──────────────────────────────────────────────────────────────────────────────────

export function openaiResponsesProvider(options: ProviderOptions): Provider {
  const { id, timeouts } = options;
  const account = httpAccountOf(options, USUAL);
  // The SDK reads organization and project from the environment. Only OpenAI may receive them.
  const identity = options.baseUrl === undefined ? {} : { organization: null, project: null };
  return {
    id,
    limits: LIMITS,
    // Reasoning models refuse sampling options.
    takes: (_, model) => PLAIN_MODELS.test(model),
    stream(request, signal) {
      const body = toResponsesRequest(request);
      const { headers, frames } = openHttpAnswer(
        {
          account,
          timeouts,
          send: (fetch) =>
            new OpenAI({ ...httpSdkOptions(account, timeouts, fetch), ...identity })
              .post('/responses', { body, stream: true })
              .asResponse(),
          unfold: unfoldResponsesAnswer,
          isLast: isLastResponsesFrame,
        },
        signal,
      );
      const estimatePrompt = () => estimatePromptTokens(request);
      return readResponsesAnswer(frames, { provider: id, model: request.model, account, headers, estimatePrompt });
    },
  };
}

function unfoldResponsesAnswer(whole: JsonObject): readonly SseFrame[] | undefined {
  if (!Array.isArray(whole['output'])) return undefined;
  return [{ event: '', data: JSON.stringify({ type: 'response.completed', response: whole }) }];
}

function isLastResponsesFrame({ event, data }: SseFrame): boolean {
  return event === 'response.completed' || event === 'response.incomplete' || data === '[DONE]';
}
