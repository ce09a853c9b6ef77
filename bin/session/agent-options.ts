// Options of every command that runs one agent, and the session work they describe.

import { resolve } from 'node:path';
import { STEPS_MAX_DEFAULT } from '@drover/core/agent/limits';
import type { Input } from '@drover/core/session/execution';
import { UsageError } from '@drover/core/errors';
import { flagOption, listOption, parseNonEmpty, valueOption, type Values } from '../start/command.ts';
import { openDiagnostics } from '../diagnostics.ts';
import { exitCode } from '../start/exit-code.ts';
import { printError, type Io } from '../io.ts';
import { ruleOptions } from '../permission/rule-options.ts';
import { parseBudget, parseCount, parseDuration } from '../start/quantities.ts';
import { shortenStoredId } from '../history/id.ts';
import { nextStepOfSession } from '../history/state.ts';
import { openContainment } from '../sandbox/containment.ts';
import { sandboxOptions, readSandboxWish } from '../sandbox/sandbox-options.ts';
import { loadSettings, type Settings } from '../start/settings.ts';
import { loadExtensions } from '../extensions/load.ts';
import { openTrustedProject, trustOptions } from '../trust/open-project.ts';
import { openView, viewOptions } from '../views/view-choice.ts';
import type { Begun } from './begun.ts';
import type { Executed } from './execution.ts';
import { chooseModel, modelInFolder, type ModelChoice } from '../model/model-choice.ts';
import { tellDefaultModel } from '../model/model-names.ts';
import type { SessionWork } from './open-session.ts';
import { statIfThere } from '@drover/core/files/lookup';

const STEPS_MAX = 10_000;

export const agentOptions = {
  model: valueOption(
    'Model:',
    'PROVIDER/NAME',
    'Model to use (default: of your config, else of your key)',
    parseNonEmpty,
  ),
  cwd: valueOption('Input:', 'DIR', 'Folder to work in (default: the current folder)', parseNonEmpty),
  ...viewOptions,
  log: valueOption('Output:', 'FILE', 'Write diagnostics to a file; DROVER_LOG sets their level', parseNonEmpty),
  ...ruleOptions,
  ...sandboxOptions,
  ...trustOptions,
  yes: flagOption('Permission:', 'Approve every question; deny rules still apply'),
  steps: {
    ...valueOption('Limits:', 'N', `Maximum number of steps (default: ${STEPS_MAX_DEFAULT})`, (text) =>
      parseCount(text, 1, STEPS_MAX),
    ),
    formerly: 'turns',
  },
  timeout: valueOption('Limits:', 'TIME', 'Time limit, such as 90s, 30m or 1h30m (default: none)', parseDuration),
  budget: valueOption(
    'Limits:',
    'AMOUNT',
    'Maximum to spend, such as 5usd or 200ktok (default: no limit)',
    parseBudget,
  ),
  gate: listOption('Limits:', 'CMD', 'Command that must pass when the agent is done', parseNonEmpty),
  mcp: listOption('Tools:', 'FILE', 'MCP servers to use, in a file like .mcp.json', parseNonEmpty),
};

export async function runSessionAgent(
  args: Values<typeof agentOptions>,
  session: Begun,
  input: Input,
  io: Io,
): Promise<number> {
  const view = await openView(args, 'asked known', io);
  const { settings, work: wanted } = await sessionWork(args, session, io);
  const diagnostics = await openDiagnostics(io, args.log);
  const work = { ...wanted, input, view };
  const { executeSession } = await import('./execution.ts');
  try {
    const executed = await executeSession(work, { settings, diagnostics, io });
    if (executed.code !== exitCode.done)
      await view.say(adviceAfterSession(executed, shortenStoredId(settings.home, session.id)));
    return executed.code;
  } finally {
    await diagnostics.close();
  }
}

type SessionArgs = Omit<Values<typeof agentOptions>, 'view' | 'json' | 'log'>;

/** Combines arguments and settings into the work of one session. Prints warnings and notices. */
export async function sessionWork(
  args: SessionArgs,
  session: Begun,
  io: Io,
): Promise<{ readonly settings: Settings; readonly work: SessionWork }> {
  const cwd = await sessionWorkFolder(args.cwd, session, io);
  const trust = { trustsAll: args['trust-project'] };
  const settings = await loadSettings(io, cwd, trust);
  if (session.past === undefined) await tellDefaultModel(args.model, settings, io);
  for (const warning of [
    ...settings.warnings,
    ...sessionElsewhereLines(session, cwd, args.cwd === undefined ? io.cwd : undefined),
  ])
    await printError(io, warning);
  const project = await openTrustedProject(io, cwd, trust);
  const model = sessionModel(args.model, session, { settings, io, cwd });
  const { allow, ask, deny, yes, steps, timeout: timeoutMs, budget, gate, mcp } = args;
  const rules = [...settings.rules, ...allow, ...ask, ...deny];
  const gates = [...settings.gates, ...gate];
  const wish = readSandboxWish(args, { settings, cwd: io.cwd, root: cwd });
  const containment = await openContainment(wish, { io, state: settings.home, root: cwd, project: cwd, yes });
  if (containment.notice !== undefined) await printError(io, containment.notice);
  const servers = { project, files: mcp };
  const extensions = await loadExtensions(project, settings, io);
  const limits = { steps, timeoutMs, budget };
  const work = { session: session.id, cwd, model, rules, yes, gates, ...limits, containment, servers, extensions };
  return { settings, work };
}

function adviceAfterSession({ code, status }: Executed, short: string): string {
  // The agent is done although a gate failed or its last calls were denied.
  const isWhole = status === 'done' || code === exitCode.gate;
  const next = nextStepOfSession(isWhole ? 'done' : status === 'suspended' ? status : 'incomplete', short);
  return code === exitCode.blocked ? `its last calls were not allowed (exit code ${code}); ${next}` : next;
}

/** The folder of --cwd; else the folder of the session; else the current one. */
async function sessionWorkFolder(wanted: string | undefined, { id, past }: Begun, io: Io): Promise<string> {
  const path = wanted === undefined ? (past?.cwd ?? io.cwd) : resolve(io.cwd, wanted);
  const found = await statIfThere(path);
  if (found?.isDirectory() === true) return path;
  if (wanted !== undefined || past === undefined) throw new UsageError(`--cwd: there is no folder ${path}`);
  throw new UsageError(`${path}, the folder of session ${id}, is gone; name another with --cwd DIR`);
}

/** Warns a user whose folder differs from the session's: another session may be meant. */
function sessionElsewhereLines({ id, past }: Begun, cwd: string, here: string | undefined): readonly string[] {
  if (past === undefined) return [];
  if (cwd !== past.cwd) return [`session ${id} worked in ${past.cwd} before; now it works in ${cwd}`];
  return here !== undefined && here !== cwd
    ? [`session ${id} works in ${cwd}, where it was begun; --cwd . makes it work here`]
    : [];
}

type SessionPlace = { readonly settings: Settings; readonly io: Io; readonly cwd: string };

/** The model of --model; else of the session; else of the config. */
function sessionModel(wanted: string | undefined, { past }: Begun, { settings, io, cwd }: SessionPlace): ModelChoice {
  if (wanted === undefined && past !== undefined) return chooseModel(past.model, settings, past.cwd);
  return modelInFolder(chooseModel(wanted, settings, io.cwd), { from: io.cwd, to: cwd });
}
