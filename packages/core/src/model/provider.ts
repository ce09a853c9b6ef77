// A provider: one model API behind one function.
//
// Guarantees of `stream`
//   1. It throws DroverError, or yields exactly one `finished`, last. Callers need handle nothing else.
//   2. It never retries: see agent/ask.ts. It never builds history: see request.ts.

import type { ModelEvent, ModelRequest, SamplingOption } from '@drover/protocol/model';

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
