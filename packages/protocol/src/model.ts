// A model request and the events of its answer, as data: both travel between a worker thread and its run.

import type { Json } from './json.ts';
import type {
  AssistantMessage,
  AssistantPart,
  BlockEvent,
  ImagePart,
  TextPart,
  ToolDefinition,
  ToolResult,
  Usage,
} from './messages.ts';

/** Sampling options. Providers that do not support an option never receive it. */
export type Sampling = {
  readonly temperature?: number; // from 0 to 2
  readonly topP?: number; // above 0, at most 1
};

export type SamplingOption = keyof Sampling;

/** `native`: the provider's payload, sent with the part or instead of it. */
export type RequestPart =
  | (AssistantPart & { readonly native?: Json })
  | { readonly type: 'native'; readonly native: Json };

export type RequestMessage =
  | {
      readonly role: 'user';
      /** Results come first, in the order of their calls. */
      readonly results: readonly ToolResult[];
      readonly content: readonly (TextPart | ImagePart)[];
      /** The prefix that ends with this message is worth caching. */
      readonly cacheMark: boolean;
      /** A second cache point: another request ended after this many parts of the message, results first. */
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
  /** Holds only options that the provider supports. */
  readonly sampling?: Sampling;
};

export type ModelEvent =
  /** The answer has begun. `usage` holds the counts so far; they are charged even if the stream then breaks. */
  | { readonly type: 'started'; readonly usage?: Usage; readonly headers?: Readonly<Record<string, string>> }
  | BlockEvent
  | { readonly type: 'finished'; readonly message: AssistantMessage; readonly notes: AnswerNotes };

/** Details about how an answer arrived. */
export type AnswerNotes = {
  /** Number of unknown events that were skipped. */
  readonly ignored: number;
  /** Response headers in lower case: rate limits and request ids. */
  readonly headers: Readonly<Record<string, string>>;
  /** The provider's own explanation of a refusal or an unusual stop. */
  readonly explanation?: string;
  /** The provider's stop reason announces calls, even if the answer holds none. */
  readonly announcesCalls?: true;
};
