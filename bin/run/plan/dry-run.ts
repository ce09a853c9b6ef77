// drover run --dry-run: prints what a run would do. Sends no request, makes no workspace, writes nothing.

import { planInOrder } from '@drover/coordinator/plan/graph';
import type { Price } from '@drover/core/model/catalog';
import type { RunSettings } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import { mostDollarsForTokens } from '../../model/price.ts';
import { exitCode } from '../../start/exit-code.ts';
import { type Io, printLine } from '../../io.ts';
import { roleTextLines } from '../../views/text/model-lines.ts';
import { dollarsText } from '../../views/text/figures.ts';
import { cleanText, terminalColumns } from '../../views/text/terminal-text.ts';
import { planAsLines } from './approval.ts';

export type Intended = {
  readonly settings: RunSettings;
  readonly price: Price | undefined;
  readonly tasks: readonly PlannedTask[] | undefined;
};

export async function dryRunPlan({ settings, price, tasks }: Intended, io: Io): Promise<number> {
  const { goal, model, repository, base, branch, notIncluded, workers, gates, deliver, cap } = settings;
  const costs =
    price === undefined ? 'its price is not known' : `$${price.input} in, $${price.output} out per million tokens`;
  const budget = cap === undefined ? 'none' : 'usd' in cap ? `$${cap.usd}` : tokenBudgetOfPlan(cap.tokens, price);
  const facts: readonly (readonly [string, string])[] = [
    ['goal', goal],
    ['model', `${model} (${costs})`],
    ...(settings.models === undefined ? [] : [['roles', roleTextLines(settings.models).join('; ')] as const]),
    ['repository', `${repository} at ${base.slice(0, 12)}${branch === undefined ? '' : ` on ${branch}`}`],
    ['left out', notIncluded.length === 0 ? 'nothing: all is committed' : notIncluded.join(', ')],
    ['workers', workers === 0 ? 'one, in this thread' : String(workers)],
    ['gates', gates.length === 0 ? 'none: what is merged is not tested' : gates.join('; ')],
    ['budget', budget],
    ['deliver', deliver],
  ];
  const width = Math.max(...facts.map(([name]) => name.length));
  const lines = facts.map(([name, value]) => `  ${name.padEnd(width)}  ${cleanText(value)}\n`).join('');
  const plan =
    tasks === undefined
      ? '\nThe plan would be made by the model; drover plan makes and shows it.\n'
      : `\n${tasks.length} tasks, in the order in which they would land:\n${planAsLines(planInOrder(tasks), terminalColumns(io.stdout))}`;
  await printLine(io, `Dry run: nothing is changed. This would run:\n${lines}${plan}`);
  return exitCode.done;
}

function tokenBudgetOfPlan(tokens: number, price: Price | undefined): string {
  return `${tokens} tokens${price === undefined ? '' : `, at most ${dollarsText(mostDollarsForTokens(tokens, price))}`}`;
}
