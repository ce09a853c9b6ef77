// Checks what drover needs of the machine: Node, git, bash, ripgrep, and a way to find processes it started.

import { readFile } from 'node:fs/promises';
import { checkGitVersion, openRepository } from '@drover/coordinator/git/repository';
import { ToolError, UsageError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import { runChildProcess } from '@drover/core/tools/process/child';
import { childProcessEnvironment, gitProcessEnvironment } from '@drover/core/tools/process/environment';
import { ripgrepFile } from '@drover/core/tools/files/ripgrep';
import type { Io } from '../io.ts';
import { errorCodeOf } from '../start/settings.ts';
import type { Finding } from './finding.ts';

const PROGRAM_MS_MAX = 10_000;
const CHANGED_NAMED_MAX = 3;

export async function checkMachine(io: Io, cwd: string): Promise<readonly Finding[]> {
  const found = await Promise.all([
    checkMachineGit(io, cwd),
    checkMachineProgram(io, {
      check: 'bash',
      file: async () => 'bash',
      fix: 'install bash: agents run their commands with it',
    }),
    checkMachineProgram(io, {
      check: 'ripgrep',
      file: ripgrepFile,
      fix: 'install drover again: agents search files with the ripgrep that comes with it',
    }),
    checkProcessListing(),
  ]);
  // The start script rejects an older Node before this runs.
  return [{ check: 'node', state: 'good', says: `${process.versions.node} (${io.node})` }, ...found.flat()];
}

async function checkMachineGit(io: Io, cwd: string): Promise<readonly Finding[]> {
  try {
    const says = await checkGitVersion(cwd, childProcessEnvironment(io.env));
    return [{ check: 'git', state: 'good', says }, await checkHereIsRepository(io, cwd)];
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return [{ check: 'git', state: 'bad', says: error.message }];
  }
}

type Program = { readonly check: string; readonly file: () => Promise<string>; readonly fix: string };

/** Whether the program starts, and its version. */
async function checkMachineProgram(io: Io, { check, file, fix }: Program): Promise<Finding> {
  let output = '';
  const keep = (chunk: Buffer): undefined => void (output += chunk.toString());
  const child = { args: ['--version'], cwd: io.cwd, env: childProcessEnvironment(io.env), callId: newId('call') };
  const bounds = { timeoutMs: PROGRAM_MS_MAX, onStdout: keep, onStderr: () => undefined };
  try {
    const end = await runChildProcess({ file: await file(), ...child, ...bounds }, new AbortController().signal);
    const version = output.split('\n', 1)[0]?.trim() ?? '';
    if (end.exitCode === 0) return { check, state: 'good', says: version };
    return { check, state: 'bad', says: `it is there, but does not run (${end.exitCode ?? end.signal})`, fix };
  } catch (error) {
    // The check covers programs that come with drover, because those may be missing too.
    if (!(error instanceof ToolError || (error instanceof Error && 'code' in error))) throw error;
    return { check, state: 'bad', says: `it cannot be started: ${error.message}`, fix };
  }
}

/** A run needs a repository; a single agent does not. */
async function checkHereIsRepository(io: Io, cwd: string): Promise<Finding> {
  const check = 'repository';
  try {
    const { top, branch, notIncluded } = await openRepository(cwd, gitProcessEnvironment(io.env));
    const where = `${top}, ${branch === undefined ? 'at no branch' : `on ${branch}`}`;
    if (notIncluded.length === 0) return { check, state: 'good', says: where };
    const named = notIncluded.slice(0, CHANGED_NAMED_MAX).join(', ');
    const more = notIncluded.length > CHANGED_NAMED_MAX ? ` and ${notIncluded.length - CHANGED_NAMED_MAX} more` : '';
    const fix = 'commit it if workers need it: a run starts from the last commit';
    return { check, state: 'note', says: `${where}; not committed: ${named}${more}`, fix };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const fix = 'drover run, plan and batch need a repository; drover exec and chat work in any folder';
    return { check, state: 'note', says: error.message, fix };
  }
}

/** drover finds leftover processes of commands through /proc. */
async function checkProcessListing(): Promise<Finding> {
  const check = 'processes';
  try {
    await Promise.all([readFile('/proc/self/stat'), readFile('/proc/self/environ')]);
    return { check, state: 'good', says: 'drover can find and stop every process that a command starts' };
  } catch (error) {
    const says = `/proc cannot be read (${errorCodeOf(error)}), so a command that leaves its process group outlives its call`;
    return { check, state: 'note', says };
  }
}
