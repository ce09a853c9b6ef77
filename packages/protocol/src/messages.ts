// Messages of a conversation, in a format that is independent of the provider.
//
// `content` holds the parts that every provider understands. Signatures, encrypted reasoning and server tool blocks
// stay in `native`. Requests send them back unchanged, only to the provider and model that made them.

import type { Json } from './json.ts';

export type TextPart = { readonly type: 'text'; readonly text: string };
type ThinkingPart = { readonly type: 'thinking'; readonly text: string };
export type ImagePart = { readonly type: 'image'; readonly mediaType: string; readonly data: string };

/** The model's request to run a tool. `problem` says why `args` are unusable; such a call never runs. */
export type CallPart = {
  readonly type: 'tool_call';
  readonly id: string;
  readonly name: string;
  readonly args: Json;
  readonly problem?: string;
};

export type AssistantPart = TextPart | ThinkingPart | CallPart;

export type Stop = 'stop' | 'length' | 'tool_calls' | 'refusal' | 'error' | 'aborted' | 'pause';

/** Token counts. `input` excludes cached tokens, so `input + cacheRead + cacheWrite` is the whole prompt. */
export type Usage = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The provider reported nothing, so drover estimated these counts. */
  readonly estimated?: true;
};

export type NativeItem =
  | { readonly part: number; readonly payload: Json } // belongs to content[part]
  | { readonly before: number; readonly payload: Json }; // a separate item, placed before content[before]

type Native = { readonly provider: string; readonly model: string; readonly items: readonly NativeItem[] };

export type UserMessage = { readonly role: 'user'; readonly content: readonly (TextPart | ImagePart)[] };
export type AssistantMessage = {
  readonly role: 'assistant';
  readonly content: readonly AssistantPart[];
  readonly stop: Stop;
  readonly usage: Usage;
  readonly native?: Native;
};
export type ToolResult = {
  /** The provider's id of the call that this result answers. */
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

/** `part` is the index in the finished message's content. `callIndex` is the index among its calls. */
export type BlockEvent =
  | { readonly type: 'text_start' | 'thinking_start'; readonly part: number }
  | { readonly type: 'text_delta' | 'thinking_delta'; readonly part: number; readonly delta: string }
  | {
      readonly type: 'text_end' | 'thinking_end';
      readonly part: number;
      readonly text: string;
      readonly cutOff?: true; // the stream ended before the block did
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
