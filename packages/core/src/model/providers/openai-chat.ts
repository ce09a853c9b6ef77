// Provider for OpenAI's Chat Completions API, and for the many servers that roughly speak it.
//
// The request uses only fields that all servers understand. OpenAI itself gets `max_completion_tokens` instead of
// the retired `max_tokens`, and a cache key. The reader tolerates malformed answers; chat-calls.ts does so for calls.
// Reasoning goes back unchanged if the vendor expects it.

import { OpenAI } from 'openai/client';
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageParam,
  ChatCompletionMessageFunctionToolCall,
} from 'openai/resources/chat/completions';
import { DroverError } from '../../errors.ts';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import type { ImagePart, TextPart } from '@drover/protocol/messages';
import type { ModelEvent, ModelRequest, RequestMessage, RequestPart } from '@drover/protocol/model';
import type { Provider, ProviderOptions, WireLimits } from '../provider.ts';
import { assembleWireAnswer, Assembly, type WireDialect, type Ending, type Source } from '../wire/assembly.ts';
import { ChatCalls } from '../wire/chat-calls.ts';
import { looseCount, looseObject, looseObjects, looseText } from '../wire/loose.ts';
import { httpAccountOf, failureOfHttpError } from '../wire/http/rejection.ts';
import type { Frames, SseFrame } from '../wire/http/sse.ts';
import { ThinkTags } from '../wire/think-tags.ts';
import { openHttpAnswer, httpSdkOptions } from '../wire/http/transport.ts';
import { estimatePromptTokens } from '../wire/usage.ts';

const LIMITS: WireLimits = {
  callIdPattern: /^[a-zA-Z0-9_-]+$/,
  callIdCharsMax: 40,
  cacheMarksMax: 0,
  leadingTypes: [],
  bodyBytesMax: 32 * 1024 * 1024,
  imageBytesMax: 5 * 1024 * 1024,
};
const USUAL = { keyEnv: 'OPENAI_API_KEY', baseUrl: 'https://api.openai.com/v1' };
const CACHE_KEY_CHARS_MAX = 64;

// ── request ───────────────────────────────────────────────────────────────────────────────────

/** `address` is the base URL. Its host tells whether the server is OpenAI itself. */
export function toChatRequest(request: ModelRequest, address: string): ChatCompletionCreateParamsStreaming {
  const { model, system, tools, messages, outputTokensMax, cacheKey, sampling = {} } = request;
  const isOpenai = URL.canParse(address) && /(^|\.)openai\.(azure\.)?com$/.test(new URL(address).hostname);
  return {
    model,
    messages: [
      ...(system.trim() === '' ? [] : [{ role: 'system' as const, content: system }]),
      ...messages.flatMap(toChatMessages),
    ],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, schema }) => ({
        type: 'function' as const,
        function: { name, description, parameters: schema as Record<string, unknown> },
      })),
    }),
    ...(isOpenai ? { max_completion_tokens: outputTokensMax } : { max_tokens: outputTokensMax }),
    ...(isOpenai && cacheKey !== '' && { prompt_cache_key: cacheKey.slice(0, CACHE_KEY_CHARS_MAX) }),
    ...(sampling.temperature !== undefined && { temperature: sampling.temperature }),
    ...(sampling.topP !== undefined && { top_p: sampling.topP }),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function toChatMessages(message: RequestMessage): readonly ChatCompletionMessageParam[] {
  if (message.role === 'assistant') return toChatAssistant(message.content);
  const { results, content } = message;
  // A tool message holds only text, so images of a result follow in a user message.
  const shown = results.flatMap(({ name, images = [] }) =>
    images.length === 0 ? [] : [{ type: 'text' as const, text: `What ${name} showed:` }, ...images],
  );
  const said = toChatContent([...shown, ...content]);
  return [
    ...results.map(({ id, output }) => ({ role: 'tool' as const, tool_call_id: id, content: output })),
    ...(said.length === 0 ? [] : [{ role: 'user' as const, content: said }]),
  ];
}

/** Joins texts into one string if there are no images, because some servers do not accept lists. */
function toChatContent(parts: readonly (TextPart | ImagePart)[]): string | ChatCompletionContentPart[] {
  if (parts.every((part) => part.type === 'text')) return parts.map(({ text }) => text).join('\n\n');
  return parts.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'image_url', image_url: { url: `data:${part.mediaType};base64,${part.data}` } },
  );
}

function toChatAssistant(parts: readonly RequestPart[]): readonly ChatCompletionAssistantMessageParam[] {
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  const calls = parts.flatMap((part): ChatCompletionMessageFunctionToolCall[] =>
    part.type === 'tool_call'
      ? [{ id: part.id, type: 'function', function: { name: part.name, arguments: JSON.stringify(part.args) } }]
      : [],
  );
  if (text === '' && calls.length === 0) return [];
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
      ...reasoningForChat(parts),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ];
}

/** Returns reasoning in the same field that it arrived in. */
function reasoningForChat(parts: readonly RequestPart[]): JsonObject {
  const details: Json[] = [];
  let content: string | undefined;
  for (const part of parts) {
    const native = looseObject(part.native);
    details.push(...looseObjects(native?.['reasoning_details']));
    if (native?.['field'] === 'reasoning_content' && part.type === 'thinking') content = (content ?? '') + part.text;
  }
  return {
    ...(content !== undefined && { reasoning_content: content }),
    ...(details.length > 0 && { reasoning_details: details }),
  };
}

// ── response ──────────────────────────────────────────────────────────────────────────────────

export function readChatAnswer(frames: Frames, source: Source): AsyncIterable<ModelEvent> {
  const assembly = new Assembly(source);
  return assembleWireAnswer(frames, assembly, new ChatDialect(assembly, source));
}

// Stop reasons with a special meaning. All others, such as `stop` and `tool_calls`, mean a complete answer.
const STOPS: ReadonlyMap<string, Ending['stop']> = new Map<string, Ending['stop']>([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['content_filter', 'refusal'],
  ['refusal', 'refusal'],
  ['safety', 'refusal'],
]);
const FAILED_STOPS: ReadonlySet<string> = new Set(['error', 'network_error', 'abort', 'insufficient_system_resource']);

class ChatDialect implements WireDialect {
  readonly #assembly: Assembly;
  readonly #source: Source;
  readonly #calls: ChatCalls;
  readonly #tags = new ThinkTags();
  #details: JsonObject[] = [];
  #current: { readonly kind: 'text' | 'thinking'; readonly key: string; readonly field: string } | undefined;
  #keys = 0;
  #finish = '';
  #refusal = '';
  #isDone = false;

  constructor(assembly: Assembly, source: Source) {
    this.#assembly = assembly;
    this.#source = source;
    this.#calls = new ChatCalls(assembly);
  }

  take(chunk: JsonObject): void {
    if (this.#isDone) return this.#assembly.ignore();
    this.#throwError(chunk);
    const choices = looseObjects(chunk['choices']);
    if (chunk['choices'] === undefined && chunk['usage'] === undefined) return this.#assembly.ignore();
    this.#assembly.start();
    // The request asked for one answer. If the server sends more, the first one counts.
    const choice = choices.find(({ index }) => (looseCount(index) ?? 0) === 0) ?? {};
    for (const usage of [looseObject(chunk['x_groq'])?.['usage'], choice['usage'], chunk['usage']]) {
      this.#assembly.usage.takeWhole(looseObject(usage));
    }
    this.#takeDelta(looseObject(choice['delta']) ?? looseObject(choice['message']) ?? {});
    if (looseText(choice['finish_reason']) !== '') this.#takeFinish(looseText(choice['finish_reason']));
  }

  takeDone(): void {
    this.#isDone = true;
    this.#wrapUp();
  }

  ending(): Ending | undefined {
    if (this.#finish === '' && !this.#isDone) return undefined;
    if (this.#refusal !== '') return { stop: 'refusal', explanation: this.#refusal };
    const reason = this.#finish.toLowerCase();
    const stop = STOPS.get(reason) ?? 'stop';
    const announcesCalls = reason === 'tool_calls' || reason === 'function_call';
    return stop === 'refusal' ? { stop, explanation: this.#finish } : { stop, announcesCalls };
  }

  #throwError(chunk: JsonObject): void {
    const { error } = chunk;
    const found = isJsonObject(error)
      ? error
      : chunk['object'] === 'error' || chunk['type'] === 'error'
        ? chunk
        : undefined;
    const failed = found ?? (typeof error === 'string' && error !== '' ? { ...chunk, message: error } : undefined);
    if (failed !== undefined) throw new DroverError(failureOfHttpError(failed, this.#source.account));
  }

  #takeDelta(delta: JsonObject): void {
    this.#takeReasoning(delta);
    const { content } = delta;
    if (typeof content === 'string') this.#takeText(content);
    for (const part of looseObjects(content)) this.#takePart(part);
    this.#takeRefusal(looseText(delta['refusal']));
    const legacy = looseObject(delta['function_call']);
    const calls = legacy === undefined ? looseObjects(delta['tool_calls']) : [{ index: 0, function: legacy }];
    for (const call of calls) {
      this.#closeCurrent();
      this.#calls.take(call);
    }
  }

  #takeRefusal(text: string): void {
    if (text === '') return;
    this.#assembly.keep(text);
    this.#refusal += text;
  }

  #takeReasoning(delta: JsonObject): void {
    const details = looseObjects(delta['reasoning_details']);
    for (const detail of details) this.#addDetail(detail);
    const vendor = looseText(delta['reasoning_content']);
    const other =
      looseText(delta['reasoning']) ||
      details.map(({ text, summary }) => looseText(text) || looseText(summary)).join('');
    if (vendor !== '') this.#write('thinking', vendor, 'reasoning_content');
    else if (other !== '') this.#write('thinking', other, 'reasoning');
  }

  #takeText(content: string): void {
    if (content === '') return;
    for (const { kind, text } of this.#tags.push(content)) this.#write(kind, text, '');
  }

  #takePart(part: JsonObject): void {
    const { type, thinking } = part;
    if (type !== 'thinking') return this.#takeText(looseText(part['text']));
    const texts = typeof thinking === 'string' ? [thinking] : looseObjects(thinking).map(({ text }) => looseText(text));
    this.#write('thinking', texts.join(''), '');
  }

  #takeFinish(reason: string): void {
    this.#finish = reason;
    if (FAILED_STOPS.has(reason)) {
      const message = `the server stopped in the middle (${reason})`;
      throw new DroverError({ kind: 'provider.unavailable', message });
    }
    if (reason === 'model_context_window_exceeded') {
      throw new DroverError({ kind: 'context.overflow', message: 'the answer reached the end of the context window' });
    }
    this.#wrapUp();
  }

  #wrapUp(): void {
    for (const { kind, text } of this.#tags.end()) this.#write(kind, text, '');
    this.#closeCurrent();
    this.#assembly.closeAll();
    if (this.#details.length > 0) this.#assembly.preface({ reasoning_details: this.#details });
    this.#details = [];
  }

  #write(kind: 'text' | 'thinking', text: string, field: string): void {
    if (text === '') return;
    if (this.#current?.kind !== kind || this.#current.field !== field) {
      this.#closeCurrent();
      this.#current = { kind, key: `${kind}:${this.#keys++}`, field };
      this.#assembly.open(this.#current.key, kind);
    }
    this.#assembly.write(this.#current.key, text);
  }

  #closeCurrent(): void {
    if (this.#current === undefined) return;
    const { key, field } = this.#current;
    this.#current = undefined;
    this.#assembly.close(key);
    if (field === 'reasoning_content') this.#assembly.attach(key, { field });
  }

  /** Joins streamed pieces of a detail, because the server expects each detail back as one. */
  #addDetail(detail: JsonObject): void {
    this.#assembly.keep(detail);
    const last = this.#details.at(-1);
    if (last === undefined || last['index'] !== detail['index'] || last['type'] !== detail['type']) {
      this.#details.push(detail);
      return;
    }
    const joined = ['text', 'summary', 'data'].flatMap((field) => {
      const text = looseText(last[field]) + looseText(detail[field]);
      return text === '' ? [] : [[field, text]];
    });
    const told = Object.entries(detail).filter(([, value]) => value !== null && value !== '');
    this.#details[this.#details.length - 1] = { ...last, ...Object.fromEntries(told), ...Object.fromEntries(joined) };
  }
}

// ── provider ──────────────────────────────────────────────────────────────────────────────────

export function openaiChatProvider(options: ProviderOptions): Provider {
  const { id, timeouts } = options;
  const account = httpAccountOf(options, USUAL);
  // The SDK reads organization and project from the environment. Only OpenAI may receive them.
  const identity = options.baseUrl === undefined ? {} : { organization: null, project: null };
  return {
    id,
    limits: LIMITS,
    takes: () => true,
    stream(request, signal) {
      const body = toChatRequest(request, account.address);
      const { headers, frames } = openHttpAnswer(
        {
          account,
          timeouts,
          send: (fetch) =>
            new OpenAI({ ...httpSdkOptions(account, timeouts, fetch), ...identity })
              .post('/chat/completions', { body, stream: true })
              .asResponse(),
          unfold: unfoldChatAnswer,
          isLast: isLastChatFrame,
        },
        signal,
      );
      const estimatePrompt = () => estimatePromptTokens(request);
      return readChatAnswer(frames, { provider: id, model: request.model, account, headers, estimatePrompt });
    },
  };
}

function unfoldChatAnswer(whole: JsonObject): readonly SseFrame[] | undefined {
  return Array.isArray(whole['choices']) ? [{ event: '', data: JSON.stringify(whole) }] : undefined;
}

function isLastChatFrame({ data }: SseFrame): boolean {
  return data === '[DONE]';
}
