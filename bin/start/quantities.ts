// Durations, ages, budgets, counts and addresses as users type them: 30m, 30d, 5usd, 200ktok, 12, https://….

import { UsageError } from '@drover/core/errors';

// A longer timer fires at once in Node.
const DURATION_MS_MAX = 2 ** 31 - 1;

export type Budget = { readonly usd: number } | { readonly tokens: number };

const DURATION = /^(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/;
const DURATION_FORM = 'write it like 500ms, 90s, 30m or 1h30m';

/** In milliseconds. */
export function parseDuration(text: string): number {
  const parts = DURATION.exec(text);
  if (text === '' || parts === null) throw new UsageError(`'${text}' is not a duration; ${DURATION_FORM}`);
  const [hours, minutes, seconds, milliseconds] = parts.slice(1).map((part) => Number(part ?? 0));
  const ms = Math.round(
    (hours ?? 0) * 3_600_000 + (minutes ?? 0) * 60_000 + (seconds ?? 0) * 1_000 + (milliseconds ?? 0),
  );
  if (ms < 1) throw new UsageError(`'${text}' is no time at all; ${DURATION_FORM}`);
  if (ms > DURATION_MS_MAX) throw new UsageError(`'${text}' is too long; the longest is 24 days`);
  return ms;
}

const AGE = /^(\d+)([hdw])$/;
const AGE_FORM = 'write it like 12h, 30d or 8w';
const MS_IN: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };

/** In milliseconds. */
export function parseAge(text: string): number {
  const [, digits, unit = ''] = AGE.exec(text) ?? [];
  const ms = Number(digits) * (MS_IN[unit] ?? Number.NaN);
  if (!Number.isSafeInteger(ms)) throw new UsageError(`'${text}' is not an age; ${AGE_FORM}`);
  return ms;
}

const BUDGET = /^(\d+(?:\.\d+)?)(usd|tok|ktok|mtok)$/;
const BUDGET_FORM = 'write it like 5usd, 0.50usd, 200ktok or 1mtok';
const TOKENS_IN: Readonly<Record<string, number>> = { tok: 1, ktok: 1_000, mtok: 1_000_000 };

export function parseBudget(text: string): Budget {
  const [, digits, unit] = BUDGET.exec(text) ?? [];
  if (digits === undefined || unit === undefined) throw new UsageError(`'${text}' is not a budget; ${BUDGET_FORM}`);
  const tokensInUnit = TOKENS_IN[unit];
  const budget = tokensInUnit === undefined ? { usd: Number(digits) } : { tokens: Number(digits) * tokensInUnit };
  const amount = 'usd' in budget ? budget.usd : budget.tokens;
  if (amount <= 0) throw new UsageError(`'${text}' buys nothing; ${BUDGET_FORM}`);
  if (!Number.isSafeInteger(Math.ceil(amount))) throw new UsageError(`'${text}' is too large; ${BUDGET_FORM}`);
  return 'tokens' in budget ? { tokens: Math.floor(budget.tokens) } : budget;
}

/** A whole number within inclusive bounds. */
export function parseCount(text: string, min: number, max: number): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(count >= min && count <= max)) {
    throw new UsageError(`'${text}' is not a whole number from ${min} to ${max}`);
  }
  return count;
}

export function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') && url.hostname !== '';
}
