// drover run <goal>: plans the goal, runs its tasks in parallel, merges and delivers the result.

import { newId } from '@drover/core/ids';
import { defineCommand, parseNonEmpty, valueOption } from '../start/command.ts';
import { findModelPrice } from '../model/price.ts';
import { nameModel } from '../model/model-choice.ts';
import { modelLabel } from '../model/model-roles.ts';
import type { PlanFile, PlanPlace } from '../files/plan-file.ts';
import { dryRunPlan } from '../run/plan/dry-run.ts';
import { readGoal } from '../run/plan/goal.ts';
import { runOptions, TASKS_DEFAULT } from '../run/run-options.ts';
import { newRunSettings, startRun, openRunSurroundings } from '../run/start-run.ts';

const { model, ...others } = runOptions;

export const run = defineCommand({
  word: { name: 'goal', about: 'Goal to achieve; - reads it from standard input', required: false },
  options: { model, 'goal-file': valueOption('Plan:', 'FILE', 'Read the goal from a file', parseNonEmpty), ...others },
  examples: [
    ['drover run "replace moment with date-fns" --gate "pnpm test"', 'Plan, work, merge what passes the tests'],
    ['drover run --plan plan.yaml --workers 4', 'Run a saved plan, four tasks at a time'],
    ['drover run "add types to src" --budget 5usd --timeout 30m --json', 'For scripts: bounded, events as JSON'],
    ['drover run "update the docs" --deliver merge', 'Merge the result into your branch at the end'],
  ],
  async run(args, io) {
    const around = await openRunSurroundings(args.cwd, io, { trustsAll: args['trust-project'] });
    const tasksMax = args.tasks ?? TASKS_DEFAULT;
    const place = { settings: around.settings, top: around.repository.top, io };
    const agents = around.extensions.agents.map(({ name }) => name);
    const modelOf = (name: string) => modelLabel(name, args, place);
    const file =
      args.plan === undefined
        ? undefined
        : await readPlanFileOption({ path: args.plan, cwd: io.cwd, tasksMax, modelOf, agents });
    const goal = await readGoal({ command: 'run', word: args.word, file: args['goal-file'], planned: file?.goal }, io);
    const wish = { goal, tasks: file?.tasks };
    const settings = await newRunSettings(args, wish, around, io);
    if (args['dry-run']) {
      const price = findModelPrice(nameModel(settings.model, around.settings), args.budget, around.settings);
      return dryRunPlan({ settings, price, tasks: wish.tasks }, io);
    }
    const end = await startRun(args, { ...around, id: newId('run'), run: settings, tasks: wish.tasks }, io);
    return end.exitCode;
  },
});

/** Reads a plan file. Loads zod, so only runs with a plan file call it. */
async function readPlanFileOption(place: PlanPlace): Promise<PlanFile> {
  return (await import('../files/plan-file.ts')).readPlanFile(place);
}
