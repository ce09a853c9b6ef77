// A script: the answers of a rehearsed model, and the behaviour of the server around it.
//
// The compiler checks a script written in TypeScript. loadScript checks one from a YAML file, and names file, line and
// column of a mistake.
//
// An answer with conditions (`when`, or a function) is given whenever they hold. The other answers are given once
// each, in order, to requests for which no conditional answer holds.

import type { FaultRule, FaultSpec } from './faults/fault.ts';
import type { JsonObject } from './json.ts';
import type { OverflowDialect } from './strict/overflow.ts';
import type { Api, RequestView, Stop, TokenCounts } from './wire/wire.ts';

export type Script = {
  /** Answers for requests that belong to no named agent. */
  readonly answers?: readonly AnswerSource[];
  readonly agents?: Readonly<Record<string, readonly AnswerSource[] | AgentScript>>;
  /** Starts again after the last of the ordered answers. */
  readonly loop?: boolean;
  /** The answer if no other fits. */
  readonly otherwise?: Answer;
  readonly order?: Order;

  readonly faults?: readonly FaultRule[];
  /** Seed that makes faults with a `rate` the same in every run. */
  readonly seed?: number;

  /** If false, requests that the real APIs refuse are accepted. */
  readonly strict?: boolean;
  /** The accepted keys (default: any key, or none). */
  readonly keys?: readonly string[];
  /** The longest prompt, for all models or by model (default: no limit). */
  readonly contextTokens?: number | Readonly<Record<string, number>>;
  readonly overflowDialect?: OverflowDialect;
  readonly bodyBytesMax?: number;
  readonly tooLargeAs?: 'json' | 'html';
  readonly cache?: CacheSettings;
  readonly limits?: RateLimits;
  /** Number of characters in a streamed piece of text. */
  readonly chunkChars?: number;
};

/**
 * `requests`: the nth request gets the nth answer. `conversation`: the number of assistant messages in the request
 * selects the answer.
 */
type Order = 'requests' | 'conversation';

export type AgentScript = {
  /** A regular expression for the system prompt and the first user text (default: the agent's name as a word). */
  readonly marker?: string | RegExp;
  /**
   * Replaces the marker: a regular expression for any user text. A conversation with such a text belongs to this agent
   * from then on, and its answers are counted from there.
   */
  readonly assigned?: string | RegExp;
  readonly answers: readonly AnswerSource[];
  readonly loop?: boolean;
  readonly otherwise?: Answer;
  readonly order?: Order;
};

export type AnswerSource = Answer | ((request: RequestView) => Answer | undefined);

export type Answer = {
  readonly thinking?: string;
  readonly redactedThinking?: string;
  readonly text?: Text;
  readonly calls?: readonly ScriptedCall[];
  /** Parts in any order, instead of the fields above. */
  readonly parts?: readonly AnswerPart[];
  readonly stop?: Stop;

  readonly when?: When;
  /** Number of times that an answer with conditions may be given (default: any). */
  readonly times?: number;

  /** Delay before the response begins. */
  readonly delayMs?: number;
  readonly tokensPerSecond?: number;
  readonly usage?: Partial<TokenCounts>;
  readonly fault?: FaultSpec | readonly FaultSpec[];
  /** A response to send unchanged, in place of everything else. */
  readonly raw?: RawResponse;
};

export type Text = string | { readonly repeat: string; readonly times: number };

export type AnswerPart =
  | { readonly text: Text }
  | { readonly thinking: string }
  | { readonly redactedThinking: string }
  | { readonly call: ScriptedCall };

export type ScriptedCall = {
  readonly name: string;
  readonly args?: JsonObject;
  /** Default: a body like the API's own. */
  readonly id?: string;
};

export type When = {
  /**
   * A regular expression for everything since the last answer, results or a user text; its groups are `{{ match.1 }}`
   * and so on.
   */
  readonly text?: string | RegExp;
  readonly system?: string | RegExp;
  readonly model?: string | RegExp;
  /** The name of a tool whose result is among the latest. */
  readonly tool?: string;
  readonly api?: Api;
  /** 1 for the first request after a user text, 2 for the request with the results of its calls, and so on. */
  readonly step?: number;
  /** Number of user texts so far. */
  readonly turn?: number;
};

export type RawResponse = {
  readonly body: string | Uint8Array;
  readonly contentType?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
};

export type CacheSettings = {
  readonly enabled?: boolean;
  readonly tokensMin?: number;
  readonly lookbackBlocks?: number;
};

/** Each limit is per window (default: one minute). */
export type RateLimits = {
  readonly requests?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly concurrency?: number;
  readonly windowMs?: number;
};

/** A mistake in a script: `path:line:column: what; fix`. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError';
}
