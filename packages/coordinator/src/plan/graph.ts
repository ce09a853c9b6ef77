// The plan as a graph. Pure: what is wrong with it, in which order it lands, and what each task waits for.
//
// A task waits for those it depends on, and gives up if one of them fails. It also waits for earlier ones
// that mean to change the same files, but only until they are over: two at once would conflict.

import type { PlannedTask } from '@drover/protocol/plan';
import { Overlaps } from './overlap.ts';

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export type Problem = { readonly at: number; readonly message: string }; // `at`: index of the task in the plan

export type PlanLimits = {
  readonly tasksMax: number;
  /** Ids of earlier tasks that are final and may be depended on. */
  readonly done: ReadonlySet<string>;
  /** Names of the custom agents that there are. */
  readonly agents: readonly string[];
};

export function planProblems(
  tasks: readonly PlannedTask[],
  { tasksMax, done, agents }: PlanLimits,
): readonly Problem[] {
  const found: Problem[] = [];
  if (tasks.length === 0) found.push({ at: 0, message: 'the plan has no tasks' });
  if (tasks.length > tasksMax)
    found.push({ at: tasksMax, message: `the plan has ${tasks.length} tasks; at most ${tasksMax} are allowed` });
  const ids = new Set(tasks.map(({ id }) => id));
  const seen = new Set<string>();
  tasks.forEach((task, at) => {
    const tell = (message: string) => found.push({ at, message });
    if (!ID.test(task.id) || /\.(lock)?$/.test(task.id) || task.id.includes('..'))
      tell(`${quotedPlanId(task.id)} is no id: use letters, digits, - and _, at most 64`);
    else if (task.id.toLowerCase() === 'merged') tell('the id "merged" is the name of the result; choose another');
    if (seen.has(task.id)) tell(`the id ${quotedPlanId(task.id)} is used twice`);
    if (done.has(task.id)) tell(`${quotedPlanId(task.id)} is done already; give new work a new id`);
    if (task.agent !== undefined && !agents.includes(task.agent))
      tell(
        `there is no agent ${quotedPlanId(task.agent)}; ${agents.length === 0 ? 'this project has none' : `there are: ${agents.join(', ')}`}`,
      );
    seen.add(task.id);
    for (const id of task.dependsOn) {
      if (id === task.id) tell(`${quotedPlanId(id)} depends on itself`);
      else if (!ids.has(id) && !done.has(id))
        tell(`${quotedPlanId(task.id)} depends on ${quotedPlanId(id)}, which isn't there`);
    }
  });
  const cycle = found.length === 0 ? cycleInPlan(tasks) : undefined;
  if (cycle !== undefined)
    found.push({
      at: tasks.findIndex(({ id }) => id === cycle[0]),
      message: `these tasks wait for each other: ${cycle.join(' → ')}`,
    });
  return found;
}

/** Returns the landing order: plan order, with every task after its dependencies. */
export function planInOrder(tasks: readonly PlannedTask[]): readonly PlannedTask[] {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const ordered = new Set<PlannedTask>();
  const place = (task: PlannedTask): void => {
    for (const id of task.dependsOn) {
      const before = byId.get(id);
      if (before !== undefined && !ordered.has(before)) place(before);
    }
    ordered.add(task);
  };
  tasks.forEach(place);
  return [...ordered];
}

/** The number of tasks in the longest chain of dependencies. */
export function longestChainOfPlan(tasks: readonly PlannedTask[]): number {
  const lengths = new Map<string, number>();
  for (const { id, dependsOn } of planInOrder(tasks))
    lengths.set(id, 1 + Math.max(0, ...dependsOn.map((each) => lengths.get(each) ?? 0)));
  return Math.max(0, ...lengths.values());
}

export type Waits = { readonly dependsOn: readonly string[]; readonly follows: readonly string[] };

/** For each task of an ordered plan: the tasks that must land before it, and those that must only end. */
export function waitsOfPlan(ordered: readonly PlannedTask[]): ReadonlyMap<string, Waits> {
  const writers = new Overlaps();
  return new Map(
    ordered.map((task, at) => {
      const isWriter = task.mode === 'write';
      const earlier = isWriter ? writers.with(task).map((each) => ordered[each]?.id ?? '') : [];
      if (isWriter) writers.add(task, at);
      const follows = earlier.filter((id) => !task.dependsOn.includes(id));
      return [task.id, { dependsOn: task.dependsOn, follows }];
    }),
  );
}

function cycleInPlan(tasks: readonly PlannedTask[]): readonly string[] | undefined {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const safe = new Set<string>();
  const follow = (id: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(id)) return [...path.slice(path.indexOf(id)), id];
    if (safe.has(id)) return undefined;
    for (const next of byId.get(id)?.dependsOn ?? []) {
      const cycle = follow(next, [...path, id]);
      if (cycle !== undefined) return cycle;
    }
    safe.add(id);
    return undefined;
  };
  for (const { id } of tasks) {
    const cycle = follow(id, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

function quotedPlanId(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}
