// Reads the rate limits in the headers of an answer.
//
// Two families are understood: `anthropic-ratelimit-<name>-<what>`, with resets as times, and
// `x-ratelimit-<what>-<name>`, with resets as durations such as 6m0s. Invalid values are ignored. A reset is returned
// in milliseconds from now; a past one is 0. If the clocks differ, times are compared with the server's `date` header.
// It has whole seconds only, so the local clock is used as long as both agree.

import { httpDurationMs, httpRetryAfterMs } from '@drover/core/model/wire/http/retry-after';

export type RateName = 'requests' | 'tokens' | 'input-tokens' | 'output-tokens';

/** One limit, at the time the answer began. */
export type Rate = {
  readonly name: RateName;
  readonly remaining: number;
  readonly limit?: number;
  readonly resetMs?: number; // until the full limit is available again
  /** Whether tokens read from the cache are counted too. */
  readonly countsCacheReads: boolean;
};

export type Rates = { readonly rates: readonly Rate[]; readonly retryAfterMs?: number };

export type Headers = Readonly<Record<string, string>>;

const NAMES: readonly RateName[] = ['requests', 'tokens', 'input-tokens', 'output-tokens'];
const CLOCKS_AGREE_MS = 2_500;
const RESET_MS_MAX = 7 * 24 * 60 * 60_000;
const RETRY_HEADERS: ReadonlySet<string> = new Set(['retry-after', 'retry-after-ms', 'date']);

/** `now`: milliseconds since 1970 on this machine's clock. */
export function readRateHeaders(headers: Headers, now: number): Rates {
  const clock = clockOfRateHeaders(headers, now);
  const rates = NAMES.flatMap((name) => {
    const timed = (what: string) => headers[`anthropic-ratelimit-${name}-${what}`];
    const lasting = (what: string) => headers[`x-ratelimit-${what}-${name}`];
    return [
      ...readRateHeader(name, timed, { resetMs: rateResetMs(timed('reset'), clock), countsCacheReads: false }),
      ...readRateHeader(name, lasting, { resetMs: rateSpanMs(lasting('reset')), countsCacheReads: true }),
    ];
  });
  // Only an explicit retry header counts: with all headers, any reset time would be used.
  const asked = httpRetryAfterMs((header) => (RETRY_HEADERS.has(header) ? headers[header] : undefined), '');
  return { rates, ...(asked !== undefined && { retryAfterMs: asked }) };
}

function readRateHeader(
  name: RateName,
  header: (what: string) => string | undefined,
  { resetMs, countsCacheReads }: { readonly resetMs: number | undefined; readonly countsCacheReads: boolean },
): readonly Rate[] {
  const remaining = rateHeaderCount(header('remaining'));
  const limit = rateHeaderCount(header('limit'));
  if (remaining === undefined || limit === 0) return [];
  return [
    {
      name,
      remaining,
      ...(limit !== undefined && { limit: Math.max(limit, remaining) }),
      ...(resetMs !== undefined && resetMs <= RESET_MS_MAX && { resetMs }),
      countsCacheReads,
    },
  ];
}

function clockOfRateHeaders(headers: Headers, now: number): number {
  const date = Date.parse(headers['date'] ?? '');
  return Number.isNaN(date) || Math.abs(date - now) < CLOCKS_AGREE_MS ? now : date;
}

function rateResetMs(text: string | undefined, clock: number): number | undefined {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) ? undefined : Math.max(0, at - clock);
}

function rateSpanMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^[\s0.hms]*0[\s0.hms]*$/.test(text) ? 0 : httpDurationMs(text);
}

function rateHeaderCount(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d{1,15}(\.\d+)?\s*$/.test(text) ? Math.floor(Number(text)) : undefined;
}
