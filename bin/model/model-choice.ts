// The model to use, its address and its key: from --model or the config, and the environment.

import { relative, resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { type Api, knownProviders } from '@drover/core/model/catalog';
import type { Script } from '@drover/rehearsal/script';
import type { ProviderConfig } from '../files/config-file.ts';
import { type Settings, environmentText } from '../start/settings.ts';
import { suggestNearestWord } from '@drover/documents/suggestion';
import { checkModelSpelling, defaultModel, readModelName } from './model-names.ts';

type ServedModel = {
  readonly kind: 'served';
  readonly label: string; // provider/name
  readonly provider: string;
  readonly api: Api;
  readonly name: string;
  readonly apiKey: string;
  readonly baseUrl: string | undefined;
};

/** A scripted model that this process serves itself, in the wire format of `api`. */
type RehearsedModel = {
  readonly kind: 'rehearsed';
  readonly label: string;
  readonly provider: string;
  readonly api: Api;
  readonly name: string;
  readonly script: string | Script; // a path, or the script itself
};

export type ModelChoice = ServedModel | RehearsedModel;

const rehearsals: ReadonlyMap<string, Api> = new Map([
  ['rehearsal', 'anthropic'],
  ['rehearsal-openai', 'openai'],
  ['rehearsal-openai-chat', 'openai-chat'],
]);

/** Reads the name of a model. A request needs more than that. */
export type ModelName = Pick<ModelChoice, 'label' | 'provider' | 'name'>;

export function nameModel(wanted: string | undefined, settings: Settings): ModelName {
  const typed = wanted ?? settings.model ?? defaultModel(settings)?.label;
  if (typed === undefined) throw new UsageError(NO_MODEL);
  const { provider, name } = readModelName(typed, settings);
  const names = [...knownProviders.map(({ id }) => id), ...settings.providers.keys(), ...rehearsals.keys()];
  if (names.includes(provider)) {
    checkModelSpelling(provider, name, settings);
    return { label: `${provider}/${name}`, provider, name };
  }
  const near = suggestNearestWord(provider, names);
  throw new UsageError(`there is no provider '${provider}'; known are ${names.join(', ')}${near}`);
}

export function chooseModel(wanted: string | undefined, settings: Settings, cwd: string): ModelChoice {
  const { label, provider, name } = nameModel(wanted, settings);
  const rehearsedApi = rehearsals.get(provider);
  if (rehearsedApi !== undefined) {
    return { kind: 'rehearsed', label, provider, api: rehearsedApi, name, script: resolve(cwd, name) };
  }
  const configured = settings.providers.get(provider);
  if (configured !== undefined)
    return { kind: 'served', label, provider, name, ...modelFromConfig(provider, configured, settings) };

  const known = knownProviders.find(({ id }) => id === provider);
  if (known === undefined) throw new Error(`nobody knows how to ask ${provider}`);
  const apiKey = readApiKey(settings, known.keyEnv);
  if (apiKey === undefined) {
    throw new UsageError(`${provider} needs a key: set ${known.keyEnv} (drover demo works without one)`);
  }
  const baseUrl = environmentText(settings.env, known.baseUrlEnv);
  return { kind: 'served', label, provider, name, api: known.api, apiKey, baseUrl };
}

/** The journal stores the session's folder and the model's name, from which the script's path follows. */
export function modelInFolder(
  model: ModelChoice,
  { from, to }: { readonly from: string; readonly to: string },
): ModelChoice {
  if (model.kind !== 'rehearsed' || typeof model.script !== 'string' || from === to) return model;
  const name = relative(to, model.script);
  return { ...model, name, label: `${model.provider}/${name}` };
}

function modelFromConfig(
  provider: string,
  { api, baseUrl, keyEnv }: ProviderConfig,
  settings: Settings,
): Pick<ServedModel, 'api' | 'baseUrl' | 'apiKey'> {
  if (keyEnv === undefined) return { api, baseUrl, apiKey: 'none' };
  const apiKey = readApiKey(settings, keyEnv);
  if (apiKey === undefined)
    throw new UsageError(`${provider} needs a key: set ${keyEnv}, which your config names for it`);
  return { api, baseUrl, apiKey };
}

/** Returns the key in this variable; throws UsageError if the value can't be one. */
export function readApiKey({ env }: Settings, name: string): string | undefined {
  const key = environmentText(env, name)?.trim();
  if (key === undefined || key === '') return undefined;
  // Other characters are not allowed in a header.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError(`${name} holds characters no key has; set it again`);
  return key;
}

const NO_MODEL =
  'no model is chosen. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or pass --model PROVIDER/NAME, or set "model" in your config. (drover doctor says what is missing; drover demo needs neither.)';
