// The options of every command that plans or runs, and the settings that they make.

import { STEPS_MAX_DEFAULT, TEXT_CALL_RETRIES_DEFAULT } from '@drover/core/agent/limits';
import { UsageError } from '@drover/core/errors';
import type { Delivery, RunSettings } from '@drover/protocol/run';
import type { Seeding } from '@drover/protocol/plan';
import type { Repository } from '@drover/coordinator/git/repository';
import { choice, flag, list, nonEmpty, value, type Values } from '../start/command.ts';
import { agentOptions } from '../session/agent-options.ts';
import { parseCount, parseDuration } from '../start/quantities.ts';
import type { Settings } from '../start/settings.ts';
import { isContinuousIntegration, runViewOptions } from '../views/view-choice.ts';

const WORKERS_MAX = 64;
const WORKERS_DEFAULT_MAX = 8;
const TASKS_MAX = 1_000;
export const TASKS_DEFAULT = 50;
const ROUNDS_MAX = 20;
const ROUNDS_DEFAULT = 3;
const ATTEMPTS_DEFAULT = 2;

const SEEDINGS: readonly Seeding[] = ['full', 'brief', 'none'];
const DELIVERIES: readonly Delivery[] = ['branch', 'merge', 'patch'];

const { view: _, json: __, gate, ...shared } = agentOptions;

export const runOptions = {
  ...shared,
  gate: { ...gate, about: 'A command that must pass on the merged result (repeatable)' },
  ...runViewOptions,
  result: value('Output:', 'FILE', 'Write what became of the run to a file, as JSON', nonEmpty),
  junit: value('Output:', 'FILE', 'Write a JUnit report of the tasks to a file', nonEmpty),
  summary: value('Output:', 'FILE', 'Append a report for people to a file, as Markdown', nonEmpty),
  plan: value('Plan:', 'FILE', 'Carry out this plan, without asking for one', nonEmpty),
  rounds: value('Plan:', 'N', `At most so many plans (${ROUNDS_DEFAULT})`, (text) => parseCount(text, 1, ROUNDS_MAX)),
  tasks: value('Plan:', 'N', `At most so many tasks a plan (${TASKS_DEFAULT})`, (text) =>
    parseCount(text, 1, TASKS_MAX),
  ),
  'dry-run': flag('Plan:', 'Show the plan, and do nothing'),
  workers: value('Workers:', 'N', 'Work on so many tasks at a time; 0 works in this thread', (text) =>
    parseCount(text, 0, WORKERS_MAX),
  ),
  setup: list('Workers:', 'CMD', 'Prepare each workspace with it, such as "pnpm install"', nonEmpty),
  seed: choice('Workers:', 'What a worker begins with: the whole conversation, a brief, or its task', SEEDINGS),
  'task-timeout': value('Workers:', 'TIME', 'End a task after so long', parseDuration),
  'idle-timeout': value('Workers:', 'TIME', 'End a task in which nothing happens for so long', parseDuration),
  'fail-fast': flag('Workers:', 'Stop everything when one task fails'),
  deliver: choice('Result:', 'How to hand over what has landed (branch; patch in CI)', DELIVERIES),
  'allow-partial': flag('Result:', 'Exit with 0 also where some tasks failed'),
};

export type RunArgs = Values<typeof runOptions>;

/** What they are where nothing was typed. */
export function untyped(): RunArgs {
  const read = Object.entries(runOptions).map(([name, option]) => [name, option.read([])]);
  return Object.fromEntries(read) as RunArgs;
}

export type Place = {
  readonly goal: string;
  readonly model: string;
  readonly repository: Repository;
  readonly settings: Settings;
  readonly cores: number;
};

/** What a run is started with, from what was typed and what is configured. */
export function settingsOf(args: RunArgs, place: Place): RunSettings {
  const { goal, model, repository, settings, cores } = place;
  const workers = args.workers ?? settings.workers ?? Math.min(WORKERS_DEFAULT_MAX, Math.max(2, 2 * cores));
  const { timeout, budget: cap } = args;
  const setup = [...settings.setup, ...args.setup];
  const [taskTimeout, idleTimeout] = [args['task-timeout'], args['idle-timeout']];
  if (goal.trim() === '') throw new UsageError('the goal is empty; say what shall be achieved');
  return {
    goal,
    model,
    repository: repository.top,
    base: repository.head,
    notIncluded: repository.notIncluded,
    ...(repository.branch !== undefined && { branch: repository.branch }),
    workers,
    seeding: args.seed ?? 'full',
    gates: [...settings.gates, ...args.gate],
    ...(setup.length > 0 && { setup }),
    deliver: args.deliver ?? (isContinuousIntegration(settings.env) ? 'patch' : 'branch'),
    ...(cap !== undefined && { cap }),
    ...(timeout !== undefined && { timeoutMs: timeout }),
    roundsMax: args.rounds ?? ROUNDS_DEFAULT,
    tasksMax: args.tasks ?? TASKS_DEFAULT,
    attemptsMax: ATTEMPTS_DEFAULT,
    failFast: args['fail-fast'],
    taskLimits: {
      stepsMax: args.steps ?? settings.steps ?? STEPS_MAX_DEFAULT,
      textCallRetriesMax: settings.textCallRetries ?? TEXT_CALL_RETRIES_DEFAULT,
      ...(taskTimeout !== undefined && { timeoutMs: taskTimeout }),
      ...(idleTimeout !== undefined && { idleMs: idleTimeout }),
    },
  };
}
