// git: shows status, diff and log, read-only.
//
// A repository's configuration can make git run programs: hooks, fsmonitor, external diffs, text conversions,
// filters, pagers, editors, transports, signature checks. The workspace is untrusted, so all of them are disabled,
// and the environment cannot enable them. Submodules have their own configuration and are not entered.
//
// With a sandbox, git runs inside it. A worker may write the .git of its workspace, and could point it at a repository
// or a folder elsewhere; inside, there is nothing else to show.

import * as z from 'zod/mini';
import { ToolError } from '../errors.ts';
import { quoteForSandboxShell } from '@drover/sandbox/sandbox';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { type ChildEnd, runChildProcess } from './process/child.ts';
import { gitSafeCommandEnvironment } from './process/git-environment.ts';
import { runShell } from './process/run-shell.ts';
import { Capture } from './output/capture.ts';
import { readableToolPath } from './files/paths.ts';
import { defineTool, toolOutputFile, type ToolContext } from './tool.ts';

const TIMEOUT_MS = 60_000;
const COMMITS = 20;
const COMMITS_MAX = 200;
const FILTERS_MAX = 200;

export const git = defineTool({
  name: 'git',
  description: 'Read-only git: status, diff (of the working tree, staged, or to a revision or range), log.',
  input: z.strictObject({
    action: z.enum(['status', 'diff', 'log']),
    path: z.optional(z.string()),
    staged: z.optional(z.boolean().check(z.describe('diff: what is staged.'))),
    revision: z.optional(z.string().check(z.describe('diff, log: e.g. HEAD~1 or main..HEAD.'))),
    count: z.optional(z.int().check(z.gte(1), z.lte(COMMITS_MAX), z.describe(`log: commits, default ${COMMITS}.`))),
  }),
  access: 'read',
  repeatable: true,
  subject: ({ action, path }) => (path === undefined ? action : `${action} ${path}`),
  async run({ action, path, staged = false, revision, count = COMMITS }, context) {
    const revisions = revision === undefined ? [] : [gitToolRevision(revision)];
    const { shown } = path === undefined ? { shown: undefined } : await readableToolPath(path, context);
    const paths = gitToolPathspecs(shown, context);
    const filters = await gitToolFiltersOff(context);
    switch (action) {
      case 'status':
        return gitToolAnswer(await askGitForTool([...filters, ...STATUS, ...paths], context), 'clean');
      case 'diff':
        return gitToolAnswer(
          await askGitForTool([...filters, ...DIFF, ...(staged ? ['--cached'] : []), ...revisions, ...paths], context),
          'no differences',
        );
      case 'log':
        return gitToolAnswer(
          await askGitForTool([...LOG, `--max-count=${count}`, ...revisions, ...paths], context),
          'no commits',
        );
    }
  },
});

/** Returns pathspecs for a literal path, without the paths that rules deny to read. */
function gitToolPathspecs(path: string | undefined, { denied }: ToolContext): readonly string[] {
  const excluded = (denied?.patterns ?? []).map((pattern) => `:(exclude,glob)${pattern}`);
  if (path === undefined && excluded.length === 0) return [];
  return ['--', `:(literal)${path ?? '.'}`, ...excluded];
}

const STATUS = ['status', '--short', '--branch', '--untracked-files=all', '--ignore-submodules=dirty'];
const DIFF = ['diff', '--no-ext-diff', '--no-textconv', '--no-color', '--ignore-submodules=dirty', '--submodule=short'];
const LOG = ['log', '--no-show-signature', '--no-color', '--no-decorate', '--date=short', '--format=%h %ad %an: %s'];

const OFF = [
  'core.fsmonitor=false',
  'core.hooksPath=/dev/null',
  'core.pager=cat',
  'core.editor=:',
  'core.askPass=true',
  'core.sshCommand=false',
  'core.untrackedCache=false',
  'diff.external=',
  'diff.autoRefreshIndex=false', // a refresh would lock and write the index
  'diff.noprefix=false',
  'diff.mnemonicPrefix=false',
  'protocol.allow=never',
  'credential.helper=',
  'log.showSignature=false',
  'gpg.program=false',
  'gpg.ssh.program=false',
  'gpg.x509.program=false',
  'status.relativePaths=true',
  'status.submoduleSummary=false',
  'color.ui=never',
  'color.status=never',
].flatMap((setting) => ['-c', setting]);

const ENVIRONMENT = {
  GIT_OPTIONAL_LOCKS: '0', // git writes no index, runs no hook for it and waits for no lock
  GIT_TERMINAL_PROMPT: '0',
  GIT_NO_LAZY_FETCH: '1',
  GIT_PAGER: 'cat',
  GIT_EDITOR: ':',
};

// Rejects revisions that git would read as an option.
function gitToolRevision(revision: string): string {
  if (/^[\w@^:][\w@^~:./{}+-]*$/.test(revision)) return revision;
  throw new ToolError(`${JSON.stringify(revision)} is not a revision`);
}

function gitToolAnswer(text: string, nothing: string): string {
  const trimmed = text.trimEnd();
  return trimmed === '' ? nothing : trimmed;
}

// Filters have arbitrary names, so list the configured ones first.
async function gitToolFiltersOff(context: ToolContext): Promise<readonly string[]> {
  const answer = await askGitForTool(['config', '--name-only', '--get-regexp', '^filter\\.'], context, [1]);
  const drivers = new Set(answer.split('\n').map((line) => line.replace(/\.[^.]*$/, '')));
  drivers.delete('');
  if (drivers.size > FILTERS_MAX) throw new ToolError('the repository configures too many filters');
  // `-c` takes everything after the first "=" as the value, so a filter with "=" in its name cannot be disabled.
  if (answer.includes('=')) throw new ToolError('the repository configures a filter with = in its name');
  return [...drivers].flatMap((driver) =>
    ['clean=', 'smudge=', 'process=', 'required=false'].flatMap((setting) => ['-c', `${driver}.${setting}`]),
  );
}

async function askGitForTool(
  args: readonly string[],
  context: ToolContext,
  mayExitWith: readonly number[] = [],
): Promise<string> {
  const whole = ['--no-pager', ...OFF, ...args];
  const { end, text, complaint } = await (context.sandbox === undefined
    ? askGitOutsideSandbox(whole, context)
    : askGitInsideSandbox(whole, context, context.sandbox));
  if (end.endedBy === 'abort') throw new ToolError('interrupted');
  if (end.endedBy === 'timeout') throw new ToolError(`git was stopped after ${TIMEOUT_MS / 1_000} s`);
  if (end.exitCode === 0 || mayExitWith.includes(end.exitCode ?? -1)) return text;
  throw new ToolError(complaint.trim() || `git ended by ${end.signal ?? `exit code ${end.exitCode}`}`);
}

type GitAnswer = { readonly end: ChildEnd; readonly text: string; readonly complaint: string };

async function askGitOutsideSandbox(args: readonly string[], context: ToolContext): Promise<GitAnswer> {
  const answer = new Capture(toolOutputFile(context));
  const problem = new Capture(`${toolOutputFile(context)}.stderr`);
  const outer = Object.entries(context.env).filter(([name]) => !name.startsWith('GIT_'));
  const end = await runChildProcess(
    {
      file: 'git',
      args,
      cwd: context.cwd,
      env: { ...Object.fromEntries(outer), ...ENVIRONMENT },
      callId: context.callId,
      timeoutMs: TIMEOUT_MS,
      onStdout: (chunk) => answer.write(chunk),
      onStderr: (chunk) => problem.write(chunk),
    },
    context.signal,
  );
  const [{ text }, complaint] = await Promise.all([answer.finish(), problem.finish()]);
  return { end, text, complaint: complaint.text };
}

// A sandbox has one stream of output, so stderr is kept apart until git has failed.
async function askGitInsideSandbox(
  args: readonly string[],
  context: ToolContext,
  sandbox: SandboxPolicy,
): Promise<GitAnswer> {
  const { cwd, callId, signal } = context;
  const answer = new Capture(toolOutputFile(context));
  // The folder's owner may have no name inside the sandbox. No program that git could run there gets out.
  const command = ['git', '-c', 'safe.directory=*', ...args].map(quoteForSandboxShell).join(' ');
  const settings = Object.entries(ENVIRONMENT).map(([name, value]) => `${name}=${quoteForSandboxShell(value)}`);
  const script = `{ e=$(${settings.join(' ')} ${command} 2>&1 >&3); c=$?; } 3>&1; [ $c = 0 ] || printf %s "$e"; exit $c`;
  const env = gitSafeCommandEnvironment(context.env);
  const onOutput = (chunk: Buffer) => answer.write(chunk);
  const end = await runShell({ script, cwd, env, sandbox, callId, timeoutMs: TIMEOUT_MS, onOutput }, signal);
  const { text } = await answer.finish();
  return { end, text, complaint: text };
}
