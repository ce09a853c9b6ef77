// Catalog of providers and models, as data.
//
// To add a provider, write model/providers/<name>.ts and add a line to `wireApis`. A server that speaks an existing
// format needs no code, only an entry in the user's config. Prices are defaults in US dollars per million tokens;
// the config overrides them. An unlisted model has no price.

import { UsageError } from '../errors.ts';
import type { Provider, ProviderOptions, StreamTimeouts } from './provider.ts';
import type { Usage } from '@drover/protocol/messages';

export type Api = 'anthropic' | 'openai' | 'openai-chat';

export type KnownProvider = {
  readonly id: string;
  readonly api: Api;
  readonly keyEnv: string;
  readonly baseUrlEnv: string;
  /** The model that is used if the user names none. Absent if another entry speaks for the same key. */
  readonly defaultModel?: string;
};

/** In the order in which drover looks for a key when no model is named. */
export const knownProviders: readonly KnownProvider[] = [
  {
    id: 'anthropic',
    api: 'anthropic',
    keyEnv: 'ANTHROPIC_API_KEY',
    baseUrlEnv: 'ANTHROPIC_BASE_URL',
    defaultModel: 'claude-sonnet-4-5',
  },
  {
    id: 'openai',
    api: 'openai',
    keyEnv: 'OPENAI_API_KEY',
    baseUrlEnv: 'OPENAI_BASE_URL',
    defaultModel: 'gpt-5',
  },
  { id: 'openai-chat', api: 'openai-chat', keyEnv: 'OPENAI_API_KEY', baseUrlEnv: 'OPENAI_BASE_URL' },
];

/** The wire formats. Each SDK is imported only when used: together they take a third of a second to load. */
export const wireApis: Readonly<Record<Api, (options: ProviderOptions) => Promise<Provider>>> = {
  anthropic: async (options) => (await import('./providers/anthropic.ts')).anthropicProvider(options),
  openai: async (options) => (await import('./providers/openai-responses.ts')).openaiResponsesProvider(options),
  'openai-chat': async (options) => (await import('./providers/openai-chat.ts')).openaiChatProvider(options),
};

// A model may think for many minutes while the server sends only keep-alives, so `progressMs` is long.
// A server that sends no byte for five minutes is considered gone.
export const defaultTimeouts: StreamTimeouts = {
  headersMs: 120_000,
  firstByteMs: 120_000,
  silenceMs: 300_000,
  progressMs: 1_200_000,
};

/** US dollars per million tokens. */
export type Price = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};

export type ModelFacts = { readonly contextTokens: number; readonly outputTokensMax: number; readonly price?: Price };

const UNKNOWN_MODEL: ModelFacts = { contextTokens: 200_000, outputTokensMax: 16_384 };

// Matched by prefix on the model name without the provider; the longest prefix wins.
const models: readonly (readonly [prefix: string, facts: ModelFacts])[] = [
  ['claude-opus-4-1', anthropicCatalogModel(32_000, 15, 75)],
  ['claude-opus-4', anthropicCatalogModel(64_000, 5, 25)],
  ['claude-sonnet-4', anthropicCatalogModel(64_000, 3, 15)],
  ['claude-haiku-4', anthropicCatalogModel(64_000, 1, 5)],
  ['claude-3-7-sonnet', anthropicCatalogModel(64_000, 3, 15)],
  ['claude-3-5-haiku', anthropicCatalogModel(8_192, 0.8, 4)],
  ['claude-3', anthropicCatalogModel(4_096, 3, 15)],
  ['gpt-5-nano', openaiCatalogModel(400_000, 0.05, 0.4)],
  ['gpt-5-mini', openaiCatalogModel(400_000, 0.25, 2)],
  ['gpt-5', openaiCatalogModel(400_000, 1.25, 10)],
  ['gpt-4.1-mini', openaiCatalogModel(1_000_000, 0.4, 1.6, 1 / 4)],
  ['gpt-4.1', openaiCatalogModel(1_000_000, 2, 8, 1 / 4)],
  ['gpt-4o-mini', openaiCatalogModel(128_000, 0.15, 0.6, 1 / 2)],
  ['gpt-4o', openaiCatalogModel(128_000, 2.5, 10, 1 / 2)],
];

function anthropicCatalogModel(outputTokensMax: number, input: number, output: number): ModelFacts {
  return {
    contextTokens: 200_000,
    outputTokensMax: Math.min(outputTokensMax, 32_000),
    price: { input, output, cacheRead: input / 10, cacheWrite: input * 1.25 },
  };
}

type OpenaiFacts = readonly [contextTokens: number, input: number, output: number, cachedPart?: number];

/** `cachedPart`: what input from the cache costs, as a part of the price of input. */
function openaiCatalogModel(...[contextTokens, input, output, cachedPart = 1 / 10]: OpenaiFacts): ModelFacts {
  const price = { input, output, cacheRead: input * cachedPart, cacheWrite: input };
  return { contextTokens, outputTokensMax: 16_384, price };
}

/** A model that the catalog knows by its full name. `provider` is the first entry that serves it. */
type KnownModel = { readonly provider: string; readonly name: string };

export const knownModels: readonly KnownModel[] = [
  ...['claude-sonnet-4-5', 'claude-opus-4-5', 'claude-opus-4-1', 'claude-haiku-4-5', 'claude-3-7-sonnet-latest'].map(
    (name) => ({ provider: 'anthropic', name }),
  ),
  ...['gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'gpt-4.1', 'gpt-4.1-mini', 'gpt-4o', 'gpt-4o-mini'].map((name) => ({
    provider: 'openai',
    name,
  })),
];

/** The provider of a model that the catalog has facts about, by its prefix; undefined for any other. */
export function providerOfModel(model: string): string | undefined {
  const known = models.find(([prefix]) => model.startsWith(prefix));
  if (known === undefined) return undefined;
  return known[0].startsWith('claude') ? 'anthropic' : 'openai';
}

export function modelFactsOf(model: string): ModelFacts {
  const known = models.filter(([prefix]) => model.startsWith(prefix)).sort(([a], [b]) => b.length - a.length);
  return known[0]?.[1] ?? UNKNOWN_MODEL;
}

export function modelCostOf(usage: Usage, price: Price): number {
  return (
    (usage.input * price.input +
      usage.output * price.output +
      usage.cacheRead * price.cacheRead +
      usage.cacheWrite * price.cacheWrite) /
    1_000_000
  );
}

/** Splits `provider/name` at the first slash; the name may contain more slashes. */
export function parseModelLabel(text: string): { readonly provider: string; readonly name: string } {
  const slash = text.indexOf('/');
  if (slash <= 0 || slash === text.length - 1) {
    throw new UsageError(
      `--model ${text} is not of the form provider/name; write for example --model anthropic/claude-sonnet-4-5`,
    );
  }
  return { provider: text.slice(0, slash), name: text.slice(slash + 1) };
}
