// A request to a model and the events of its answer, as data: both cross the wire between a thread and its run.

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

/** How a model chooses its words, where its provider takes the option. */
export type Sampling = {
  readonly temperature?: number; // 0 to 2
  readonly topP?: number; // above 0, to 1
};

export type SamplingOption = keyof Sampling;

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
