// commit: creates a commit in the user's repository. Asks the user, unless a rule allows it.
//
// The sandbox mounts .git read-only, so a command cannot commit. This tool runs git outside the sandbox.
//
// Guarantees
//   1. No hook runs, nothing is signed, no editor opens.
//   2. Filters that the user has configured, such as LFS, run: a commit without them would be wrong.
//   3. Nested repositories and submodules are left out: git would start another git there, with their configuration.

import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { inside } from './files/paths.ts';
import { runChild } from './process/child.ts';
import { defineTool, type ToolContext } from './tool.ts';

const TIMEOUT_MS = 120_000;
const MESSAGE_CHARS_MAX = 20_000;
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
    const places = await Promise.all(paths.map((path) => inside(context.cwd, path)));
    const named = places.length === 0 ? ['.'] : places.map(({ shown }) => `:(literal)${shown}`);
    const nested = await nestedRepositories(context);
    const pathspecs = ['--', ...named, ...nested.map((path) => `:(exclude,literal)${path}`)];
    await git(['add', '--all', ...pathspecs], context);
    const made = await git(['commit', '--no-verify', '--message', message, ...pathspecs], context);
    return [made.trim(), ...nested.map((path) => `${path} is a repository of its own, and is left out`)].join('\n');
  },
});

/** Lists untracked repositories and submodules without entering them. */
async function nestedRepositories(context: ToolContext): Promise<readonly string[]> {
  const listed = await git(['ls-files', '-z', '--others', '--stage', '--exclude-standard'], context);
  return listed.split('\0').flatMap((line) => {
    const submodule = /^160000 [0-9a-f]+ \d\t(.*)$/s.exec(line)?.[1];
    if (submodule !== undefined) return [submodule];
    return !line.includes('\t') && line.endsWith('/') ? [line.slice(0, -1)] : [];
  });
}

async function git(args: readonly string[], context: ToolContext): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const end = await runChild(
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
  if (end.exitCode === 0) return text;
  throw new ToolError(text.trim() || `git ended by ${end.signal ?? `exit code ${end.exitCode}`}`);
}
