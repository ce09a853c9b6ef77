// Opens the models of a run: one provider for all models of one server, and a lane of the throttle for each model.

import type { ModelTerms } from '@drover/coordinator/admission/purse';
import type { Lane } from '@drover/coordinator/admission/throttle';
import { UsageError } from '@drover/core/errors';
import { modelFactsOf, type Price } from '@drover/core/model/catalog';
import type { RunModels } from '@drover/core/task/models';
import type { ModelSpec } from '@drover/core/task/task';
import type { Diagnostics } from '../diagnostics.ts';
import type { Settings } from '../start/settings.ts';
import { type ModelChoice, nameModel } from './model-choice.ts';
import type { RunChoices } from './model-roles.ts';
import { type OpenedProvider, openProvider } from './open-provider.ts';
import { openProviderLane } from './provider-lane.ts';

export type LaneOf = (model: ModelChoice, provider: OpenedProvider) => Lane;

type Opening = {
  readonly settings: Settings;
  readonly diagnostics?: Diagnostics;
  readonly workers: number;
  /** Lanes that several runs share. Default: lanes of this run, which close with its models. */
  readonly laneOf: LaneOf | undefined;
};

export type OpenedModels = {
  readonly models: RunModels;
  readonly terms: ReadonlyMap<string, ModelTerms>; // by provider/name
  readonly close: () => Promise<void>;
};

export async function openModels({ roles, chosen }: RunChoices, opening: Opening): Promise<OpenedModels> {
  await using closing = new AsyncDisposableStack();
  const providers = new Map<string, OpenedProvider>();
  const open = new Map<string, { readonly spec: ModelSpec; readonly provider: OpenedProvider['provider'] }>();
  const terms = new Map<string, ModelTerms>();
  const ownLane: LaneOf = (model, provider) =>
    closing.adopt(openProviderLane(model, provider, opening.workers), ({ close }) => close()).lane;
  for (const [label, { model, price }] of chosen) {
    const server = model.kind === 'served' ? model.provider : model.label;
    const opened =
      providers.get(server) ??
      closing.adopt(await openProvider(model, opening.settings, opening.diagnostics), ({ close }) => close());
    providers.set(server, opened);
    open.set(label, { spec: modelSpec({ model, price }, opened, opening.settings), provider: opened.provider });
    terms.set(label, { lane: (opening.laneOf ?? ownLane)(model, opened), ...(price !== undefined && { price }) });
  }
  const opened = closing.move();
  return { models: { roles, open }, terms, close: () => opened.disposeAsync() };
}

/** Returns the label of a model that a running run can use. Throws UsageError for one that the run has not opened. */
export function openModelByLabel(name: string, { open }: RunModels, settings: Settings): string {
  const { label } = nameModel(name, settings);
  if (open.has(label)) return label;
  throw new UsageError(
    `this run cannot ask ${label}; it has ${[...open.keys()].join(', ')}. Name further models with --work-model when you begin a run`,
  );
}

type Chosen = { readonly model: ModelChoice; readonly price: Price | undefined };

function modelSpec({ model, price }: Chosen, { provider }: OpenedProvider, settings: Settings): ModelSpec {
  const facts = modelFactsOf(model.name);
  return {
    provider: { id: provider.id, limits: provider.limits },
    name: model.name,
    contextTokens: settings.contextTokens ?? facts.contextTokens,
    outputTokensMax: facts.outputTokensMax,
    ...(settings.charsPerToken !== undefined && { charsPerToken: settings.charsPerToken }),
    ...(price !== undefined && { price }),
  };
}
