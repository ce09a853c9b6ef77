// How long a server asks to wait, from whichever header it says so in.
//
// A time in the past, a negative number, zero or nonsense is no answer: the caller then waits as it
// would without one. A date is compared with the server's own clock where it gave one, so a clock that
// is wrong here does not turn a wait into none.

export type HeaderLookup = (name: string) => string | undefined;

const RATE_LIMITS = ['requests', 'tokens', 'input-tokens', 'output-tokens'];

/** Milliseconds from now, or undefined where the server did not say. `message` is its own text. */
export function retryAfterMs(header: HeaderLookup, message: string): number | undefined {
  return (
    positive(numberOf(header('retry-after-ms'))) ??
    retryAfter(header) ??
    resetOfLimits(header) ??
    // OpenAI writes it into the sentence, too: "Please try again in 1.242s."
    durationMs(/(?:try again|retry) in ([\dhms.]+)/i.exec(message)?.[1]?.replace(/\.$/, ''))
  );
}

function retryAfter(header: HeaderLookup): number | undefined {
  const value = header('retry-after');
  const seconds = numberOf(value);
  if (seconds !== undefined) return positive(seconds * 1_000);
  return value !== undefined && /[a-z]/i.test(value) ? untilMs(value, header) : undefined;
}

// Of the limits that are used up the one that takes longest, or where none says so the first to renew.
function resetOfLimits(header: HeaderLookup): number | undefined {
  const limits = RATE_LIMITS.flatMap((name) => {
    const anthropic = untilMs(header(`anthropic-ratelimit-${name}-reset`), header);
    const openai = durationMs(header(`x-ratelimit-reset-${name}`));
    const resetMs = anthropic ?? openai;
    const left = header(`anthropic-ratelimit-${name}-remaining`) ?? header(`x-ratelimit-remaining-${name}`);
    return resetMs === undefined ? [] : [{ resetMs, isUsedUp: numberOf(left) === 0 }];
  });
  const usedUp = limits.filter(({ isUsedUp }) => isUsedUp).map(({ resetMs }) => resetMs);
  if (usedUp.length > 0) return Math.max(...usedUp);
  return limits.length > 0 ? Math.min(...limits.map(({ resetMs }) => resetMs)) : undefined;
}

function untilMs(date: string | undefined, header: HeaderLookup): number | undefined {
  const at = Date.parse(date ?? '');
  const now = Date.parse(header('date') ?? '');
  return positive(at - (Number.isNaN(now) ? Date.now() : now));
}

/** "1s", "6m0s", "20ms", "1h2m3.5s", or plain seconds. */
export function durationMs(text: string | undefined): number | undefined {
  const plain = numberOf(text);
  if (plain !== undefined) return positive(plain * 1_000);
  const match = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/.exec(text?.trim() ?? '');
  if (match === null) return undefined;
  const [hours, minutes, seconds, ms] = match.slice(1).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
  ];
  return positive(((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms);
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

function positive(ms: number | undefined): number | undefined {
  return ms !== undefined && Number.isFinite(ms) && ms > 0 ? Math.ceil(ms) : undefined;
}
