// Decides how workspaces get the dependencies that the checkout has, before anything is spent.
//
// Commands that the user configured, or lines of .drover/include, decide alone. Otherwise drover brings or installs
// what it found if the user agreed: with --setup auto, with --yes, by an earlier answer for this project, or at the
// terminal, where drover asks once. Without any of these it ends with the flags to choose from.

import { execFile } from 'node:child_process';
import {
  findDependencies,
  type Found,
  dependencyInstallCommand,
  type Need,
} from '@drover/coordinator/dependencies/detect';
import type { Repository } from '@drover/coordinator/git/repository';
import { readSlotInclude } from '@drover/coordinator/slots/include';
import { UsageError } from '@drover/core/errors';
import { childProcessEnvironment, gitProcessEnvironment } from '@drover/core/tools/process/environment';
import type { RunSettings } from '@drover/protocol/run';
import { printError, type Io } from '../io.ts';
import { typedLines } from '../terminal/typed-lines.ts';
import { textOnOneLine, writeOutControls } from '../views/text/terminal-text.ts';
import { gateCommandProblem } from './gate-check.ts';
import { readStoredSetup, storeSetup } from './project-setups.ts';

const AUTO = 'auto';
const NONE = 'none';
const NAMED_MAX = 3;
const PATH_COLUMNS = 60;
const CHECK_MS_MAX = 10_000;

/** The commands in the values of --setup and of the config. */
export function checkSetupCommands(setup: readonly string[]): readonly string[] {
  return setup.filter((command) => command !== AUTO && command !== NONE);
}

type Wish = {
  readonly setup: readonly string[];
  readonly yes: boolean;
  readonly mayRefuse: boolean;
  readonly home: string; // drover's own folder
};

export type Preparation = Pick<RunSettings, 'setup' | 'dependencies'>;

/** Folders to bring and commands to run. Throws UsageError if the user must choose or a tool is missing. */
export async function chooseDependencySetup(wish: Wish, repository: Repository, io: Io): Promise<Preparation> {
  const { setup, mayRefuse } = wish;
  if (mayRefuse) await replaceStoredSetup(wish, repository);
  if (setup.includes(NONE) || checkSetupCommands(setup).length > 0) return {};
  const found = await findDependencies(repository, gitProcessEnvironment(io.env));
  if (mayRefuse) await tellMissingPackagers(found, io);
  const lines = await readSlotInclude(repository.top);
  const isIncluded = (path: string) => lines.some(({ pattern }) => pattern === path);
  if (mayRefuse) await tellUnpreparedFolders(found, isIncluded, io);
  const needs = found.needs
    .filter(({ packager }) => packager.how !== 'nothing')
    .map((need) => ({
      ...need,
      isPathless: need.folders.length === 0,
      folders: need.folders.filter((path) => !isIncluded(path)),
    }))
    .filter(({ folders, isPathless }) => isPathless || folders.length > 0);
  if (needs.length === 0) return {};
  const answer = await agreeOnSetup(wish, needs, { repository, io });
  if (answer === undefined && mayRefuse) throw new UsageError(preparationQuestion(needs));
  if (answer === NONE || answer === undefined) return {};
  if (answer !== AUTO) return { setup: [answer] };
  if (mayRefuse) for (const need of needs) await showPreparation(need, io);
  const dependencies = needs.flatMap(({ packager, folders }) => (packager.how === 'bring' ? folders : []));
  const commands = needs.filter(({ packager }) => packager.how === 'install').map(dependencyInstallCommand);
  return {
    ...(dependencies.length > 0 && { dependencies }),
    ...(commands.length > 0 && { setup: commands }),
  };
}

/** A --setup that the user types is the newer answer for the project. */
async function replaceStoredSetup({ setup, home }: Wish, { top }: Repository): Promise<void> {
  const [typed] = setup;
  if (setup.length !== 1 || typed === undefined || (await readStoredSetup(home, top)) === undefined) return;
  await storeSetup(home, top, typed);
}

type AskPlace = { readonly repository: Repository; readonly io: Io };

/** Returns auto, none or a command; undefined without a terminal to ask on. */
async function agreeOnSetup(wish: Wish, needs: readonly Need[], place: AskPlace): Promise<string | undefined> {
  const { setup, yes, mayRefuse, home } = wish;
  if (yes || setup.includes(AUTO)) return AUTO;
  const { repository, io } = place;
  const stored = await readStoredSetup(home, repository.top);
  if (stored !== undefined) {
    if (mayRefuse && stored !== AUTO && stored !== NONE)
      await printError(
        io,
        `workspaces are prepared by '${textOnOneLine(stored, PATH_COLUMNS)}', your answer for this project; --setup replaces it`,
      );
    return stored;
  }
  const isTerminal = io.stdin.isTTY === true && io.stderr.isTTY === true;
  if (!isTerminal || !mayRefuse) return isTerminal ? AUTO : undefined;
  const answer = await askHowToPrepare(needs, io);
  if (answer !== undefined) await storeSetup(home, repository.top, answer);
  return answer;
}

async function askHowToPrepare(needs: readonly Need[], io: Io): Promise<string | undefined> {
  const lines = typedLines(io);
  try {
    const ways = needs.map((need) => `    ${dependencyNeedWords(need)}\n`).join('');
    const words = `  Workspaces would lack ${namedSetupCommands(needs)}. drover can prepare them:\n${ways}  [a]uto does so (Enter), [n]one does not; or type your own setup [c]ommand: `;
    for (;;) {
      const typed = (await lines.ask(words, new AbortController().signal))?.trim();
      if (typed === undefined || typed === '') return typed === '' ? AUTO : undefined;
      if (/^(n|no|none)$/i.test(typed)) return NONE;
      if (/^(a|auto|y|yes)$/i.test(typed)) return AUTO;
      const problem = await setupCommandProblem(typed, io);
      if (problem === undefined) return typed;
      await printError(
        io,
        `'${textOnOneLine(writeOutControls(typed), PATH_COLUMNS)}' cannot prepare a workspace: ${problem}`,
      );
    }
  } finally {
    lines.close();
  }
}

async function setupCommandProblem(typed: string, io: Io): Promise<string | undefined> {
  if (/^c$/i.test(typed)) return 'type the command itself';
  // An arrow key, for example.
  if (/\p{Cc}/u.test(typed)) return 'a key other than a letter was pressed';
  return gateCommandProblem(typed, { cwd: io.cwd, env: childProcessEnvironment(io.env) });
}

function preparationQuestion(needs: readonly Need[]): string {
  const ways = needs.map(dependencyNeedWords).join('; ');
  return [
    `workspaces would lack ${namedSetupCommands(needs)}, which ${needs.map(({ lockfile }) => lockfile).join(', ')} installs.`,
    `Choose: --setup auto (${ways}), --setup "<command>" (runs in each workspace), or --setup none`,
  ].join(' ');
}

function dependencyNeedWords(need: Need): string {
  if (need.packager.how === 'bring') return `each workspace gets your ${shortenFolderList(need.folders)}, read-only`;
  const hosts = need.packager.hosts ?? [];
  const net = hosts.length === 0 ? '' : `; a download needs ${hosts.map((host) => `--net ${host}`).join(' ')}`;
  return `each workspace runs '${dependencyInstallCommand(need)}'${net}`;
}

/** Describes how a need is met. Throws UsageError if the tool of its command is missing. */
async function showPreparation(need: Need, io: Io): Promise<void> {
  const { tool, how } = need.packager;
  if (how === 'install' && !(await isPackagerThere(tool, io)))
    throw new UsageError(
      `${need.lockfile} needs ${tool}, which is not on the PATH: install it, or choose --setup "<command>" or --setup none`,
    );
  await printError(io, dependencyNeedWords(need));
}

/** A lockfile without its tool: gates that need the tool can't pass. */
async function tellMissingPackagers({ locked }: Found, io: Io): Promise<void> {
  for (const { packager, lockfile } of locked) {
    // Other tools than pip read requirements.txt, and go.mod alone needs no installation.
    if (packager.name === 'pip' || packager.how === 'install' || (await isPackagerThere(packager.tool, io))) continue;
    if (
      packager.how === 'bring' &&
      locked.some((other) => other.packager !== packager && other.packager.how === 'bring')
    )
      continue;
    await printError(
      io,
      `${lockfile} is of ${packager.name}, but there is no ${packager.tool} on the PATH: gates that need it will fail`,
    );
  }
}

/** Reports dependencies that workspaces will lack, because drover can neither bring nor install them. */
async function tellUnpreparedFolders(
  { unexplained, notInstalled }: Found,
  isIncluded: (path: string) => boolean,
  io: Io,
): Promise<void> {
  for (const { packager, lockfile } of notInstalled)
    await printError(
      io,
      `${lockfile} names packages, but node_modules is not there, so workspaces lack them: install them with ${packager.tool} first, or pass --setup "<command>"`,
    );
  const left = unexplained.filter((path) => !isIncluded(path));
  if (left.length > 0)
    await printError(
      io,
      `workspaces will lack ${shortenFolderList(left)}, and no lockfile says how to install it: pass --setup "<command>", or name it in .drover/include`,
    );
}

function isPackagerThere(tool: string, io: Io): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { env: childProcessEnvironment(io.env), timeout: CHECK_MS_MAX };
    execFile('sh', ['-c', 'command -v -- "$0"', tool], options, (error) => resolve(error === null));
  });
}

function namedSetupCommands(needs: readonly Need[]): string {
  const folders = needs.flatMap((need) =>
    need.folders.length === 0 ? [`the packages of ${need.lockfile}`] : need.folders,
  );
  return shortenFolderList(folders);
}

function shortenFolderList(folders: readonly string[]): string {
  const more = folders.length - NAMED_MAX;
  const first = folders.slice(0, NAMED_MAX).map((path) => textOnOneLine(path, PATH_COLUMNS));
  return `${first.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
