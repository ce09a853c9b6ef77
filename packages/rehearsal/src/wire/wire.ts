// The common part of the three wire formats: a summary of a request, the parts of a reply before it has a format, and
// the frames of the stream.

import type { Json, JsonObject } from '../json.ts';

/** Named like the providers that use it: `openai` is the Responses API, `openai-chat` Chat Completions. */
export type Api = 'anthropic' | 'openai' | 'openai-chat';

// ── requests ──────────────────────────────────────────────────────────────────────────────────

/** A conversation in a neutral format, oldest message first. */
export type Said =
  | { readonly by: 'user'; readonly text: string }
  | { readonly by: 'assistant'; readonly calls: readonly { readonly id: string; readonly name: string }[] }
  | { readonly by: 'tool'; readonly id: string; readonly output: string };

export type Outline = {
  readonly model: string;
  readonly stream: boolean;
  readonly system: string;
  readonly tools: readonly string[];
  readonly said: readonly Said[];
};

export type ToolOutput = { readonly id: string; readonly name: string; readonly output: string };

/** A request as scripts see it. */
export type RequestView = {
  readonly n: number;
  readonly api: Api;
  readonly agent: string;
  readonly model: string;
  readonly stream: boolean;
  readonly system: string;
  readonly tools: readonly string[];
  /** The first and the last user text. */
  readonly task: string;
  readonly text: string;
  /** Results of tools since the last answer. */
  readonly results: readonly ToolOutput[];
  /** Every text since the last answer: results and user messages. */
  readonly latest: readonly string[];
  readonly step: number;
  readonly turn: number;
  /** Number of answers in the conversation. */
  readonly answers: number;
  readonly body: JsonObject;
  readonly headers: Readonly<Record<string, string>>;
};

// ── replies ───────────────────────────────────────────────────────────────────────────────────

export type Stop = 'end' | 'calls' | 'length' | 'refusal' | 'filter' | 'pause' | 'context' | 'failed';

/** `input`: tokens neither read from the cache nor written to it. */
export type TokenCounts = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
};

export type ReplyPart =
  | { readonly type: 'text'; readonly pieces: Pieces }
  | { readonly type: 'thinking'; readonly text: string; readonly seal: string }
  | { readonly type: 'redacted'; readonly seal: string }
  /** `wireArgs`: the value to send in place of the arguments' JSON text. */
  | { readonly type: 'call'; readonly id: string; readonly name: string; readonly args: Json; readonly wireArgs: Json };

/** Text in the pieces in which it is streamed. */
export type Pieces = {
  readonly whole: () => string;
  readonly each: () => Iterable<string>;
  readonly tokens: number;
};

export type Reply = {
  /** 24 hexadecimal digits, unique to each reply; each format adds its own prefix. */
  readonly id: string;
  readonly model: string;
  readonly createdSeconds: number;
  readonly parts: readonly ReplyPart[];
  readonly stop: Stop;
  readonly usage: TokenCounts;
  readonly chunkChars: number;
};

// ── frames ────────────────────────────────────────────────────────────────────────────────────

/** `content` is a piece of the answer, `stop` gives its reason, `end` is the terminal event. */
export type Frame = {
  readonly kind: 'start' | 'content' | 'stop' | 'end' | 'other';
  readonly event?: string;
  readonly data: string;
};

export type Refusal = {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly param?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: 'json' | 'html' | 'plain' | 'empty';
};

export type Wire = {
  readonly api: Api;
  readonly outline: (body: JsonObject) => Outline;
  readonly frames: (reply: Reply, request: JsonObject) => Iterable<Frame>;
  readonly whole: (reply: Reply, request: JsonObject) => JsonObject;
  readonly errorBody: (refusal: Refusal, requestId: string) => JsonObject;
  readonly errorFrame: (refusal: Refusal) => Frame;
  /** The name of the header with the request's id. */
  readonly requestIdHeader: string;
};

/** Pieces of at most `size` UTF-16 units, without splitting a surrogate pair. */
export function* wireTextSlices(text: string, size: number): Generator<string> {
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + size, text.length);
    const last = text.charCodeAt(to - 1);
    if (last >= 0xd800 && last <= 0xdbff && to < text.length) to += 1;
    yield text.slice(from, to);
    from = to;
  }
}

/** The arguments as streamed text; values other than text are not split. */
export function wireArgumentPieces(wireArgs: Json, size: number): Iterable<string> {
  return typeof wireArgs === 'string' ? wireTextSlices(wireArgs, size) : [];
}
