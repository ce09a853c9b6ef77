// Prompt caching, as the real servers do it, so that a prompt which shares its beginning with an
// earlier one is reported as read from the cache.
//
// ANTHROPIC
//   The prompt is a row of blocks: tools, system, messages. A block with cache_control is a mark; what
//   a mark covers is written to the cache, and a later prompt finds it by looking back from each of its
//   own marks. Nothing shorter than the minimum is kept.
// OPENAI
//   The longest common beginning is found without marks, in steps of 128 tokens.
//
// In both, an entry exists only once the answer that wrote it has begun: requests sent at the same
// moment do not find each other's.

import { createHash } from 'node:crypto';
import { isRehearsalObject, rehearsalObjectsIn, rehearsalText, type Json, type JsonObject } from '../json.ts';
import type { CacheSettings } from '../script.ts';
import { meterTokensIn, meterWordsIn } from './tokens.ts';
import type { Api, TokenCounts } from '../wire/wire.ts';

const TOKENS_MIN = 1_024;
const LOOKBACK_BLOCKS = 20;
const STEP_TOKENS = 128;
const CHARS_PER_TOKEN = 4;
const TTL_MS = 5 * 60_000;
const LONG_TTL_MS = 60 * 60_000;
const ENTRIES_MAX = 200_000;

export type Prompt = {
  readonly counts: Omit<TokenCounts, 'output' | 'reasoning'>;
  readonly tokens: number;
  /** Called when the answer begins: from now on its cache entries can be read. */
  readonly begin: () => void;
};

export type PromptCache = (api: Api, body: JsonObject) => Prompt;

export function meterPromptCache({
  enabled = true,
  tokensMin = TOKENS_MIN,
  lookbackBlocks = LOOKBACK_BLOCKS,
}: CacheSettings): PromptCache {
  const entries = new Map<string, number>();
  const store: Store = {
    tokensMin,
    has: (key) => (entries.get(key) ?? 0) > performance.now(),
    keep: (key, ttlMs) => {
      // Deleted first, so that the oldest entries come first.
      entries.delete(key);
      entries.set(key, performance.now() + ttlMs);
      if (entries.size > ENTRIES_MAX) for (const oldest of entries.keys()) return void entries.delete(oldest);
    },
  };
  return (api, body) => {
    if (!enabled) return uncachedByMeter(meterTokensIn(meteredPrompt(api, body)));
    return api === 'anthropic' ? meterCacheByBlocks(body, store, lookbackBlocks) : meterCacheBySteps(api, body, store);
  };
}

type Store = {
  readonly tokensMin: number;
  readonly has: (key: string) => boolean;
  readonly keep: (key: string, ttlMs: number) => void;
};

function uncachedByMeter(tokens: number): Prompt {
  return { counts: { input: tokens, cacheRead: 0, cacheWrite: 0 }, tokens, begin: () => undefined };
}

// ── anthropic ─────────────────────────────────────────────────────────────────────────────────

type CacheBlock = { readonly value: JsonObject; readonly mark: Json | undefined; readonly salt: string };

function meterCacheByBlocks(body: JsonObject, store: Store, lookbackBlocks: number): Prompt {
  const rows: { readonly key: string; readonly tokens: number; readonly ttlMs: number | undefined }[] = [];
  let key = rehearsalText(body['model']);
  let tokens = 0;
  for (const { value, mark, salt } of meteredCacheBlocks(body)) {
    key = meterCacheHash(key, `${salt}${JSON.stringify(value)}`);
    tokens += meterTokensIn(value);
    rows.push({
      key,
      tokens,
      ttlMs: isRehearsalObject(mark) ? (mark['ttl'] === '1h' ? LONG_TTL_MS : TTL_MS) : undefined,
    });
  }
  const marked = rows.flatMap((row, index) =>
    row.ttlMs !== undefined && row.tokens >= store.tokensMin ? [{ ...row, ttlMs: row.ttlMs, index }] : [],
  );
  const reads = marked.map(({ index }) =>
    rows.slice(Math.max(0, index + 1 - lookbackBlocks), index + 1).findLast((row) => store.has(row.key)),
  );
  const cacheRead = Math.max(0, ...reads.map((row) => row?.tokens ?? 0));
  const cacheWrite = Math.max(0, (marked.at(-1)?.tokens ?? 0) - cacheRead);
  return {
    counts: { input: tokens - cacheRead - cacheWrite, cacheRead, cacheWrite },
    tokens,
    begin: () => {
      for (const row of marked) store.keep(row.key, row.ttlMs);
    },
  };
}

function meteredCacheBlocks(body: JsonObject): readonly CacheBlock[] {
  const block = (value: JsonObject, salt: string): CacheBlock => {
    const { cache_control: mark, ...rest } = value;
    return { value: rest, mark, salt };
  };
  const texts = (content: Json | undefined): readonly JsonObject[] =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : rehearsalObjectsIn(content);
  // These two settings change how messages are read, so only the messages' part of the cache is lost.
  const manner = JSON.stringify([body['tool_choice'] ?? null, body['thinking'] ?? null]);
  const all = [
    ...rehearsalObjectsIn(body['tools']).map((tool) => block(tool, 'tool')),
    ...texts(body['system']).map((text) => block(text, 'system')),
    ...rehearsalObjectsIn(body['messages']).flatMap((message) =>
      texts(message['content']).map((part) => block(part, `${rehearsalText(message['role'])}${manner}`)),
    ),
  ];
  // A mark on the whole request stands for a mark on its last block.
  const last = all.at(-1);
  return isRehearsalObject(body['cache_control']) && last !== undefined
    ? [...all.slice(0, -1), { ...last, mark: body['cache_control'] }]
    : all;
}

// ── openai ────────────────────────────────────────────────────────────────────────────────────

function meterCacheBySteps(api: Api, body: JsonObject, store: Store): Prompt {
  const prompt = meteredPrompt(api, body);
  const tokens = meterTokensIn(prompt);
  const text = meterWordsIn(prompt).join('');
  const keys: string[] = [];
  let key = `${rehearsalText(body['model'])} ${JSON.stringify(body['prompt_cache_key'] ?? null)}`;
  let cacheRead = 0;
  const steps = Math.floor(tokens / STEP_TOKENS);
  for (let step = 1; step <= steps; step++) {
    key = meterCacheHash(
      key,
      text.slice((step - 1) * STEP_TOKENS * CHARS_PER_TOKEN, step * STEP_TOKENS * CHARS_PER_TOKEN),
    );
    if (step * STEP_TOKENS < store.tokensMin) continue;
    keys.push(key);
    if (store.has(key)) cacheRead = step * STEP_TOKENS;
  }
  return {
    counts: { input: tokens - cacheRead, cacheRead, cacheWrite: 0 },
    tokens,
    begin: () => {
      for (const one of keys) store.keep(one, TTL_MS);
    },
  };
}

function meteredPrompt(api: Api, body: JsonObject): Json {
  const none: readonly Json[] = [];
  switch (api) {
    case 'anthropic':
      return [body['tools'] ?? none, body['system'] ?? none, body['messages'] ?? none];
    case 'openai':
      return [body['tools'] ?? none, body['instructions'] ?? none, body['input'] ?? none];
    case 'openai-chat':
      return [body['tools'] ?? none, body['messages'] ?? none];
  }
}

function meterCacheHash(before: string, text: string): string {
  return createHash('sha1').update(before).update(text).digest('base64');
}
