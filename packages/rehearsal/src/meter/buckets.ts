// Rate limits: token buckets that refill steadily, and the headers that report them.

import type { RateLimits } from '../script.ts';
import type { Api, Refusal } from '../wire/wire.ts';
import type { Prompt } from './cache.ts';

const WINDOW_MS = 60_000;

export type Limiter = {
  /** Returns a refusal, or undefined after taking the request's tokens. */
  readonly admit: (api: Api, prompt: Prompt, inFlight: number) => Refusal | undefined;
  /** Takes the usage of an answer, which is known only afterwards. */
  readonly spend: (outputTokens: number) => void;
  readonly headers: (api: Api) => Readonly<Record<string, string>>;
};

export function meterRateLimits(limits: RateLimits): Limiter {
  const { windowMs = WINDOW_MS, concurrency = Infinity } = limits;
  const requests = meterBucket(limits.requests, windowMs);
  const input = meterBucket(limits.inputTokens, windowMs);
  const output = meterBucket(limits.outputTokens, windowMs);

  const headers: Limiter['headers'] = (api) => {
    const named: readonly (readonly [string, Bucket | undefined])[] =
      api === 'anthropic'
        ? [
            ['requests', requests],
            ['input-tokens', input],
            ['output-tokens', output],
          ]
        : [
            ['requests', requests],
            ['tokens', input],
          ];
    return Object.fromEntries(
      named.flatMap(([name, one]) => (one === undefined ? [] : describeMeterBucket(api, name, one))),
    );
  };
  const refuse = (api: Api, excess: Excess): Refusal => ({
    ...meterLimitExceeded(api, excess),
    headers: { ...headers(api), ...meterWaitHeaders(api, excess.waitMs) },
  });

  return {
    headers,
    spend: (outputTokens) => output?.take(outputTokens),
    admit: (api, { counts }, inFlight) => {
      if (inFlight > concurrency)
        return refuse(api, { what: 'concurrent connections', limit: concurrency, waitMs: 1_000 });
      // Cache reads do not count against Anthropic's limit.
      const inputTokens = counts.input + counts.cacheWrite + (api === 'anthropic' ? 0 : counts.cacheRead);
      const needs: readonly (readonly [string, Bucket | undefined, number])[] = [
        ['requests', requests, 1],
        ['input tokens', input, inputTokens],
        ['output tokens', output, 1],
      ];
      for (const [what, one, amount] of needs) {
        const waitMs = one?.waitMs(amount) ?? 0;
        if (one !== undefined && waitMs > 0) return refuse(api, { what, limit: one.capacity, waitMs });
      }
      requests?.take(1);
      input?.take(inputTokens);
      return undefined;
    },
  };
}

type Bucket = {
  readonly capacity: number;
  readonly level: () => number;
  /** Time until this amount is available; never for more than the whole bucket. */
  readonly waitMs: (amount: number) => number;
  readonly take: (amount: number) => void;
};

function meterBucket(capacity: number | undefined, windowMs: number): Bucket | undefined {
  if (capacity === undefined) return undefined;
  const perMs = capacity / windowMs;
  let level = capacity;
  let at = performance.now();
  const current = (): number => {
    const now = performance.now();
    level = Math.min(capacity, level + (now - at) * perMs);
    at = now;
    return level;
  };
  return {
    capacity,
    level: current,
    waitMs: (amount) => Math.max(0, (amount - current()) / perMs),
    take: (amount) => {
      level = current() - amount;
    },
  };
}

function describeMeterBucket(api: Api, name: string, one: Bucket): readonly (readonly [string, string])[] {
  const remaining = String(Math.max(0, Math.floor(one.level())));
  const fullMs = one.waitMs(one.capacity);
  if (api === 'anthropic')
    return [
      [`anthropic-ratelimit-${name}-limit`, String(one.capacity)],
      [`anthropic-ratelimit-${name}-remaining`, remaining],
      [`anthropic-ratelimit-${name}-reset`, new Date(Date.now() + fullMs).toISOString()],
    ];
  return [
    [`x-ratelimit-limit-${name}`, String(one.capacity)],
    [`x-ratelimit-remaining-${name}`, remaining],
    [`x-ratelimit-reset-${name}`, meterDuration(fullMs)],
  ];
}

/** Formats such as `6m0s`, `1.5s` and `120ms`. */
function meterDuration(ms: number): string {
  if (ms < 1_000) return `${Math.ceil(ms)}ms`;
  const seconds = Math.ceil(ms) / 1_000;
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${Math.round(seconds % 60)}s`;
}

function meterWaitHeaders(api: Api, waitMs: number): Readonly<Record<string, string>> {
  const seconds = String(Math.ceil(waitMs / 1_000));
  return api === 'anthropic'
    ? { 'retry-after': seconds }
    : { 'retry-after': seconds, 'retry-after-ms': String(Math.ceil(waitMs)) };
}

type Excess = { readonly what: string; readonly limit: number; readonly waitMs: number };

function meterLimitExceeded(api: Api, { what, limit, waitMs }: Excess): Refusal {
  if (api === 'anthropic') {
    const message =
      what === 'concurrent connections'
        ? 'Number of concurrent connections has exceeded your rate limit.'
        : `This request would exceed your organization's rate limit of ${limit.toLocaleString('en')} ${what} per minute.`;
    return { status: 429, type: 'rate_limit_error', message };
  }
  const type = what === 'requests' ? 'requests' : 'tokens';
  return {
    status: 429,
    type,
    code: 'rate_limit_exceeded',
    message: `Rate limit reached on ${what} per min: Limit ${limit}. Please try again in ${meterDuration(waitMs)}.`,
  };
}
