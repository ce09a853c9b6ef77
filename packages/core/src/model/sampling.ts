// Checks sampling options against the model that will receive them.

import type { Sampling } from '@drover/protocol/model';
import { UsageError } from '../errors.ts';
import type { Provider } from './provider.ts';

/** Sampling options that the model does not support, or that are out of range. */
export class UnfitOptions extends UsageError {}

/** Throws UnfitOptions if the options are out of range or the model does not support them. */
export function checkSampling(sampling: Sampling, { provider, model }: { provider: Provider; model: string }): void {
  const { temperature = 0, topP = 1 } = sampling;
  if (!(temperature >= 0 && temperature <= 2))
    throw new UnfitOptions(`temperature must be a number from 0 to 2 (got ${temperature})`);
  if (!(topP > 0 && topP <= 1)) throw new UnfitOptions(`topP must be a number above 0, up to 1 (got ${topP})`);
  const given = (['temperature', 'topP'] as const).filter((option) => sampling[option] !== undefined);
  const unfit = given.filter((option) => provider.takes?.(option, model) !== true);
  if (unfit.length > 0)
    throw new UnfitOptions(`${provider.id}/${model} does not take ${unfit.join(' or ')}: leave it out of the options`);
}
