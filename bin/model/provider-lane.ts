// The throttle of this process. All runs share it, so a provider that asks one of them to slow down slows all that
// use the same key and model: in `drover serve`, and in a batch over several repositories.

import { throttleLaneKey, Throttle, type OpenLane } from '@drover/coordinator/admission/throttle';
import type { ModelChoice } from '../model/model-choice.ts';
import type { OpenedProvider } from '../model/open-provider.ts';

const WAIT_MS_MAX = 600_000;

const throttle = new Throttle({ waitMsMax: WAIT_MS_MAX, random: Math.random });

/** The lane of a model, until it is closed. */
export function openProviderLane(model: ModelChoice, provider: OpenedProvider, workers: number): OpenLane {
  return throttle.open(providerLaneName(model, provider), Math.max(1, workers));
}

export function providerLaneName(model: ModelChoice, { options }: OpenedProvider): string {
  return throttleLaneKey({ baseUrl: '', ...options, provider: model.provider, model: model.name });
}
