// Models by role: which models plan and which work, each an ordered list with fallbacks.
//
// Guarantees
//   1. A flag of the role wins over --model, that over the role in the config, and that over "model" in the config.
//   2. Every model of a run is named, found and priced before anything runs. A mistake in a file has its position.
//   3. Labels of a run are relative to the top of its repository, so that a resumed run finds the same scripts.

import { UsageError } from '@drover/core/errors';
import type { Price } from '@drover/core/model/catalog';
import type { PlannedTask } from '@drover/protocol/plan';
import { type ModelRoles, modelRolesOfRun, type RunSettings } from '@drover/protocol/run';
import type { Io } from '../io.ts';
import type { Settings } from '../start/settings.ts';
import { chooseModel, modelInFolder, type ModelChoice, nameModel } from './model-choice.ts';
import { tellDefaultModel } from './model-names.ts';
import { findModelPrice } from './price.ts';

/** Roles that every run has, with a flag each. Only a config chooses models for `review`. */
type Role = 'plan' | 'work';

/** A model that a config names, with its position: file:line:column. */
export type ConfiguredModel = { readonly name: string; readonly place: string };

export type RoleArgs = {
  readonly model: string | undefined;
  readonly 'plan-model': readonly string[];
  readonly 'work-model': readonly string[];
  readonly 'dry-run': boolean;
};

export type RolePlace = { readonly settings: Settings; readonly top: string; readonly io: Io };

/** The roles of a new run. A run with a given plan has no coordinator, so its role `plan` is that of `work`. */
export async function chooseModelRoles(args: RoleArgs, isPlanned: boolean, place: RolePlace): Promise<ModelRoles> {
  const { settings, io } = place;
  const wanted = {
    plan: modelsWantedForRole('plan', args, settings),
    work: modelsWantedForRole('work', args, settings),
  };
  const used = isPlanned ? [wanted.work] : [wanted.plan, wanted.work];
  if (used.some((models) => models === undefined)) await tellDefaultModel(undefined, settings, io);
  const read = (models: readonly ConfiguredModel[] | undefined) =>
    models === undefined
      ? [modelLabel(undefined, args, place)]
      : models.map((each) => modelLabelFromConfig(each, args, place));
  const work = uniqueModelLabels(read(wanted.work));
  if (isPlanned) return { plan: work, work };
  const { review } = settings.models;
  return {
    plan: uniqueModelLabels(read(wanted.plan)),
    work,
    ...(review !== undefined && { review: uniqueModelLabels(read(review)) }),
  };
}

/** Undefined: the default model. */
function modelsWantedForRole(role: Role, args: RoleArgs, settings: Settings): readonly ConfiguredModel[] | undefined {
  const typed = args[`${role}-model`];
  if (typed.length > 0) return typed.map((name) => ({ name, place: `--${role}-model` }));
  if (args.model !== undefined) return [{ name: args.model, place: '' }];
  return settings.models[role];
}

function modelLabelFromConfig(
  { name, place }: ConfiguredModel,
  args: Pick<RoleArgs, 'dry-run'>,
  where: RolePlace,
): string {
  try {
    return modelLabel(name, args, where);
  } catch (error) {
    if (!(error instanceof UsageError) || place === '') throw error;
    throw new UsageError(`${place}: ${error.message}`, { cause: error });
  }
}

/** The label of a model that a user named, from the current folder. A dry run sends no request, so it needs no key. */
export function modelLabel(name: string | undefined, args: Pick<RoleArgs, 'dry-run'>, place: RolePlace): string {
  const { settings, top, io } = place;
  if (args['dry-run']) return nameModel(name, settings).label;
  return modelInFolder(chooseModel(name, settings, io.cwd), { from: io.cwd, to: top }).label;
}

/** The roles of a resumed run: as before, unless a flag names others. Tasks that name a model keep it. */
export function changeModelRoles(args: RoleArgs, before: ModelRoles, place: RolePlace): ModelRoles {
  const of = (role: Role): readonly string[] => {
    const typed = args[`${role}-model`];
    const names = typed.length > 0 ? typed : args.model === undefined ? [] : [args.model];
    return names.length === 0 ? before[role] : uniqueModelLabels(names.map((name) => modelLabel(name, args, place)));
  };
  return { ...before, plan: of('plan'), work: of('work') };
}

function uniqueModelLabels(labels: readonly string[]): readonly string[] {
  return [...new Set(labels)];
}

/** The settings that hold the roles. Roles that all use one model need no list. */
export function modelRoleSettings(roles: ModelRoles): Pick<RunSettings, 'model' | 'models'> {
  const [model = ''] = roles.plan;
  const isSame = [roles.plan, roles.work].every((labels) => labels.length === 1 && labels[0] === model);
  const isPlain = isSame && roles.review === undefined;
  return { model, ...(!isPlain && { models: roles }) };
}

export type RunChoices = {
  readonly roles: ModelRoles;
  /** By provider/name. */
  readonly chosen: ReadonlyMap<string, { readonly model: ModelChoice; readonly price: Price | undefined }>;
};

/** All models of a run: those of its roles, and those that its tasks name. Throws UsageError if one can't be asked. */
export function chooseRunModels(
  run: RunSettings,
  tasks: readonly Pick<PlannedTask, 'model'>[],
  { settings, top }: Omit<RolePlace, 'io'>,
): RunChoices {
  const roles = modelRolesOfRun(run);
  const own = tasks.flatMap(({ model }) => (model === undefined ? [] : [model]));
  const chosen = [...new Set([...roles.plan, ...roles.work, ...(roles.review ?? []), ...own])].map((label) => {
    const model = chooseModel(label, settings, top);
    const [price] = [run.cap, run.taskCap, run.canary?.cost].map((cap) => findModelPrice(model, cap, settings));
    return [label, { model, price }] as const;
  });
  return { roles, chosen: new Map(chosen) };
}
