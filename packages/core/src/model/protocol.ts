// What a conversation with a model is made of, in words no provider owns.
//
// MESSAGES
//   A conversation is a list of Message. `content` holds what everybody understands; what only the
//   provider that made a message understands (signatures, encrypted reasoning, server tool blocks)
//   rides along in `native` and is sent back unchanged to that provider and model, and to no other.
//
// THE CONTRACT OF A PROVIDER
//   `stream` throws DroverError, or yields exactly one `finished`, last. Callers need handle nothing
//   else. It never retries: see agent/ask.ts. It never builds history: see request.ts.

import type { Json } from '../json.ts';
import type { Sampling, SamplingOption } from './sampling.ts';

// ── messages ──────────────────────────────────────────────────────────────────────────────────

export type TextPart = { readonly type: 'text'; readonly text: string };
export type ThinkingPart = { readonly type: 'thinking'; readonly text: string };
export type ImagePart = { readonly type: 'image'; readonly mediaType: string; readonly data: string };

/** The model asking for a tool. `problem` says why `args` can't be used as they are; such a call is never run. */
export type CallPart = {
  readonly type: 'tool_call';
  readonly id: string;
  readonly name: string;
  readonly args: Json;
  readonly problem?: string;
};

export type AssistantPart = TextPart | ThinkingPart | CallPart;

export type Stop = 'stop' | 'length' | 'tool_calls' | 'refusal' | 'error' | 'aborted' | 'pause';

/** Tokens. `input` is what was neither read from nor written to the cache, so the three sum to the whole prompt. */
export type Usage = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The provider said nothing; these are our own estimate. */
  readonly estimated?: true;
};

export type NativeItem =
  | { readonly part: number; readonly payload: Json } // belongs to content[part]
  | { readonly before: number; readonly payload: Json }; // stands by itself in front of content[before]

export type Native = { readonly provider: string; readonly model: string; readonly items: readonly NativeItem[] };

export type UserMessage = { readonly role: 'user'; readonly content: readonly (TextPart | ImagePart)[] };
export type AssistantMessage = {
  readonly role: 'assistant';
  readonly content: readonly AssistantPart[];
  readonly stop: Stop;
  readonly usage: Usage;
  readonly native?: Native;
};
export type ToolResult = {
  /** The provider's id of the call this answers. */
  readonly id: string;
  readonly name: string;
  readonly output: string;
  readonly isError: boolean;
  readonly images?: readonly ImagePart[];
};
export type ToolMessage = { readonly role: 'tool'; readonly results: readonly ToolResult[] };

export type Message = UserMessage | AssistantMessage | ToolMessage;

// ── requests: made by request.ts only, always valid ───────────────────────────────────────────

export type ToolDefinition = { readonly name: string; readonly description: string; readonly schema: Json };

/** `native`: the payload to send back with, or instead of, the part. */
export type RequestPart =
  | (AssistantPart & { readonly native?: Json })
  | { readonly type: 'native'; readonly native: Json };

export type RequestMessage =
  | {
      readonly role: 'user';
      /** Results stand first, in the order of the calls they answer. */
      readonly results: readonly ToolResult[];
      readonly content: readonly (TextPart | ImagePart)[];
      /** Everything up to here is worth caching. */
      readonly cacheMark: boolean;
      /** So is everything up to here: this many of its parts, results first, said what another request ended with. */
      readonly innerMark?: number;
    }
  | { readonly role: 'assistant'; readonly content: readonly RequestPart[] };

export type ModelRequest = {
  readonly model: string;
  readonly system: string;
  readonly tools: readonly ToolDefinition[];
  readonly messages: readonly RequestMessage[];
  readonly outputTokensMax: number;
  /** Requests with the same key share a cached prefix. */
  readonly cacheKey: string;
  /** Only options that the provider takes. */
  readonly sampling?: Sampling;
};

// ── answers ───────────────────────────────────────────────────────────────────────────────────

/** `part` is the position in the finished message's content; `callIndex` the position among its calls. */
export type BlockEvent =
  | { readonly type: 'text_start' | 'thinking_start'; readonly part: number }
  | { readonly type: 'text_delta' | 'thinking_delta'; readonly part: number; readonly delta: string }
  | {
      readonly type: 'text_end' | 'thinking_end';
      readonly part: number;
      readonly text: string;
      readonly cutOff?: true; // the rest never came
    }
  | {
      readonly type: 'toolcall_start';
      readonly part: number;
      readonly callIndex: number;
      readonly id: string;
      readonly name: string;
    }
  | { readonly type: 'toolcall_delta'; readonly part: number; readonly callIndex: number; readonly delta: string }
  | { readonly type: 'toolcall_end'; readonly part: number; readonly callIndex: number; readonly call: CallPart };

export type ModelEvent =
  /** The first sign of an answer. `usage` is what is known by then: it is counted even if the rest never comes. */
  | { readonly type: 'started'; readonly usage?: Usage; readonly headers?: Readonly<Record<string, string>> }
  | BlockEvent
  | { readonly type: 'finished'; readonly message: AssistantMessage; readonly notes: AnswerNotes };

/** What is worth telling about how an answer arrived. */
export type AnswerNotes = {
  /** Events that were not understood, and left out. */
  readonly ignored: number;
  /** From the response's headers, lower case: rate limits and request ids. */
  readonly headers: Readonly<Record<string, string>>;
  /** The provider's own words for a refusal or an odd stop. */
  readonly explanation?: string;
  /** The provider's stop reason says that calls follow, whether or not there are any. */
  readonly announcesCalls?: true;
};

/** What the request builder must know about a wire format. */
export type WireLimits = {
  readonly callIdPattern: RegExp; // what an id may look like; others are rewritten
  readonly callIdCharsMax: number;
  readonly cacheMarksMax: number;
  /** Types of sealed payloads that must be followed by what they led to, as thinking must. */
  readonly leadingTypes: readonly string[];
  readonly bodyBytesMax: number;
  readonly imageBytesMax: number;
};

/** How long to wait for each sign of life, in milliseconds. */
export type StreamTimeouts = {
  readonly headersMs: number;
  readonly firstByteMs: number;
  readonly silenceMs: number; // no byte at all
  readonly progressMs: number; // bytes, but only comments and pings
};

export type Provider = {
  readonly id: string; // as in --model provider/name
  readonly limits: WireLimits;
  /** Whether a model takes an option; without it, none is taken. */
  readonly takes?: (option: SamplingOption, model: string) => boolean;
  readonly stream: (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;
};

/** What every provider is made from. */
export type ProviderOptions = {
  readonly id: string;
  readonly apiKey: string;
  /** Where the key came from, to be named in advice; the format's usual variable unless told. */
  readonly keyEnv?: string;
  readonly baseUrl?: string;
  readonly timeouts: StreamTimeouts;
};
