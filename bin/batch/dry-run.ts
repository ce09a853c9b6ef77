// drover batch --dry-run: prints what it would do and could cost. Sends no request, writes nothing.

import { batchCacheSlot, findBatchCacheEntry } from '@drover/coordinator/batch/cache';
import { waitsOfPlan } from '@drover/coordinator/plan/graph';
import { modelCostOf, modelFactsOf, type Price } from '@drover/core/model/catalog';
import type { Cap } from '@drover/protocol/limits';
import type { RunSettings } from '@drover/protocol/run';
import { nameModel } from '../model/model-choice.ts';
import { mostDollarsForTokens, findModelPrice } from '../model/price.ts';
import { exitCode } from '../start/exit-code.ts';
import { type Io, printLine } from '../io.ts';
import { countText, dollarsText, durationText, shortCountText } from '../views/text/figures.ts';
import { cleanText, terminalColumns, textOnOneLine } from '../views/text/terminal-text.ts';
import type { BatchArgs } from './batch-options.ts';
import { type Batch, batchSettings, batchOwnModel } from './start-batch.ts';

const CHARS_PER_TOKEN = 4;
const LISTED_MAX = 100;
const OVERLAPS_SHOWN_MAX = 20;

export async function dryRunBatch(args: BatchArgs, batches: readonly Batch[], io: Io): Promise<number> {
  const texts: string[] = [];
  for (const batch of batches) texts.push(await forecastBatch(args, batch, io));
  await printLine(io, `Dry run: nothing is changed. This would run:\n${texts.join('\n')}`);
  return exitCode.done;
}

async function forecastBatch(args: BatchArgs, batch: Batch, io: Io): Promise<string> {
  const { prepared, around, specFile } = batch;
  const run = await batchSettings(args, batch, io);
  const label = batchOwnModel(args, batch, io) ?? run.model;
  const model = nameModel(label, around.settings);
  const price = findModelPrice(model, undefined, around.settings);
  const { contextTokens, outputTokensMax } = modelFactsOf(model.name);
  const { tasks } = prepared;
  const tokens = tasks.map(({ prompt }) => Math.ceil(prompt.length / CHARS_PER_TOKEN));
  const known = args.fresh ? 0 : await countCachedTasks(batch, label);
  const sum = tokens.reduce((total, each) => total + each, 0);
  const facts: readonly (readonly [string, string])[] = [
    ['batch', `${specFile.spec.name} (${specFile.file})`],
    ['repository', `${run.repository} at ${run.base.slice(0, 12)}`],
    [
      'tasks',
      `${tasks.length}${args.shard === undefined ? '' : ` of ${prepared.total}, shard ${args.shard.index}/${args.shard.count}`}`,
    ],
    ...(known === 0 ? [] : [['known', `${known} of them from earlier runs, at no cost`] as const]),
    ['workers', run.workers === 0 ? 'one, in this thread' : String(run.workers)],
    ['gates', run.gates.length === 0 ? 'none on the merged tree' : run.gates.join('; ')],
    ['model', label],
    ['prompts', `${countText(sum)} tokens, ${countText(Math.max(0, ...tokens))} the longest`],
    [
      'at most',
      worstCaseOfBatch(run, {
        tasks: tasks.length,
        price,
        stepTokens: { input: contextTokens, output: outputTokensMax },
      }),
    ],
    ['time', run.timeoutMs === undefined ? 'no limit' : `at most ${durationText(run.timeoutMs)}`],
  ];
  const width = Math.max(...facts.map(([name]) => name.length));
  const head = facts.map(([name, value]) => `  ${name.padEnd(width)}  ${cleanText(value)}\n`).join('');
  const columns = terminalColumns(io.stdout);
  const names = Math.max(0, ...tasks.map(({ id }) => id.length));
  const listed = tasks
    .slice(0, LISTED_MAX)
    .map(
      ({ id, title }, at) =>
        `  ${id.padEnd(names)}  ${shortCountText(tokens[at] ?? 0).padStart(6)} tokens  ${textOnOneLine(title, columns - names - 19)}\n`,
    );
  const more = tasks.length > LISTED_MAX ? [`  … and ${tasks.length - LISTED_MAX} more; --list prints all\n`] : [];
  const plan =
    tasks.length === 0
      ? '\nThere is nothing to do.\n'
      : `\nIn the order in which they would land:\n${listed.join('')}${more.join('')}`;
  return `${head}${plan}${batchOverlapLines(batch, columns)}`;
}

/** Number of tasks that an earlier run has done. */
async function countCachedTasks({ prepared: { tasks, tree }, around }: Batch, model: string): Promise<number> {
  const { home } = around.settings;
  const found = await Promise.all(
    tasks.map((task) => findBatchCacheEntry(home, batchCacheSlot(task, model, tree), tree)),
  );
  return found.filter((entry) => entry !== undefined).length;
}

type Measure = {
  readonly tasks: number;
  readonly price: Price | undefined;
  readonly stepTokens: { readonly input: number; readonly output: number };
};

/** The upper bound of the cost, in words. */
function worstCaseOfBatch({ cap, taskCap, taskLimits }: RunSettings, { tasks, price, stepTokens }: Measure): string {
  const steps = tasks * taskLimits.stepsMax;
  const usage = { input: steps * stepTokens.input, output: steps * stepTokens.output, cacheRead: 0, cacheWrite: 0 };
  const bounds: (readonly [Cap, string])[] = [
    ...(cap === undefined ? [] : [[cap, 'the budget'] as const]),
    ...(taskCap === undefined ? [] : [[multiplyCap(taskCap, tasks), `${tasks} times the limit of a task`] as const]),
  ];
  // Compare in dollars if there is a price: one bound may be in tokens and the other in dollars.
  const amount = (each: Cap) =>
    'usd' in each ? each.usd : price === undefined ? each.tokens : mostDollarsForTokens(each.tokens, price);
  const [first] = bounds.toSorted(([a], [b]) => amount(a) - amount(b));
  if (first !== undefined) return `${capOfBatchWords(first[0], price)} (${first[1]})`;
  const open =
    price === undefined
      ? `${shortCountText(usage.input + usage.output)} tokens`
      : dollarsText(modelCostOf(usage, price));
  return `${open}, if every task took all its ${taskLimits.stepsMax} steps with a full context; set limits.budget or limits.perTask`;
}

function multiplyCap(cap: Cap, factor: number): Cap {
  return 'usd' in cap ? { usd: cap.usd * factor } : { tokens: cap.tokens * factor };
}

function capOfBatchWords(cap: Cap, price: Price | undefined): string {
  if ('usd' in cap) return dollarsText(cap.usd);
  const most = price === undefined ? '' : `, at most ${dollarsText(mostDollarsForTokens(cap.tokens, price))}`;
  return `${countText(cap.tokens)} tokens${most}`;
}

/** Lists tasks that must wait for each other, because they change the same files. */
function batchOverlapLines({ prepared: { tasks } }: Batch, columns: number): string {
  const found = [...waitsOfPlan(tasks)].filter(([, { follows }]) => follows.length > 0);
  if (found.length === 0) return tasks.length === 0 ? '' : '\nNo two tasks change the same files.\n';
  const lines = found
    .slice(0, OVERLAPS_SHOWN_MAX)
    .map(([id, { follows }]) => `  ${textOnOneLine(`${id} waits for ${follows.join(', ')}`, columns - 2)}\n`);
  const more = found.length > OVERLAPS_SHOWN_MAX ? [`  … and ${found.length - OVERLAPS_SHOWN_MAX} more\n`] : [];
  return `\nTasks that change files which others change too (${found.length}):\n${lines.join('')}${more.join('')}`;
}
