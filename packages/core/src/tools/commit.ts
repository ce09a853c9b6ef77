// commit: creates a commit in the user's repository. Asks the user, unless a rule allows it.
//
// The sandbox mounts .git read-only, so a command cannot commit. This tool runs git outside the sandbox.
//
// Guarantees
//   1. No hook runs, nothing is signed, no editor opens.
//   2. The filters git-lfs and git-crypt run, because a commit without them would be wrong. Files with any other filter
//      are refused: it could run a script of the folder, which the agent may have written.
//   3. Nested repositories and submodules are left out: git would start another git there, with their configuration.

import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { toolPathInside } from './files/paths.ts';
import { runChildProcess } from './process/child.ts';
import { defineTool, type ToolContext } from './tool.ts';

const TIMEOUT_MS = 120_000;
const MESSAGE_CHARS_MAX = 20_000;
const FILTER_KEYS = '^filter\\..*\\.(clean|process)$';
const KNOWN_FILTER = /^"?git-(?:lfs|crypt)"? [\w "%.-]+$/;
const BY_HAND = 'ask the user to commit by hand';
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.pager=cat',
  'core.editor=:',
  'commit.gpgSign=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'diff.ignoreSubmodules=all',
  'status.submoduleSummary=false',
  'submodule.recurse=false',
].flatMap((setting) => ['-c', setting]);

export const commit = defineTool({
  name: 'commit',
  description: 'Commit changes to the repository of this folder. The user is asked first. No hooks run.',
  input: z.strictObject({
    message: z.string().check(z.minLength(1), z.maxLength(MESSAGE_CHARS_MAX)),
    paths: z.optional(z.array(z.string()).check(z.describe('Files or folders; default: everything that changed.'))),
  }),
  access: 'run',
  alone: true,
  subject: ({ message }) => message.split('\n', 1)[0] ?? '',
  async run({ message, paths = [] }, context) {
    const places = await Promise.all(paths.map((path) => toolPathInside(context.cwd, path)));
    const named = places.length === 0 ? ['.'] : places.map(({ shown }) => `:(literal)${shown}`);
    const nested = await nestedRepositoriesForCommitTool(context);
    const off = await commitToolFiltersOff(context);
    const pathspecs = ['--', ...named, ...nested.map((path) => `:(exclude,literal)${path}`)];
    await runGitForCommitTool([...off, 'add', '--all', ...pathspecs], context);
    const made = await runGitForCommitTool(
      [...off, 'commit', '--no-verify', '--message', message, ...pathspecs],
      context,
    );
    return [made.trim(), ...nested.map((path) => `${path} is a repository of its own, and is left out`)].join('\n');
  },
});

/** Settings that disable every filter but the known ones. Throws ToolError if a file of the folder has one of those. */
async function commitToolFiltersOff(context: ToolContext): Promise<readonly string[]> {
  const off = new Set<string>();
  const listed = await runGitForCommitTool(['config', '-z', '--get-regexp', FILTER_KEYS], context, [1]);
  for (const [name, command] of commitToolFiltersIn(listed)) {
    if (command === '' || KNOWN_FILTER.test(command)) continue;
    if (!/^[\w.-]+$/.test(name))
      throw new ToolError(`the filter '${name}' has a name that this tool cannot check; ${BY_HAND}`);
    const files = await runGitForCommitTool(
      ['ls-files', '-z', '--cached', '--others', '--exclude-standard', `:(attr:filter=${name})`],
      context,
    );
    const [file] = files.split('\0');
    if (file !== undefined && file !== '')
      throw new ToolError(
        `${file} has the filter '${name}', which would run '${command}' outside the sandbox; ${BY_HAND}`,
      );
    off.add(name);
  }
  return [...off].flatMap((name) =>
    ['clean=', 'process=', 'required=false'].flatMap((setting) => ['-c', `filter.${name}.${setting}`]),
  );
}

/** Names and commands. Each entry of git is the key, a newline and the value. */
function commitToolFiltersIn(listed: string): readonly (readonly [name: string, command: string])[] {
  return listed.split('\0').flatMap((entry) => {
    const end = entry.indexOf('\n');
    const name = /^filter\.(.*)\.\w+$/s.exec(end === -1 ? entry : entry.slice(0, end))?.[1];
    return name === undefined ? [] : [[name, end === -1 ? '' : entry.slice(end + 1)] as const];
  });
}

/** Lists untracked repositories and submodules without entering them. */
async function nestedRepositoriesForCommitTool(context: ToolContext): Promise<readonly string[]> {
  const listed = await runGitForCommitTool(['ls-files', '-z', '--others', '--stage', '--exclude-standard'], context);
  return listed.split('\0').flatMap((line) => {
    const submodule = /^160000 [0-9a-f]+ \d\t(.*)$/s.exec(line)?.[1];
    if (submodule !== undefined) return [submodule];
    return !line.includes('\t') && line.endsWith('/') ? [line.slice(0, -1)] : [];
  });
}

async function runGitForCommitTool(
  args: readonly string[],
  context: ToolContext,
  mayExitWith: readonly number[] = [],
): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const end = await runChildProcess(
    {
      file: 'git',
      args: ['--no-pager', ...SETTINGS, ...args],
      cwd: context.cwd,
      env: { ...context.env, GIT_TERMINAL_PROMPT: '0' },
      callId: context.callId,
      timeoutMs: TIMEOUT_MS,
      onStdout: (chunk): undefined => {
        bytes += chunk.length;
        // Copy: the chunk is released after this call.
        if (bytes <= OUTPUT_BYTES_MAX) chunks.push(Buffer.from(chunk));
      },
    },
    context.signal,
  );
  const text = Buffer.concat(chunks).toString();
  if (end.endedBy === 'abort') throw new ToolError('interrupted');
  // A truncated list of nested repositories must not be used.
  if (bytes > OUTPUT_BYTES_MAX) throw new ToolError('the repository has too many files for this tool');
  if (end.exitCode === 0 || mayExitWith.includes(end.exitCode ?? -1)) return text;
  throw new ToolError(text.trim() || `git ended by ${end.signal ?? `exit code ${end.exitCode}`}`);
}
