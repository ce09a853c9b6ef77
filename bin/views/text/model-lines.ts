// Lines about the models of a run: the roles, the tasks with models of their own, and moves to fallbacks.

import type { RunState } from '@drover/coordinator/view/state';
import { type ModelRoles, modelRolesOfRun } from '@drover/protocol/run';

const MOVES_MAX = 20;

/** Empty for a run that used one model for everything. */
export function modelTextLines({ settings, tasks, fallbacks }: RunState): readonly string[] {
  if (settings === undefined) return [];
  const roles = modelRolesOfRun(settings);
  const own = [...tasks.values()].flatMap(({ id, plan: { model } }) => (model === undefined ? [] : [{ id, model }]));
  const isPlain = settings.models === undefined && own.length === 0 && fallbacks.length === 0;
  if (isPlain) return [];
  return [
    ...roleTextLines(roles),
    ...[...Map.groupBy(own, ({ model }) => model)].map(
      ([model, named]) => `${named.map(({ id }) => id).join(', ')}: ${model}`,
    ),
    ...modelMoveLines(fallbacks),
    ...modelCacheLines(roles, { own: own.map(({ model }) => model), hasMoved: fallbacks.length > 0 }),
  ];
}

/** The roles, one line each, or one line if they use the same models. */
export function roleTextLines({ plan, work, review }: ModelRoles): readonly string[] {
  const words = ([first = '', ...others]: readonly string[]) =>
    others.length === 0 ? first : `${first}, else ${others.join(', else ')}`;
  const both =
    words(plan) === words(work) ? [`plan and work: ${words(plan)}`] : [`plan: ${words(plan)}`, `work: ${words(work)}`];
  return review === undefined ? both : [...both, `review: ${words(review)}`];
}

function modelMoveLines(fallbacks: RunState['fallbacks']): readonly string[] {
  const lines = fallbacks
    .slice(0, MOVES_MAX)
    .map(
      ({ task, attempt = 1, from, to, reason }) =>
        `${task === undefined ? 'coordinator' : `${task}, attempt ${attempt}`} moved from ${from} to ${to}: ${reason}`,
    );
  return fallbacks.length > MOVES_MAX ? [...lines, `and ${fallbacks.length - MOVES_MAX} more moves`] : lines;
}

type Use = { readonly own: readonly string[]; readonly hasMoved: boolean };

/** Providers cache per model, so only agents on the same model read each other's prompts from the cache. */
function modelCacheLines({ plan, work }: ModelRoles, { own, hasMoved }: Use): readonly string[] {
  const others = new Set([...work.slice(0, 1), ...own].filter((model) => model !== plan[0]));
  if (others.size === 0 && !hasMoved) return [];
  return ['The prompt cache could not be shared between different models.'];
}
