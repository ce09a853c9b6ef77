// Messages of a conversation, in words that no provider owns.
//
// `content` holds the parts that every provider understands. Signatures, encrypted reasoning and server tool blocks
// stay in `native`. They go back unchanged to the provider and model that made them, and to no other.

import type { Json } from './json.ts';

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

export type ToolDefinition = { readonly name: string; readonly description: string; readonly schema: Json };

// ── blocks of an answer while it streams ──────────────────────────────────────────────────────

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
