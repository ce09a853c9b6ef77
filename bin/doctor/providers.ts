// Checks which providers and model can be used and, with --online, whether they answer.
//
// Keys are never shown: a finding names the variable. Addresses are shown without passwords and tokens.

import { describe, type Failure } from '@drover/protocol/failures';
import { DroverError, UsageError } from '@drover/core/errors';
import { knownProviders } from '@drover/core/model/catalog';
import type { Provider } from '@drover/core/model/provider';
import { buildModelRequest } from '@drover/core/model/request';
import { defaultModel } from '../model/model-names.ts';
import { chooseModel, readApiKey, type ModelChoice } from '../model/model-choice.ts';
import { providerAddressWithoutLogin } from '../model/list-models.ts';
import { openProvider } from '../model/open-provider.ts';
import { type Settings, environmentText } from '../start/settings.ts';
import { durationText } from '../views/text/figures.ts';
import type { Finding } from './finding.ts';

const ASK_MS_MAX = 30_000;
// The smallest limit that all APIs accept.
const OUTPUT_TOKENS = 16;

// The cheapest model of each provider, used if the user names none.
const CHEAPEST: ReadonlyMap<string, string> = new Map([
  ['anthropic', 'claude-haiku-4-5'],
  ['openai', 'gpt-5-nano'],
]);

type Usable = { readonly id: string; readonly how: string };

export function checkProviders(settings: Settings, model: string | undefined, cwd: string): readonly Finding[] {
  const [usable, broken] = sortProvidersForDoctor(settings);
  const none: Finding = {
    check: 'providers',
    state: 'bad',
    says: 'no provider has a key',
    fix: 'export ANTHROPIC_API_KEY=… or OPENAI_API_KEY=…, or name a server under "providers" in your config',
  };
  const found: Finding = {
    check: 'providers',
    state: 'good',
    says: usable.map(({ id, how }) => `${id} (${how})`).join(', '),
  };
  const choice = checkModelForDoctor(settings, model, cwd);
  // A user of a scripted model needs no key.
  const isReady = usable.length > 0 || choice.state === 'good';
  return [...(usable.length > 0 ? [found] : isReady ? [] : [none]), ...broken, choice];
}

/** A provider that needs a key. */
type Keyed = {
  readonly id: string;
  readonly keyEnv: string;
  readonly address: string | undefined;
  readonly isConfigured: boolean;
};

function sortProvidersForDoctor(settings: Settings): readonly [readonly Usable[], readonly Finding[]] {
  const usable: Usable[] = [];
  const broken: Finding[] = [];
  const look = ({ id, keyEnv, address, isConfigured }: Keyed): void => {
    const where = address === undefined ? '' : ` at ${providerAddressWithoutLogin(address)}`;
    try {
      if (readApiKey(settings, keyEnv) !== undefined)
        usable.push({ id, how: `${keyEnv} is set${where && `,${where}`}` });
      else if (isConfigured) {
        const says = `your config names ${keyEnv} for ${id}, and it is not set`;
        broken.push({ check: 'providers', state: 'note', says, fix: `export ${keyEnv}=…` });
      }
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      if (!broken.some(({ says }) => says === error.message))
        broken.push({ check: 'providers', state: 'bad', says: error.message });
    }
  };
  for (const { id, keyEnv, baseUrlEnv } of knownProviders) {
    if (!settings.providers.has(id))
      look({ id, keyEnv, address: environmentText(settings.env, baseUrlEnv), isConfigured: false });
  }
  for (const [id, { baseUrl, keyEnv }] of settings.providers) {
    if (keyEnv === undefined) usable.push({ id, how: `without a key, at ${providerAddressWithoutLogin(baseUrl)}` });
    else look({ id, keyEnv, address: baseUrl, isConfigured: true });
  }
  return [usable, broken];
}

function checkModelForDoctor(settings: Settings, wanted: string | undefined, cwd: string): Finding {
  const check = 'model';
  const byKey = defaultModel(settings);
  const label = wanted ?? settings.model ?? byKey?.label;
  if (label === undefined) {
    const fix = 'say --model anthropic/claude-sonnet-4-5 each time, or set "model" in your config';
    return { check, state: 'note', says: 'none is set', fix };
  }
  const unsaid = settings.model === undefined ? `because ${byKey?.keyEnv} is set` : 'from the config';
  const whence = wanted === undefined ? unsaid : 'from --model';
  try {
    chooseModel(label, settings, cwd);
    return { check, state: 'good', says: `${label}, ${whence}` };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { check, state: 'bad', says: `${label}, ${whence}: ${error.message}` };
  }
}

/** Sends one short request to each usable provider, through the same code path as an agent. */
export async function checkProviderAnswers(
  settings: Settings,
  model: string | undefined,
  cwd: string,
): Promise<readonly Finding[]> {
  const labels = model === undefined ? listLabelsToAsk(settings) : [model];
  const asked = await Promise.all(labels.map((label) => checkProviderAnswer(label, settings, cwd)));
  const unasked = [...settings.providers.keys()].filter(
    (id) => model === undefined && !labels.some((label) => label.startsWith(`${id}/`)),
  );
  return [
    ...asked.filter((finding) => finding !== undefined),
    ...unasked.map((id): Finding => {
      const fix = `name one of its models: drover doctor --online --model ${id}/NAME`;
      return { check: id, state: 'note', says: 'not checked: drover does not know its models', fix };
    }),
  ];
}

function listLabelsToAsk(settings: Settings): readonly string[] {
  const own = settings.model === undefined ? [] : [settings.model];
  const others = [...CHEAPEST].filter(([id]) => !own.some((label) => label.startsWith(`${id}/`)));
  return [...own, ...others.map(([id, name]) => `${id}/${name}`)];
}

async function checkProviderAnswer(label: string, settings: Settings, cwd: string): Promise<Finding | undefined> {
  let model: ModelChoice;
  try {
    model = chooseModel(label, settings, cwd);
  } catch (error) {
    // Without a key there is nothing to try. Another finding reports a missing key.
    if (error instanceof UsageError) return undefined;
    throw error;
  }
  const check = model.provider;
  const startedAt = performance.now();
  try {
    const { provider, close } = await openProvider(model, settings);
    try {
      await askProviderForAnswer(provider, model.name);
    } finally {
      await close();
    }
    const says = `${label} answers, after ${durationText(performance.now() - startedAt)}`;
    return { check, state: 'good', says, asked: true };
  } catch (error) {
    if (error instanceof UsageError) return { check, state: 'bad', says: error.message };
    if (!(error instanceof DroverError)) throw error;
    return { check, state: 'bad', ...explainProviderFailure(error.failure, model), asked: true };
  }
}

async function askProviderForAnswer(provider: Provider, model: string): Promise<void> {
  const request = buildModelRequest({
    provider,
    model,
    system: 'Answer with one word.',
    tools: [],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Say ok.' }] }],
    outputTokensMax: OUTPUT_TOKENS,
    cacheKey: 'doctor',
  });
  for await (const event of provider.stream(request, AbortSignal.timeout(ASK_MS_MAX))) {
    if (event.type === 'finished') return;
  }
}

function explainProviderFailure(failure: Failure, model: ModelChoice): Pick<Finding, 'says' | 'fix'> {
  const where =
    model.kind === 'served' && model.baseUrl !== undefined
      ? providerAddressWithoutLogin(model.baseUrl)
      : 'the provider';
  const says = `${model.label}: ${describe(failure)}`;
  switch (failure.kind) {
    case 'provider.rejected': {
      const { fix = 'look at the name of the model, and at what the provider says', ...bare } = failure;
      return { says: `${model.label}: ${describe(bare)}`, fix };
    }
    case 'request.unmade':
      return { says: `${model.label}: the request could not be made: ${failure.message}`, fix: failure.fix };
    case 'provider.unavailable':
      return { says, fix: `see whether ${where} can be reached from here: address, proxy, firewall` };
    case 'provider.throttled':
      return { says, fix: 'wait a little: the key works, but there are too many requests' };
    default:
      return { says, fix: `see whether ${where} is a server of this kind` };
  }
}
