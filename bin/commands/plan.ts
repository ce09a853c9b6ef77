// drover plan <goal>: make the plan, print or save it, run nothing.

import { resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { defineCommand, parseNonEmpty, valueOption } from '../start/command.ts';
import { diagnosticsRedactor } from '../diagnostics.ts';
import { exitCode } from '../start/exit-code.ts';
import { print } from '../io.ts';
import { readGoal } from '../run/plan/goal.ts';
import { formatPlanFile, writePlanFile } from '../files/plan-text.ts';
import { runOptions, untypedRunArgs } from '../run/run-options.ts';
import { newRunSettings, openRunSurroundings } from '../run/start-run.ts';
import { cleanText, textForLog } from '../views/text/terminal-text.ts';

const { model, 'plan-model': planModel, tasks, timeout, budget, steps, cwd, log } = runOptions;
const { 'trust-project': trustProject } = runOptions;

export const plan = defineCommand({
  word: { name: 'goal', about: 'Goal to achieve; - reads it from standard input', required: false },
  options: {
    model,
    'plan-model': planModel,
    'goal-file': valueOption('Plan:', 'FILE', 'Read the goal from a file', parseNonEmpty),
    out: valueOption('Output:', 'FILE', 'Save the plan to a file, for drover run --plan', parseNonEmpty),
    tasks,
    timeout,
    budget,
    steps,
    cwd,
    log,
    'trust-project': trustProject,
  },
  examples: [
    ['drover plan "replace moment with date-fns"', 'Print the plan'],
    ['drover plan "add types to src" --out plan.yaml', 'Save it, change it, then: drover run --plan plan.yaml'],
  ],
  async run(args, io) {
    const around = await openRunSurroundings(args.cwd, io, { trustsAll: args['trust-project'] });
    const goal = await readGoal({ command: 'plan', word: args.word, file: args['goal-file'], planned: undefined }, io);
    const settings = await newRunSettings(
      { ...untypedRunArgs(), setup: ['none'], ...args },
      { goal, tasks: undefined },
      around,
      io,
    );
    const { makePlan } = await import('../run/plan/planning.ts');
    const made = await makePlan({ ...around, run: settings }, io);
    if (made === undefined)
      throw new UsageError('the model answered without a plan; drover exec does a goal that needs no plan');
    const redactor = await diagnosticsRedactor(io);
    const text = redactor.text(await formatPlanFile({ goal, tasks: made }));
    if (args.out === undefined) await print(io.stdout, textForLog(cleanText(text), io.env));
    else {
      await writePlanFile(resolve(io.cwd, args.out), text);
      await print(io.stderr, `${made.length} tasks; run them with: drover run --plan ${args.out}\n`);
    }
    return exitCode.done;
  },
});
