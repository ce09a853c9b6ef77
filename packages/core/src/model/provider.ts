// A provider: one model API behind one function.
//
// Guarantees of `stream`
//   1. It throws DroverError, or yields exactly one `finished`, last. Callers need not handle anything else.
//   2. It never retries: see agent/ask.ts. It never builds history: see request.ts.

import type { ModelEvent, ModelRequest, SamplingOption } from '@drover/protocol/model';

/** Limits of a wire format that the request builder must respect. */
export type WireLimits = {
  readonly callIdPattern: RegExp; // allowed call ids; the builder rewrites others
  readonly callIdCharsMax: number;
  readonly cacheMarksMax: number;
  /** Native payload types that, like thinking, must not be the last part of a message. */
  readonly leadingTypes: readonly string[];
  readonly bodyBytesMax: number;
  readonly imageBytesMax: number;
};

/** Timeouts of a response stream, in milliseconds. */
export type StreamTimeouts = {
  readonly headersMs: number;
  readonly firstByteMs: number;
  readonly silenceMs: number; // no bytes at all
  readonly progressMs: number; // only comments and pings
};

export type Provider = {
  readonly id: string; // as in --model provider/name
  readonly limits: WireLimits;
  /** Whether the model supports the option. If absent, it supports none. */
  readonly takes?: (option: SamplingOption, model: string) => boolean;
  readonly stream: (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;
};

/** Options that every provider is created with. */
export type ProviderOptions = {
  readonly id: string;
  readonly apiKey: string;
  /** The variable that holds the key, for error messages (default: the usual variable of the format). */
  readonly keyEnv?: string;
  readonly baseUrl?: string;
  readonly timeouts: StreamTimeouts;
};
