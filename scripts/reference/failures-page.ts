// The reference page of failures and exit codes: the meaning of each kind, what drover does, and what the user can do.

import { FAILURES, type FailureKind } from '@drover/protocol/failures';
import { EXIT_CODES } from '@drover/protocol/outcomes';
import { exitCodeWords } from '../../bin/start/exit-code.ts';
import { code, page, table } from './markdown.ts';

const INTRO =
  'A failure is data: events, journals and reports carry its `kind`. The last column says what you can do. `drover show <id>` prints the failure of a run or session in one sentence.';

type Help = { readonly means: string; readonly todo: string };

const HELP: Readonly<Record<FailureKind, Help>> = {
  aborted: { means: 'You, a signal or a crash interrupted the work.', todo: '`drover resume`' },
  'task.cancelled': {
    means: 'You cancelled this one task in the dashboard, on the page or over HTTP.',
    todo: 'Nothing. To have it done after all, retry it: `r` in the dashboard, or `drover retry`.',
  },
  'provider.unavailable': {
    means: 'The provider is overloaded, unreachable or closed the connection, also after retries.',
    todo: 'Resume later, or name a fallback model.',
  },
  'provider.throttled': {
    means: 'The provider asks for fewer requests, and drover waited as long as it could.',
    todo: 'Use fewer `--workers`, or resume later.',
  },
  'provider.rejected': {
    means: 'The provider refuses the request: wrong key, no quota, unknown model.',
    todo: '`drover doctor --online` tries the key. The message names the reason.',
  },
  'provider.garbled': {
    means: 'The answer was cut off or is not what the API describes.',
    todo: 'Check a proxy or a compatible server in between, then resume.',
  },
  'provider.stalled': {
    means: 'The provider went quiet in the middle of an answer.',
    todo: 'Resume, or raise `timeouts` in the config for a slow local model.',
  },
  'request.unmade': {
    means: 'The key or the address has characters that a request cannot carry.',
    todo: 'Set the variable again, without line breaks and quotes.',
  },
  'context.overflow': {
    means: 'The conversation does not fit the model, even shortened.',
    todo: 'Split the task, or use a model with a larger window.',
  },
  'answer.empty': {
    means: 'The model answered nothing, twice.',
    todo: 'Say more in the prompt, or try another model.',
  },
  'answer.refused': { means: 'The model declined.', todo: 'Change the prompt.' },
  'answer.paused': {
    means: 'The model paused again and again without an answer.',
    todo: 'Try again, or another model.',
  },
  'answer.text_call': {
    means: 'The model writes tool calls as text instead of making them.',
    todo: 'Use a model that supports tools, or set `textCallRetries: 0` if the detection is wrong.',
  },
  'tool.unknown': { means: 'The model asked for tools that do not exist.', todo: 'Try another model.' },
  'compaction.failed': { means: 'The conversation could not be summarized.', todo: 'Resume, or begin a new session.' },
  internal: { means: 'A bug in drover.', todo: 'Run again with `DROVER_DEBUG=1` and report it.' },
  'journal.busy': { means: 'Another drover process writes this run or session.', todo: 'Wait for it, or stop it.' },
  'journal.damaged': {
    means: 'A line of the journal is not what drover wrote.',
    todo: 'The message names the file and line. Begin a new run.',
  },
  'journal.newer': { means: 'A newer drover wrote the journal.', todo: 'Use that version.' },
  'limit.reached': {
    means: 'A limit of steps, length, money or time ended the work.',
    todo: 'Resume with a larger `--budget`; raise `--steps` or `--timeout` for the next run.',
  },
  'base.failed': {
    means: 'A gate fails on the base commit, so no worker was started.',
    todo: 'Fix the base, choose `--setup` if dependencies are missing, or use `--allow-red-base`.',
  },
  'call.repeated': {
    means: 'The agent made the same call again and again, with the same result.',
    todo: 'Say more in the prompt, or try another model.',
  },
  'dependencies.changed': {
    means: 'A worker changed dependencies that all workspaces share, so nothing was delivered.',
    todo: 'Check the named files, then `drover resume`.',
  },
  'gate.failed': {
    means: 'A gate fails on the work.',
    todo: 'Read its output with `drover show <id> <task>`.',
  },
  'sandbox.failed': { means: 'The sandbox did not start, so the command did not run.', todo: '`drover doctor`' },
  'setup.failed': {
    means: 'A setup command failed, so the task did not start.',
    todo: 'Read its output; `--net` allows the hosts that it downloads from.',
  },
  'permission.denied': {
    means: 'The agent stopped because calls that it needed were denied.',
    todo: 'The report names the narrowest rule that allows them.',
  },
  'hook.blocked': {
    means: 'A hook of yours, or of a trusted project, blocked a task, the run or the delivery.',
    todo: 'The message has the words of the hook. Change what it objects to, then `drover retry`.',
  },
  'plan.declined': { means: 'You did not approve the plan.', todo: '`drover resume` shows it again.' },
  'worker.lost': {
    means: 'A worker thread crashed, ran out of memory or stopped responding.',
    todo: '`drover resume`',
  },
  'git.failed': { means: 'A git command failed.', todo: 'The message has what git said. Then resume.' },
  'workspace.failed': {
    means: 'A workspace cannot be created, cleaned or read.',
    todo: 'Check disk space and rights of the state folder, then resume.',
  },
  'store.failed': {
    means: 'The object store of the run cannot be written, or another process changed it.',
    todo: 'Check disk space and rights of the state folder, then resume.',
  },
  'checkout.changed': {
    means: 'Your checkout changed while the run worked, so nothing was delivered.',
    todo: '`drover resume` delivers the work.',
  },
};

export function failuresPage(): string {
  const kinds = Object.keys(FAILURES).toSorted() as FailureKind[];
  const rows = kinds.map((kind) => {
    const { retry, reattempt, resume, exit } = FAILURES[kind];
    const { means, todo } = HELP[kind];
    const reaction = [
      ...(retry === 'never' ? [] : ['retries the request']),
      ...(reattempt ? ['tries the task again'] : []),
      ...(resume ? ['resume tries again'] : []),
    ];
    return [code(kind), means, reaction.join(', ') || 'ends the task', String(EXIT_CODES[exit]), todo];
  });
  const codes = exitCodeWords.map(([number, meaning]) => [String(number), meaning]);
  return page('Failures and exit codes', '`packages/protocol/src/failures.ts` and `bin/start/exit-code.ts`', [
    '## Exit codes',
    table(['code', 'meaning'], codes),
    '`--allow-partial` turns 3 into 0. A reached limit of money exits with 6, and one of time with 7.',
    '## Failures',
    INTRO,
    table(['kind', 'meaning', 'drover', 'exit code', 'what you can do'], rows),
  ]);
}
