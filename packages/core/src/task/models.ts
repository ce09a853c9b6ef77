// The models of a run: each is opened once, and the roles name them in the user's order.

import type { PlannedTask } from '@drover/protocol/plan';
import type { ModelRoles } from '@drover/protocol/run';
import type { ModelRoute } from '../model/fallback.ts';
import type { Provider } from '../model/provider.ts';
import type { ModelSpec, TaskSpec } from './task.ts';

type OpenModel = { readonly spec: ModelSpec; readonly provider: Provider };

export type RunModels = {
  readonly roles: ModelRoles;
  /** By provider/name: the models of the roles, and those that tasks name. */
  readonly open: ReadonlyMap<string, OpenModel>;
};

/** The coordinator's models, for its session. */
export function coordinatorRoute(models: RunModels): ModelRoute & Pick<ModelSpec, 'charsPerToken'> & Fallbacks {
  const [first, ...fallbacks] = models.roles.plan.map((label) => routeOfTaskModel(openModelOfTask(models, label)));
  if (first === undefined) throw new Error('the role plan has no model');
  const { charsPerToken } = openModelOfTask(models, models.roles.plan[0] ?? '').spec;
  return { ...first, fallbacks, ...(charsPerToken !== undefined && { charsPerToken }) };
}

type Fallbacks = { readonly fallbacks: readonly ModelRoute[] };

/** The models of a task: the one that it names, or those of the role `work`. A review has those of its role. */
export function taskModels(models: RunModels, task: PlannedTask): Pick<TaskSpec, 'model' | 'fallbacks'> {
  const { work, review = [] } = models.roles;
  const named = task.model === review[0] ? review : [task.model ?? ''];
  const labels = task.model === undefined ? work : named;
  const [model, ...fallbacks] = labels.map((label) => openModelOfTask(models, label).spec);
  if (model === undefined) throw new Error('the role work has no model');
  return { model, ...(fallbacks.length > 0 && { fallbacks }) };
}

/** Whether the worker of the task can read what the coordinator's requests left in the provider's cache. */
export function doTaskModelsShareCache({ roles }: RunModels, { model = roles.work[0] }: PlannedTask): boolean {
  return model === roles.plan[0];
}

/** An opened model, by its label. */
export function modelRouteOfTask(models: RunModels, label: string): ModelRoute {
  return routeOfTaskModel(openModelOfTask(models, label));
}

function openModelOfTask({ open }: RunModels, label: string): OpenModel {
  const found = open.get(label);
  if (found === undefined) throw new Error(`the run has not opened the model ${label}`);
  return found;
}

function routeOfTaskModel({ spec, provider }: OpenModel): ModelRoute {
  const { name: model, contextTokens, outputTokensMax, price } = spec;
  return { provider, model, contextTokens, outputTokensMax, ...(price !== undefined && { price }) };
}
