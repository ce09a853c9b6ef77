// Provider for Anthropic's Messages API.
//
// Requests send back unchanged: signatures of thinking, redacted thinking, blocks of server tools, and citations.
// Block types that the API sends but does not accept back stay in the conversation and are left out of requests.

import { BaseAnthropic } from '@anthropic-ai/sdk/client';
import type {
  Base64ImageSource,
  ContentBlockParam,
  ImageBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  TextBlockParam,
  Tool,
  ToolResultBlockParam,
} from '@anthropic-ai/sdk/resources/messages';
import { DroverError } from '../../errors.ts';
import type { Json, JsonObject } from '@drover/protocol/json';
import type { ImagePart, TextPart, ToolResult } from '@drover/protocol/messages';
import type { ModelEvent, ModelRequest, RequestMessage, RequestPart } from '@drover/protocol/model';
import type { Provider, ProviderOptions, WireLimits } from '../provider.ts';
import { assembleWireAnswer, Assembly, type WireDialect, type Ending, type Source } from '../wire/assembly.ts';
import { parseWireArguments } from '../wire/arguments.ts';
import { looseCount, looseObject, looseObjects, looseText } from '../wire/loose.ts';
import { httpAccountOf, failureOfHttpError } from '../wire/http/rejection.ts';
import type { Frames, SseFrame } from '../wire/http/sse.ts';
import { openHttpAnswer, httpSdkOptions } from '../wire/http/transport.ts';
import { estimatePromptTokens } from '../wire/usage.ts';

const LIMITS: WireLimits = {
  callIdPattern: /^[a-zA-Z0-9_-]+$/,
  callIdCharsMax: 64,
  cacheMarksMax: 4,
  leadingTypes: ['redacted_thinking'],
  bodyBytesMax: 32 * 1024 * 1024,
  imageBytesMax: 5 * 1024 * 1024,
};
const USUAL = { keyEnv: 'ANTHROPIC_API_KEY', baseUrl: 'https://api.anthropic.com' };

// ── request ───────────────────────────────────────────────────────────────────────────────────

/** Standalone block types that the API accepts back. */
const RETURNABLE: ReadonlySet<string> = new Set<ContentBlockParam['type']>([
  'thinking',
  'redacted_thinking',
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'container_upload',
]);

const CACHED = { cache_control: { type: 'ephemeral' } } as const;

export function toAnthropicRequest(request: ModelRequest): MessageCreateParamsStreaming {
  const { model, system, tools, messages, outputTokensMax } = request;
  return {
    model,
    max_tokens: outputTokensMax,
    // Tools come before the system prompt in the cached prefix, so one mark covers both.
    ...(system.trim() !== '' && { system: [{ type: 'text', text: system, ...CACHED }] }),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, schema }) => ({
        name,
        description,
        input_schema: schema as Tool.InputSchema,
      })),
    }),
    messages: messages.map(toAnthropicMessage),
    stream: true,
  };
}

function toAnthropicMessage(message: RequestMessage): MessageParam {
  if (message.role === 'assistant') return { role: 'assistant', content: message.content.flatMap(toAnthropicBlocks) };
  const blocks: ContentBlockParam[] = [
    ...message.results.map(toAnthropicResult),
    ...message.content.map(toAnthropicInput),
  ];
  const isMarked = (at: number) => (message.cacheMark && at === blocks.length - 1) || at + 1 === message.innerMark;
  const content = blocks.map((block, at) => (isMarked(at) ? ({ ...block, ...CACHED } as ContentBlockParam) : block));
  return { role: 'user', content };
}

function toAnthropicResult({ id, output, isError, images = [] }: ToolResult): ToolResultBlockParam {
  return {
    type: 'tool_result',
    tool_use_id: id,
    content: images.length === 0 ? output : [{ type: 'text', text: output }, ...images.map(toAnthropicInput)],
    ...(isError && { is_error: true }),
  };
}

function toAnthropicInput(part: TextPart | ImagePart): TextBlockParam | ImageBlockParam {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const media_type = part.mediaType as Base64ImageSource['media_type'];
  return { type: 'image', source: { type: 'base64', media_type, data: part.data } };
}

function toAnthropicBlocks(part: RequestPart): readonly ContentBlockParam[] {
  const extra = looseObject(part.native) ?? {};
  switch (part.type) {
    case 'text':
      return [{ ...extra, type: 'text', text: part.text }];
    case 'thinking': {
      // The API refuses unsigned thinking, such as another provider's.
      const signature = looseText(extra['signature']);
      return signature === '' ? [] : [{ type: 'thinking', thinking: part.text, signature }];
    }
    case 'tool_call':
      return [{ ...extra, type: 'tool_use', id: part.id, name: part.name, input: part.args }];
    case 'native':
      return RETURNABLE.has(looseText(extra['type'])) ? [extra as unknown as ContentBlockParam] : [];
  }
}

// ── response ──────────────────────────────────────────────────────────────────────────────────

export function readAnthropicAnswer(frames: Frames, source: Source): AsyncIterable<ModelEvent> {
  const assembly = new Assembly(source);
  return assembleWireAnswer(frames, assembly, new MessagesDialect(assembly, source));
}

/** Data of a block that is complete only when the block stops. */
type Rest = { readonly block: JsonObject; json: string; signature: string; readonly citations: Json[] };

class MessagesDialect implements WireDialect {
  readonly #assembly: Assembly;
  readonly #source: Source;
  readonly #rests = new Map<number, Rest>();
  #phase: 'before' | 'message' | 'after' = 'before';
  #stop = '';
  #explanation = '';

  constructor(assembly: Assembly, source: Source) {
    this.#assembly = assembly;
    this.#source = source;
  }

  take(event: JsonObject): void {
    const type = looseText(event['type']);
    if (type === 'ping') return;
    if (this.#phase === 'after' && type !== 'message_start') return this.#assembly.ignore();
    const index = looseCount(event['index']) ?? 0;
    switch (type) {
      case 'message_start':
        return this.#startMessage(looseObject(event['message']) ?? {});
      case 'content_block_start':
        return this.#startBlock(index, looseObject(event['content_block']) ?? {});
      case 'content_block_delta':
        return this.#takeDelta(index, looseObject(event['delta']) ?? {});
      case 'content_block_stop':
        return this.#stopBlock(index);
      case 'message_delta':
        this.#assembly.usage.takeShares(looseObject(event['usage']));
        return this.#takeStop(looseObject(event['delta']) ?? {});
      case 'message_stop':
        this.#phase = 'after';
        return;
      case 'error':
        throw new DroverError(failureOfHttpError(looseObject(event['error']) ?? event, this.#source.account));
      default:
        this.#assembly.ignore();
    }
  }

  takeDone(): void {} // Some compatible servers send OpenAI's [DONE]; it adds nothing here.

  ending(): Ending | undefined {
    if (this.#stop === '') return undefined;
    const announcesCalls = this.#stop === 'tool_use';
    const explanation = this.#explanation !== '' && { explanation: this.#explanation };
    return { stop: stopOfAnthropic(this.#stop), announcesCalls, ...explanation };
  }

  // Servers that do not really stream may put the whole message into the first event. A second `message_start`
  // does not begin a new answer: the events after it continue the first one.
  #startMessage(message: JsonObject): void {
    const isFirst = this.#phase === 'before';
    this.#phase = 'message';
    if (!isFirst) return this.#assembly.ignore();
    this.#assembly.usage.takeShares(looseObject(message['usage']));
    this.#assembly.start();
    looseObjects(message['content']).forEach((block, index) => {
      this.#startBlock(index, block);
      this.#stopBlock(index);
    });
    this.#takeStop(message);
  }

  #takeStop(delta: JsonObject): void {
    this.#stop = looseText(delta['stop_reason']) || this.#stop;
    const details = looseObject(delta['stop_details']);
    this.#explanation = looseText(details?.['explanation']) || looseText(details?.['category']) || this.#explanation;
    if (this.#stop === 'model_context_window_exceeded') {
      throw new DroverError({ kind: 'context.overflow', message: 'the answer reached the end of the context window' });
    }
  }

  #startBlock(index: number, block: JsonObject): void {
    const assembly = this.#assembly;
    assembly.start();
    assembly.keep(block);
    this.#rests.set(index, { block, json: '', signature: looseText(block['signature']), citations: [] });
    switch (block['type']) {
      case 'text':
        assembly.open(index, 'text');
        return assembly.write(index, looseText(block['text']));
      case 'thinking':
        assembly.open(index, 'thinking');
        return assembly.write(index, looseText(block['thinking']));
      case 'tool_use':
        return assembly.openCall(index, looseText(block['id']), looseText(block['name']));
      default:
        return assembly.close(index);
    }
  }

  #takeDelta(index: number, delta: JsonObject): void {
    const assembly = this.#assembly;
    const rest = this.#rests.get(index);
    switch (delta['type']) {
      case 'text_delta':
        return this.#write(index, 'text', looseText(delta['text']));
      case 'thinking_delta':
        return this.#write(index, 'thinking', looseText(delta['thinking']));
      case 'input_json_delta':
        if (assembly.kindOf(index) === 'call') return assembly.write(index, looseText(delta['partial_json']));
        if (rest === undefined) return assembly.ignore();
        assembly.keep(delta);
        rest.json += looseText(delta['partial_json']);
        return;
      case 'signature_delta':
        if (rest === undefined) return assembly.ignore();
        assembly.keep(delta);
        rest.signature += looseText(delta['signature']);
        return;
      case 'citations_delta':
        if (rest === undefined) return assembly.ignore();
        assembly.keep(delta);
        rest.citations.push(delta['citation'] ?? {});
        return;
      default:
        assembly.ignore();
    }
  }

  /** Writes a delta. If its block never started, starts the block first. */
  #write(index: number, kind: 'text' | 'thinking', text: string): void {
    const found = this.#assembly.kindOf(index);
    if (found === undefined && !this.#rests.has(index)) this.#startBlock(index, { type: kind });
    else if (found !== kind) return this.#assembly.ignore();
    this.#assembly.write(index, text);
  }

  #stopBlock(index: number): void {
    const rest = this.#rests.get(index);
    if (rest === undefined) return this.#assembly.ignore();
    this.#rests.delete(index);
    switch (rest.block['type']) {
      case 'text':
        if (rest.citations.length > 0) this.#assembly.attach(index, { citations: rest.citations });
        break;
      case 'thinking':
        this.#sign(index, rest.signature);
        break;
      case 'tool_use':
        this.#finishCall(index, rest.block);
        break;
      default:
        this.#assembly.insert(
          rest.json === '' ? rest.block : { ...rest.block, input: parseWireArguments(rest.json).args },
        );
    }
    this.#assembly.close(index);
  }

  #sign(index: number, signature: string): void {
    if (signature === '') return;
    if (this.#assembly.textOf(index) !== '') this.#assembly.attach(index, { signature });
    else this.#assembly.insert({ type: 'thinking', thinking: '', signature });
  }

  #finishCall(index: number, block: JsonObject): void {
    const { caller, input } = block;
    const isDirect = (looseObject(caller)?.['type'] ?? 'direct') === 'direct';
    if (!isDirect) {
      // Code on the server may not call drover's tools, so the model did not ask for this call.
      this.#assembly.spoil(index, 'the call was made by code on the server, which is not allowed here');
    } else if (this.#assembly.textOf(index) === '' && Object.keys(looseObject(input) ?? {}).length > 0) {
      this.#assembly.write(index, JSON.stringify(input));
    }
    if (caller !== undefined && !isDirect) this.#assembly.attach(index, { caller });
  }
}

function stopOfAnthropic(reason: string): Ending['stop'] {
  switch (reason) {
    case 'max_tokens':
      return 'length';
    case 'refusal':
      return 'refusal';
    case 'pause_turn':
      return 'pause';
    default:
      return 'stop';
  }
}

// ── provider ──────────────────────────────────────────────────────────────────────────────────

export function anthropicProvider(options: ProviderOptions): Provider {
  const { id, timeouts } = options;
  const account = httpAccountOf(options, USUAL);
  return {
    id,
    limits: LIMITS,
    stream(request, signal) {
      const body = toAnthropicRequest(request);
      const { headers, frames } = openHttpAnswer(
        {
          account,
          timeouts,
          send: (fetch) =>
            new BaseAnthropic({ ...httpSdkOptions(account, timeouts, fetch), openTelemetry: false })
              .post('/v1/messages', { body, stream: true })
              .asResponse(),
          unfold: unfoldAnthropicAnswer,
          isLast: isLastAnthropicFrame,
        },
        signal,
      );
      const estimatePrompt = () => estimatePromptTokens(request);
      return readAnthropicAnswer(frames, { provider: id, model: request.model, account, headers, estimatePrompt });
    },
  };
}

function unfoldAnthropicAnswer(whole: JsonObject): readonly SseFrame[] | undefined {
  if (!Array.isArray(whole['content'])) return undefined;
  return [{ event: 'message_start', data: JSON.stringify({ type: 'message_start', message: whole }) }];
}

function isLastAnthropicFrame({ event, data }: SseFrame): boolean {
  return event === 'message_stop' || (data.length < 100 && /"type"\s*:\s*"message_stop"/.test(data));
}
