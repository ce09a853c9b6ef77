// Options of every command that plans or runs, and the run settings they become.

import { STEPS_MAX_DEFAULT, TEXT_CALL_RETRIES_DEFAULT } from '@drover/core/agent/limits';
import { UsageError } from '@drover/core/errors';
import type { Delivery, ModelRoles, RunSettings } from '@drover/protocol/run';
import type { Hook } from '@drover/core/hooks/hook';
import type { Seeding } from '@drover/protocol/plan';
import type { Repository } from '@drover/coordinator/git/repository';
import { choiceOption, flagOption, listOption, parseNonEmpty, valueOption, type Values } from '../start/command.ts';
import { checkSetupCommands } from '../preflight/dependencies.ts';
import { modelRoleSettings } from '../model/model-roles.ts';
import { agentOptions } from '../session/agent-options.ts';
import { parseCount, parseDuration } from '../start/quantities.ts';
import { parseAuthor } from '../start/result-options.ts';
import type { Settings } from '../start/settings.ts';
import { readTraceParent } from '../telemetry/live.ts';
import { isContinuousIntegration, runViewOptions } from '../views/view-choice.ts';

export const WORKERS_MAX = 128;
const THREADS_MAX = 64;
const WORKERS_DEFAULT_MAX = 8;
const TASKS_MAX = 1_000;
export const TASKS_DEFAULT = 50;
const ROUNDS_MAX = 20;
const ROUNDS_DEFAULT = 3;
const ATTEMPTS_DEFAULT = 2;

const SEEDINGS: readonly Seeding[] = ['full', 'brief', 'none'];
const DELIVERIES: readonly Delivery[] = ['branch', 'merge', 'patch'];

const { model, view: _, json: __, gate, ...shared } = agentOptions;

const roleOptions = {
  'plan-model': listOption('Model:', 'NAME', 'Model that plans; more of them are fallbacks, in order', parseNonEmpty),
  'work-model': listOption(
    'Model:',
    'NAME',
    'Model of the workers; more of them are fallbacks, in order',
    parseNonEmpty,
  ),
};

export const runOptions = {
  model,
  ...roleOptions,
  ...shared,
  gate: { ...gate, about: 'Command that must pass on the merged result (repeatable)' },
  ...runViewOptions,
  result: valueOption('Output:', 'FILE', 'Write the result of the run to a file, as JSON', parseNonEmpty),
  junit: valueOption('Output:', 'FILE', 'Write a JUnit report of the tasks to a file', parseNonEmpty),
  summary: valueOption('Output:', 'FILE', 'Append a Markdown report to a file', parseNonEmpty),
  plan: valueOption('Plan:', 'FILE', 'Run the plan in this file instead of making one', parseNonEmpty),
  rounds: valueOption('Plan:', 'N', `Maximum number of plans (default: ${ROUNDS_DEFAULT})`, (text) =>
    parseCount(text, 1, ROUNDS_MAX),
  ),
  tasks: valueOption('Plan:', 'N', `Maximum number of tasks per plan (default: ${TASKS_DEFAULT})`, (text) =>
    parseCount(text, 1, TASKS_MAX),
  ),
  'allow-red-base': flagOption('Plan:', 'Start even if a gate fails on the base; no gate may get worse'),
  'dry-run': flagOption('Plan:', 'Show what would run, without running it'),
  workers: valueOption(
    'Workers:',
    'N',
    'Number of tasks to run at once; 0 uses this thread (default: twice the cores, at most 8)',
    (text) => parseCount(text, 0, WORKERS_MAX),
  ),
  threads: valueOption(
    'Workers:',
    'N',
    'Number of threads that the workers share; 0 uses this thread (default: one per core)',
    (text) => parseCount(text, 0, THREADS_MAX),
  ),
  queue: valueOption(
    'Hosts:',
    'URL',
    'Run tasks on the worker hosts at this Redis, such as redis://host:6379',
    parseNonEmpty,
  ),
  local: valueOption(
    'Hosts:',
    'N',
    'Number of tasks to run on this machine as well (default: 0; with --queue)',
    (text) => parseCount(text, 0, WORKERS_MAX),
  ),
  setup: listOption(
    'Workers:',
    'CMD',
    'Command that prepares each workspace; auto brings or installs dependencies, none does nothing',
    parseNonEmpty,
  ),
  seed: choiceOption(
    'Workers:',
    'Context of a worker: the conversation, a brief, or only its task (default: full)',
    SEEDINGS,
  ),
  'task-timeout': valueOption('Workers:', 'TIME', 'Time limit per task (default: none)', parseDuration),
  'idle-timeout': valueOption(
    'Workers:',
    'TIME',
    'Time limit for a task without any progress (default: none)',
    parseDuration,
  ),
  'fail-fast': flagOption('Workers:', 'Stop the run when one task fails'),
  deliver: choiceOption('Result:', 'How to deliver the result (default: branch; in CI: patch)', DELIVERIES),
  branch: valueOption(
    'Result:',
    'NAME',
    'Name of the branch with the result (default: drover/<goal>-<6 characters>)',
    parseNonEmpty,
  ),
  author: valueOption(
    'Result:',
    'AUTHOR',
    "Author of the commits, as 'Name <email>' (default: user.name and user.email)",
    parseAuthor,
  ),
  'allow-partial': flagOption('Result:', 'Exit with 0 even if some tasks failed'),
};

export type RunArgs = Values<typeof runOptions>;

/** The values of all options if the user typed none. */
export function untypedRunArgs(): RunArgs {
  const read = Object.entries(runOptions).map(([name, option]) => [name, option.read([])]);
  return Object.fromEntries(read) as RunArgs;
}

export type SettingsPlace = {
  readonly goal: string;
  readonly roles: ModelRoles;
  readonly repository: Repository;
  readonly settings: Settings;
  readonly cores: number;
};

/** Hooks before a merge, as gates: commands that must pass on the merged tree, with the input of a hook. */
function listStopHookGates(hooks: readonly Hook[]): readonly string[] {
  return hooks
    .filter(({ at }) => at === 'before merge')
    .map(({ command }) => `echo '{"hook":"before merge"}' | (${command})`);
}

/** Combines arguments and settings into the settings of a run. */
export function runSettingsFromArgs(args: RunArgs, place: SettingsPlace): RunSettings {
  const { goal, roles, repository, settings, cores } = place;
  const workers = args.workers ?? settings.workers ?? Math.min(WORKERS_DEFAULT_MAX, Math.max(2, 2 * cores));
  const { timeout, budget: cap } = args;
  const setup = checkSetupCommands([...settings.setup, ...args.setup]);
  const [taskTimeout, idleTimeout] = [args['task-timeout'], args['idle-timeout']];
  if (goal.trim() === '') throw new UsageError('the goal is empty; say what to achieve');
  return {
    goal,
    ...modelRoleSettings(roles),
    repository: repository.top,
    ...readTraceParent(settings.env),
    base: repository.head,
    notIncluded: repository.notIncluded,
    ...(repository.branch !== undefined && { branch: repository.branch }),
    workers,
    seeding: args.seed ?? 'full',
    gates: [...settings.gates, ...listStopHookGates(settings.hooks), ...args.gate],
    ...(args['allow-red-base'] && { allowRedBase: true }),
    ...(setup.length > 0 && { setup }),
    deliver: args.deliver ?? (args.branch === undefined && isContinuousIntegration(settings.env) ? 'patch' : 'branch'),
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
