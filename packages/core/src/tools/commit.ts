// commit: make a commit in the user's repository. It is asked about, unless a rule allows it.
//
// The sandbox mounts .git read-only, so a command cannot commit. This tool runs git outside: no hook runs, nothing is
// signed, no editor opens. Filters that the user has configured, such as LFS, run: a commit without them would be wrong.

import * as z from 'zod/mini';
import { ToolError } from '../failure.ts';
import { inside } from './files/paths.ts';
import { Capture } from './output/capture.ts';
import { runChild } from './process/child.ts';
import { defineTool, outputFile, type ToolContext } from './tool.ts';

const TIMEOUT_MS = 120_000;
const MESSAGE_CHARS_MAX = 20_000;

const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.pager=cat',
  'core.editor=:',
  'commit.gpgSign=false',
  'gc.auto=0',
  'maintenance.auto=false',
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
    const named = places.length === 0 ? ['.'] : places.map(({ shown }) => shown);
    await git(['add', '--all', '--', ...named], context);
    const made = await git(['commit', '--no-verify', '--message', message, '--', ...named], context);
    return made.trim();
  },
});

async function git(args: readonly string[], context: ToolContext): Promise<string> {
  const output = new Capture(outputFile(context));
  const end = await runChild(
    {
      file: 'git',
      args: ['--no-pager', '--literal-pathspecs', ...SETTINGS, ...args],
      cwd: context.cwd,
      env: { ...context.env, GIT_TERMINAL_PROMPT: '0' },
      callId: context.callId,
      timeoutMs: TIMEOUT_MS,
      onStdout: (chunk) => output.write(chunk),
    },
    context.signal,
  );
  const { text } = await output.finish();
  if (end.endedBy === 'abort') throw new ToolError('interrupted');
  if (end.exitCode === 0) return text;
  throw new ToolError(text.trim() || `git ended by ${end.signal ?? `exit code ${end.exitCode}`}`);
}
