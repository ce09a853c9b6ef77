// Opens the provider of a chosen model; for a rehearsed one, the scripted server as well.
//
// No request of it holds one of drover's own secrets, whichever session, worker or coordinator sends it.

import { defaultTimeouts, wireApis } from '@drover/core/model/catalog';
import type { Provider, ProviderOptions, StreamTimeouts } from '@drover/core/model/provider';
import { requestWithoutSecrets } from '@drover/core/redaction/request-redaction';
import type { Diagnostics } from '../diagnostics.ts';
import { listOwnSecrets } from '../secrets/own-secrets.ts';
import type { Settings } from '../start/settings.ts';
import { diagnoseProvider } from '../diagnosis/detailed-diagnostics.ts';
import type { ModelChoice } from './model-choice.ts';

export type OpenedProvider = {
  readonly provider: Provider;
  /** The data with which another thread opens the same provider. */
  readonly options: ProviderOptions;
  readonly close: () => Promise<void>;
};

/** With `diagnostics` that ask for details, every request is diagnosed. */
export async function openProvider(
  model: ModelChoice,
  settings: Settings,
  diagnostics?: Diagnostics,
): Promise<OpenedProvider> {
  const timeouts = providerTimeouts(settings);
  const secrets = listOwnSecrets(settings);
  const open = async (options: ProviderOptions): Promise<Provider> => {
    const provider = requestWithoutSecrets(await wireApis[model.api](options), secrets);
    return diagnostics?.isDetailed === true ? diagnoseProvider(provider, diagnostics.diagnose) : provider;
  };
  if (model.kind === 'served') {
    const { provider: id, apiKey, baseUrl } = model;
    const options = { id, apiKey, timeouts, ...(baseUrl !== undefined && { baseUrl }) };
    return { provider: await open(options), options, close: async () => undefined };
  }
  const { openRehearsal } = await import('./rehearsal.ts');
  const rehearsal = await openRehearsal(model.script, undefined);
  const options = { id: model.provider, apiKey: 'none', timeouts, baseUrl: rehearsal.baseUrlFor(model.api) };
  return { provider: await open(options), options, close: () => rehearsal.close() };
}

function providerTimeouts({ timeouts: { headers, firstByte, silence, progress } }: Settings): StreamTimeouts {
  return {
    headersMs: headers ?? defaultTimeouts.headersMs,
    firstByteMs: firstByte ?? defaultTimeouts.firstByteMs,
    silenceMs: silence ?? defaultTimeouts.silenceMs,
    progressMs: progress ?? defaultTimeouts.progressMs,
  };
}
