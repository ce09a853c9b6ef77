// Lists known providers and models from the catalog, the config and the environment. Shows no key.

import type { ModelRoles } from '@drover/protocol/run';
import { UsageError } from '@drover/core/errors';
import { modelFactsOf, knownModels, knownProviders, type Price } from '@drover/core/model/catalog';
import { type Settings, environmentText } from '../start/settings.ts';
import type { Style } from '../views/text/style.ts';
import { countText } from '../views/text/figures.ts';
import { cleanText, cutText, widthOfText } from '../views/text/terminal-text.ts';
import { readApiKey, nameModel } from './model-choice.ts';
import { defaultModel } from './model-names.ts';

type ListedProvider = {
  readonly provider: string;
  readonly keyEnv?: string; // the variable of the key; absent if no key is sent
  readonly hasKey: boolean;
  readonly baseUrl?: string; // absent: the provider's own address
};

type ListedModel = {
  readonly model: string; // provider/name
  readonly contextTokens: number;
  readonly price?: Price; // US dollars per million tokens
};

export type ListedModels = {
  readonly providers: readonly ListedProvider[];
  readonly models: readonly ListedModel[];
  /** Absent if the user must name one. */
  readonly default?: { readonly model: string; readonly because: string };
  /** In order: the first is preferred, the others are fallbacks. Empty if the user must name one. */
  readonly roles: ModelRoles;
};

export function listModels(settings: Settings): ListedModels {
  const chosen = listedDefaultModel(settings);
  const named = (name: keyof ModelRoles) => settings.models[name]?.map((each) => listedModelLabel(each.name, settings));
  const role = (name: 'plan' | 'work') => named(name) ?? (chosen === undefined ? [] : [chosen.model]);
  const review = named('review');
  return {
    providers: [...listCatalogProviders(settings), ...listConfiguredProviders(settings)],
    models: listPricedModels(settings),
    ...(chosen !== undefined && { default: chosen }),
    roles: { plan: role('plan'), work: role('work'), ...(review !== undefined && { review }) },
  };
}

function listedDefaultModel(settings: Settings): ListedModels['default'] {
  if (settings.model !== undefined)
    return { model: listedModelLabel(settings.model, settings), because: 'your config' };
  const byKey = defaultModel(settings);
  return byKey && { model: byKey.label, because: `${byKey.keyEnv} is set` };
}

/** An unreadable name is shown as it is; the command that uses it reports the mistake. */
function listedModelLabel(name: string, settings: Settings): string {
  try {
    return nameModel(name, settings).label;
  } catch (error) {
    if (error instanceof UsageError) return `${name} (unknown)`;
    throw error;
  }
}

function listCatalogProviders(settings: Settings): readonly ListedProvider[] {
  return knownProviders
    .filter(({ id }) => !settings.providers.has(id))
    .map(({ id, keyEnv, baseUrlEnv }) => {
      const baseUrl = environmentText(settings.env, baseUrlEnv);
      return {
        provider: id,
        keyEnv,
        hasKey: hasProviderKey(keyEnv, settings),
        ...(baseUrl !== undefined && { baseUrl: providerAddressWithoutLogin(baseUrl) }),
      };
    });
}

function listConfiguredProviders(settings: Settings): readonly ListedProvider[] {
  return [...settings.providers].map(([provider, { baseUrl, keyEnv }]) => ({
    provider,
    ...(keyEnv !== undefined && { keyEnv }),
    hasKey: keyEnv !== undefined && hasProviderKey(keyEnv, settings),
    baseUrl: providerAddressWithoutLogin(baseUrl),
  }));
}

function hasProviderKey(keyEnv: string, settings: Settings): boolean {
  try {
    return readApiKey(settings, keyEnv) !== undefined;
  } catch (error) {
    // A value that no header can contain is not a key.
    if (error instanceof UsageError) return false;
    throw error;
  }
}

function listPricedModels({ prices, providers }: Settings): readonly ListedModel[] {
  const known = knownModels.filter(({ provider }) => !providers.has(provider));
  const labels = new Set([...known.map(({ provider, name }) => `${provider}/${name}`), ...prices.keys()]);
  return [...labels].map((model) => {
    const { contextTokens, price: usual } = modelFactsOf(model.slice(model.indexOf('/') + 1));
    const price = prices.get(model) ?? usual;
    return { model, contextTokens, ...(price !== undefined && { price }) };
  });
}

/** The address without any part that may be a password or token. */
export function providerAddressWithoutLogin(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname.replace(/\/$/, '')}`;
}

type Page = { readonly columns: number; readonly style: Style };

export function formatModelList(listed: ListedModels, { columns, style }: Page): string {
  const { plan, work, review } = listed.roles;
  const words = (labels: readonly string[]) => (labels.length === 0 ? 'none: pass --model' : labels.join(', else '));
  const chosen = listed.default;
  const providers = listed.providers.map(({ provider, keyEnv, hasKey: has, baseUrl }) => [
    provider,
    keyEnv === undefined ? 'needs no key' : `${keyEnv} ${has ? 'is set' : 'is not set'}`,
    baseUrl ?? '',
  ]);
  const models = listed.models.map(({ model, contextTokens, price }) => [
    model,
    `${countText(contextTokens)} tokens`,
    price === undefined ? 'price unknown' : `$${price.input} in, $${price.output} out`,
    price === undefined
      ? ''
      : `cache $${roundModelPrice(price.cacheRead)} read, $${roundModelPrice(price.cacheWrite)} write`,
    model === chosen?.model ? 'default' : '',
  ]);
  const roles = [
    ['default', chosen === undefined ? 'none: pass --model, or set a key' : `${chosen.model} (${chosen.because})`],
    ['plan', words(plan)],
    ['work', words(work)],
    ...(review === undefined ? [] : [['review', words(review)]]),
  ];
  const section = (title: string, rows: readonly (readonly string[])[]) =>
    [style('bold', title), ...modelTable(rows).map((line) => cutText(`  ${line}`, columns))].join('\n');
  return `${[
    section('Providers', providers),
    section('Models (US dollars per million tokens)', models),
    section('In use', roles),
  ].join('\n\n')}\n`;
}

function roundModelPrice(price: number): number {
  return Math.round(price * 10_000) / 10_000;
}

function modelTable(rows: readonly (readonly string[])[]): readonly string[] {
  const cells = rows.map((row) => row.map((text) => cleanText(text)));
  const widths = (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => widthOfText(row[at] ?? ''))));
  return cells.map((row) =>
    row
      .map((text, at) => text + ' '.repeat(Math.max(0, (widths[at] ?? 0) - widthOfText(text))))
      .join('  ')
      .trimEnd(),
  );
}
