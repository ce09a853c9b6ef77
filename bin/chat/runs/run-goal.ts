// /run: hands the conversation of a chat to a coordinator. The run is like any other: `drover runs`, `show`, `diff`,
// `merge` and `resume` know it. Its report comes back with the next message of the user.

import { UsageError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import type { Message } from '@drover/protocol/messages';
import type { Io } from '../../io.ts';
import { type RunArgs, untypedRunArgs } from '../../run/run-options.ts';
import { newRunSettings, openRunSurroundings, startRun } from '../../run/start-run.ts';
import type { Budget } from '../../start/quantities.ts';
import type { Settings } from '../../start/settings.ts';
import type { Talk } from '../talk.ts';

/** Arguments of the chat that also hold for its runs. */
export type ChatArgs = Pick<
  RunArgs,
  | 'model'
  | 'log'
  | 'allow'
  | 'ask'
  | 'deny'
  | 'trust-project'
  | 'yes'
  | 'sandbox'
  | 'net'
  | 'writable'
  | 'steps'
  | 'mcp'
>;

export type Handover = { readonly goal: string; readonly talk: Talk; readonly args: ChatArgs };

const HANDED_OVER =
  '[The user now hands this conversation to a run. From here on you coordinate the run: what was said so far is background, and the goal of the run follows.]';

/** Throws UsageError if the chat may not start a run now. */
export function checkHandover({ goal, talk }: Handover): void {
  if (goal === '') throw new UsageError('say what the run is to achieve: /run <goal>');
  if (goal.startsWith('--'))
    throw new UsageError(
      '/run takes only a goal, no flags; name gates in the config, or start the run with: drover run --gate …',
    );
  if (talk.mode === 'read only')
    throw new UsageError('a run changes files, and the chat is in read-only mode; Shift-Tab changes it');
  if (isUsedUp(talk.budgetLeft)) throw new UsageError('the budget of this chat is used up, so no run can start');
}

/** Runs the goal on the terminal of `io`, which nothing else uses meanwhile. */
export async function runGoalOfChat({ goal, talk, args }: Handover, io: Io): Promise<void> {
  const around = await openRunSurroundings(io.cwd, io, { trustsAll: args['trust-project'] });
  const wanted = runArgsOfChat(args, talk, around.settings);
  const run = await newRunSettings(wanted, { goal, tasks: undefined }, around, io);
  const id = newId('run');
  await talk.beginRun(id, goal);
  try {
    await startRun(wanted, { ...around, id, run, tasks: undefined, opening: openingOf(talk.handedOver) }, io);
  } finally {
    await talk.endRun(id);
  }
}

function openingOf(messages: readonly Message[]): readonly Message[] {
  if (messages.length === 0) return [];
  return [...messages, { role: 'user', content: [{ type: 'text', text: HANDED_OVER }] }];
}

/** A model that the user chose overrides the roles of the config. */
function runArgsOfChat(args: ChatArgs, talk: Talk, { models }: Settings): RunArgs {
  const { mode, budgetLeft: budget } = talk;
  const hasRoles = models.plan !== undefined || models.work !== undefined;
  const isChosen = args.model !== undefined || talk.isModelChosen;
  const { log, allow, ask, deny, sandbox, net, writable, steps, mcp } = args;
  const common = { log, allow, ask, deny, sandbox, net, writable, steps, mcp, 'trust-project': args['trust-project'] };
  return {
    ...untypedRunArgs(),
    ...common,
    model: hasRoles && !isChosen ? undefined : talk.model.label,
    yes: args.yes && mode !== 'ask',
    budget,
  };
}

function isUsedUp(budget: Budget | undefined): boolean {
  if (budget === undefined) return false;
  return ('usd' in budget ? budget.usd : budget.tokens) <= 0;
}
