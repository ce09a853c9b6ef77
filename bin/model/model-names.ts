// Model names: the default when the user names none, and the provider of a name without one.
//
// Guarantees
//   1. The default is the catalog's, of the first provider in the catalog's order whose key is set.
//   2. A name without a provider is accepted only if exactly one provider is known to serve it.
//   3. A misspelt name of a known provider is an error before the first request. A name that differs from a known
//      one only in its version may be a newer model, so it is accepted.

import { UsageError } from '@drover/core/errors';
import {
  modelFactsOf,
  knownModels,
  knownProviders,
  parseModelLabel,
  providerOfModel,
} from '@drover/core/model/catalog';
import { nearestKnownWord } from '@drover/documents/suggestion';
import { printError, type Io } from '../io.ts';
import { type Settings, environmentText } from '../start/settings.ts';

type DefaultModel = { readonly label: string; readonly keyEnv: string };

/** Undefined if no provider of the catalog has a key. */
export function defaultModel({ env, providers }: Settings): DefaultModel | undefined {
  for (const { id, keyEnv, defaultModel: name } of knownProviders) {
    // A provider that the config redefines is another server, whose models are unknown.
    if (name === undefined || providers.has(id) || (environmentText(env, keyEnv) ?? '').trim() === '') continue;
    return { label: `${id}/${name}`, keyEnv };
  }
  return undefined;
}

const told = new WeakSet<Io>();

/** Reports once which model is used by default. Silent if the user named one. */
export async function tellDefaultModel(wanted: string | undefined, settings: Settings, io: Io): Promise<void> {
  const chosen = wanted === undefined && settings.model === undefined ? defaultModel(settings) : undefined;
  if (chosen === undefined || told.has(io)) return;
  told.add(io);
  await printError(
    io,
    `using ${chosen.label}, because ${chosen.keyEnv} is set; --model or "model" in your config changes it`,
  );
}

/** Splits what the user typed into provider and name. */
export function readModelName(typed: string, settings: Settings): { readonly provider: string; readonly name: string } {
  if (typed.includes('/')) return parseModelLabel(typed);
  const owner = providerOfModel(typed);
  const priced = [...settings.prices.keys()].filter((label) => label.endsWith(`/${typed}`)).map(parseModelLabel);
  const owners = new Set([...(owner === undefined ? [] : [owner]), ...priced.map(({ provider }) => provider)]);
  const [only, ...others] = owners;
  if (only === undefined) {
    const near =
      nearestKnownWord(typed, [...settings.providers.keys()]) === undefined ? suggestModel(typed) : undefined;
    if (near !== undefined) throw new UsageError(`there is no model '${typed}'; did you mean ${near}?`);
    return parseModelLabel(typed);
  }
  if (others.length === 0) return { provider: only, name: typed };
  const choices = [...owners].map((provider) => `${provider}/${typed}`).join(' or ');
  throw new UsageError(`--model ${typed} could be ${choices}; write one of them`);
}

/** Throws UsageError if the name looks like a typo of a known one. Prices in the config make any name known. */
export function checkModelSpelling(provider: string, name: string, { providers, prices }: Settings): void {
  const isCatalog = knownProviders.some(({ id }) => id === provider) && !providers.has(provider);
  if (!isCatalog || prices.has(`${provider}/${name}`) || modelFactsOf(name).price !== undefined) return;
  const near = suggestModel(name);
  if (near !== undefined) {
    throw new UsageError(
      `${provider} has no model '${name}' that drover knows; did you mean ${near}? If the name is right, set its price under "prices" in your config`,
    );
  }
}

function suggestModel(name: string): string | undefined {
  const near = nearestKnownWord(
    name,
    knownModels.map((model) => model.name),
  );
  return near === undefined || modelWithoutVersion(near) === modelWithoutVersion(name) ? undefined : near;
}

function modelWithoutVersion(name: string): string {
  return name.replaceAll(/[-.]?\d+/g, '');
}
