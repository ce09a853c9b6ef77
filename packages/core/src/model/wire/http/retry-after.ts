// Retry-after: reads how long a server asks to wait, from any of the headers that servers use.
//
// A time in the past, a negative number, zero and invalid text count as absent. A date is compared with the server's
// own clock if it sent one, so a wrong local clock does not shorten the wait.

export type HeaderLookup = (name: string) => string | undefined;

const RATE_LIMITS = ['requests', 'tokens', 'input-tokens', 'output-tokens'];

/** Milliseconds to wait; undefined if the server did not say. `message` is the server's error text. */
export function httpRetryAfterMs(header: HeaderLookup, message: string): number | undefined {
  return (
    positiveRetryMs(httpHeaderNumber(header('retry-after-ms'))) ??
    readRetryAfterHeader(header) ??
    retryAfterLimitReset(header) ??
    // OpenAI also puts the delay into its message: "Please try again in 1.242s."
    httpDurationMs(/(?:try again|retry) in ([\dhms.]+)/i.exec(message)?.[1]?.replace(/\.$/, ''))
  );
}

function readRetryAfterHeader(header: HeaderLookup): number | undefined {
  const value = header('retry-after');
  const seconds = httpHeaderNumber(value);
  if (seconds !== undefined) return positiveRetryMs(seconds * 1_000);
  return value !== undefined && /[a-z]/i.test(value) ? retryAfterUntilMs(value, header) : undefined;
}

// Takes the longest reset among exhausted limits, or the earliest reset if no limit is exhausted.
function retryAfterLimitReset(header: HeaderLookup): number | undefined {
  const limits = RATE_LIMITS.flatMap((name) => {
    const anthropic = retryAfterUntilMs(header(`anthropic-ratelimit-${name}-reset`), header);
    const openai = httpDurationMs(header(`x-ratelimit-reset-${name}`));
    const resetMs = anthropic ?? openai;
    const left = header(`anthropic-ratelimit-${name}-remaining`) ?? header(`x-ratelimit-remaining-${name}`);
    return resetMs === undefined ? [] : [{ resetMs, isUsedUp: httpHeaderNumber(left) === 0 }];
  });
  const usedUp = limits.filter(({ isUsedUp }) => isUsedUp).map(({ resetMs }) => resetMs);
  if (usedUp.length > 0) return Math.max(...usedUp);
  return limits.length > 0 ? Math.min(...limits.map(({ resetMs }) => resetMs)) : undefined;
}

function retryAfterUntilMs(date: string | undefined, header: HeaderLookup): number | undefined {
  const at = Date.parse(date ?? '');
  const now = Date.parse(header('date') ?? '');
  return positiveRetryMs(at - (Number.isNaN(now) ? Date.now() : now));
}

/** Parses "1s", "6m0s", "20ms", "1h2m3.5s" or plain seconds. */
export function httpDurationMs(text: string | undefined): number | undefined {
  const plain = httpHeaderNumber(text);
  if (plain !== undefined) return positiveRetryMs(plain * 1_000);
  const match = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/.exec(text?.trim() ?? '');
  if (match === null) return undefined;
  const [hours, minutes, seconds, ms] = match.slice(1).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
  ];
  return positiveRetryMs(((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms);
}

function httpHeaderNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

function positiveRetryMs(ms: number | undefined): number | undefined {
  return ms !== undefined && Number.isFinite(ms) && ms > 0 ? Math.ceil(ms) : undefined;
}
