// Failures: why something went wrong, as data, and how drover reacts to each kind.
//
// A failure crosses threads, is written to the journal and is shown by several views. It is JSON because a thrown
// subclass loses its name and fields when it crosses a thread. `errors.ts` of core wraps a failure to throw it.

import type { ExitName } from './outcomes.ts';

export type StreamTimer = 'headers' | 'first-byte' | 'silence' | 'progress';
type LimitName = 'steps' | 'output-tokens' | 'budget' | 'time' | 'idle' | 'failures';

export type Failure =
  | { readonly kind: 'aborted'; readonly by: 'user' | 'shutdown' | 'crash' }
  /** The user cancelled this one task of a run. */
  | { readonly kind: 'task.cancelled' }
  /** Temporary: overloaded, unreachable or reset. `shouldRetry`: the server itself asked for a retry. */
  | {
      readonly kind: 'provider.unavailable';
      readonly message: string;
      readonly status?: number;
      readonly retryAfterMs?: number;
      readonly shouldRetry?: true;
    }
  /** Too many requests. `retryAfterMs` is absent if the server named no delay. */
  | {
      readonly kind: 'provider.throttled';
      readonly message: string;
      readonly status: number;
      readonly retryAfterMs?: number;
    }
  /** Permanent: bad key, no quota, unknown model or invalid request. `fix` says what the user can do. */
  | { readonly kind: 'provider.rejected'; readonly status: number; readonly message: string; readonly fix?: string }
  /** The request could not be built: the key or the address contains invalid characters. Nothing was sent. */
  | { readonly kind: 'request.unmade'; readonly message: string; readonly fix: string }
  /** The response is not a complete answer: truncated, too large, or without its terminal event. */
  | { readonly kind: 'provider.garbled'; readonly message: string }
  | { readonly kind: 'provider.stalled'; readonly timer: StreamTimer; readonly afterMs: number }
  | { readonly kind: 'context.overflow'; readonly message: string }
  | { readonly kind: 'answer.empty' }
  | { readonly kind: 'answer.refused'; readonly message: string }
  | { readonly kind: 'answer.paused'; readonly limit: number }
  | { readonly kind: 'tool.unknown'; readonly limit: number }
  | { readonly kind: 'answer.text_call'; readonly tool: string; readonly limit: number }
  /** The agent repeated a call that kept giving the same result. `call` summarizes it. */
  | { readonly kind: 'call.repeated'; readonly call: string; readonly times: number }
  | { readonly kind: 'compaction.failed'; readonly message: string }
  /** A bug in drover. The error itself is thrown; this failure describes it in the turn's outcome. */
  | { readonly kind: 'internal'; readonly message: string }
  | { readonly kind: 'journal.busy'; readonly path: string; readonly owner: string }
  | { readonly kind: 'journal.damaged'; readonly path: string; readonly line: number; readonly what: string }
  | { readonly kind: 'journal.newer'; readonly path: string; readonly version: number }
  | { readonly kind: 'limit.reached'; readonly limit: LimitName; readonly message: string }
  /** A gate failed after the worker reported success. `unchanged`: the worker changed nothing, so the base fails. */
  | { readonly kind: 'gate.failed'; readonly command: string; readonly output: string; readonly unchanged?: true }
  /** A gate fails on the base commit, so no worker was started. `cause`: what the output suggests. */
  | { readonly kind: 'base.failed'; readonly command: string; readonly output: string; readonly cause?: string }
  /** The sandbox did not start, so its command never ran. */
  | { readonly kind: 'sandbox.failed'; readonly message: string }
  /** A setup command of the workspace failed, so the task did not start. */
  | { readonly kind: 'setup.failed'; readonly command: string; readonly output: string }
  /** An agent stopped because calls that it needed were denied. */
  | { readonly kind: 'permission.denied'; readonly calls: readonly string[] }
  /** A hook of the user, or of a trusted project, blocked what it belongs to. */
  | { readonly kind: 'hook.blocked'; readonly message: string }
  /** The user did not approve the plan of a run. */
  | { readonly kind: 'plan.declined' }
  /** The thread of a task is gone: it crashed, ran out of memory or stopped responding. */
  | { readonly kind: 'worker.lost'; readonly message: string }
  /** A git command failed, or could not be started. */
  | { readonly kind: 'git.failed'; readonly args: readonly string[]; readonly message: string }
  /** A task's checkout cannot be created, cleaned or read. */
  | { readonly kind: 'workspace.failed'; readonly message: string }
  /** The run's objects and branches cannot be written, or another process changed them. */
  | { readonly kind: 'store.failed'; readonly message: string }
  /** A worker changed dependencies that all workspaces share, so gates may have tested with other ones. */
  | { readonly kind: 'dependencies.changed'; readonly paths: readonly string[] }
  /** The user's checkout changed during the run. */
  | { readonly kind: 'checkout.changed'; readonly paths: readonly string[] };

export type FailureKind = Failure['kind'];

type FailureOf<Kind extends FailureKind> = Extract<Failure, { readonly kind: Kind }>;

export type FailureTraits<Kind extends FailureKind> = {
  /** Whether the same request is retried, and after which delay. */
  readonly retry: 'never' | 'backoff' | 'as-asked';
  /** Whether the task gets another attempt in the same run. */
  readonly reattempt: boolean;
  /** Whether `drover resume` retries the task: the cause is outside the task and may be gone. */
  readonly resume: boolean;
  /** Whether the workspace must be kept, because the attempt's work may exist nowhere else. */
  readonly keepsWorkspace: boolean;
  readonly exit: ExitName;
  /** One sentence for the user. */
  readonly sentence: (failure: FailureOf<Kind>) => string;
};

const FOR_GOOD = {
  retry: 'never',
  reattempt: false,
  resume: false,
  keepsWorkspace: false,
  exit: 'incomplete',
} as const;
const PASSING = { ...FOR_GOOD, resume: true } as const;
const MACHINE = { ...PASSING, reattempt: true } as const;
const PROVIDER = { ...MACHINE, exit: 'provider' } as const;

const JOURNAL = { ...PASSING, exit: 'usage' } as const;

export const FAILURES: { readonly [Kind in FailureKind]: FailureTraits<Kind> } = {
  aborted: { ...PASSING, exit: 'interrupted', sentence: ({ by }) => ABORT_WORDS[by] },
  'task.cancelled': { ...FOR_GOOD, keepsWorkspace: true, sentence: () => 'the user cancelled it' },
  'provider.unavailable': {
    ...PROVIDER,
    retry: 'as-asked',
    sentence: ({ message }) => `the provider is unavailable: ${message}`,
  },
  'provider.throttled': {
    ...PROVIDER,
    retry: 'as-asked',
    reattempt: false,
    sentence: ({ retryAfterMs, message }) =>
      `the provider asks to ${retryAfterMs === undefined ? 'slow down' : `wait ${failureSeconds(retryAfterMs)}`}: ${message}`,
  },
  'provider.rejected': {
    ...PROVIDER,
    reattempt: false,
    sentence: ({ status, message, fix }) =>
      `the provider refuses (${status}): ${message}${fix === undefined ? '' : ` — ${fix}`}`,
  },
  'provider.garbled': {
    ...PROVIDER,
    retry: 'backoff',
    sentence: ({ message }) => `the answer arrived broken: ${message}`,
  },
  'provider.stalled': {
    ...PROVIDER,
    retry: 'backoff',
    sentence: ({ timer, afterMs }) => `the provider went quiet: ${TIMER_WORDS[timer]} for ${failureSeconds(afterMs)}`,
  },
  'request.unmade': {
    ...PASSING,
    exit: 'usage',
    sentence: ({ message, fix }) => `the request could not be made: ${message} — ${fix}`,
  },
  'context.overflow': {
    ...FOR_GOOD,
    sentence: ({ message }) => `the conversation is too long for the model: ${message}`,
  },
  'answer.empty': { ...FOR_GOOD, reattempt: true, sentence: () => 'the model answered nothing, twice' },
  'answer.refused': { ...FOR_GOOD, exit: 'provider', sentence: ({ message }) => `the model declined: ${message}` },
  'answer.paused': { ...FOR_GOOD, sentence: ({ limit }) => `the model paused ${limit} times without finishing` },
  'answer.text_call': {
    ...FOR_GOOD,
    sentence: ({ tool, limit }) =>
      `the model wrote its call of ${tool} as text ${limit + 1} times instead of making it`,
  },
  'tool.unknown': {
    ...FOR_GOOD,
    sentence: ({ limit }) => `the model asked for unknown tools ${limit} times in a row`,
  },
  'call.repeated': {
    ...FOR_GOOD,
    reattempt: true,
    sentence: ({ call, times }) => `the agent made the same call ${times} times with the same result: ${call}`,
  },
  'compaction.failed': {
    ...FOR_GOOD,
    sentence: ({ message }) => `the conversation could not be shortened: ${message}`,
  },
  internal: { ...PASSING, exit: 'internal', sentence: ({ message }) => `an error in drover itself: ${message}` },
  'journal.busy': {
    ...JOURNAL,
    sentence: ({ owner, path }) => `process ${owner} is writing ${path}: wait for it, or stop it`,
  },
  'journal.damaged': { ...JOURNAL, sentence: ({ path, line, what }) => `${path}:${line} is damaged: ${what}` },
  'journal.newer': {
    ...JOURNAL,
    sentence: ({ path, version }) => `${path} was written by a newer drover (format ${version}); use that one`,
  },
  'limit.reached': { ...FOR_GOOD, sentence: ({ message }) => message }, // `LIMITS` overrides resume and exit
  'gate.failed': {
    ...FOR_GOOD,
    sentence: ({ unchanged, command, output }) =>
      unchanged === true
        ? `it changed nothing, and the gate '${command}' fails on its base:\n${output}`
        : `the gate '${command}' fails:\n${output}`,
  },
  'base.failed': {
    ...PASSING,
    exit: 'gate',
    sentence: ({ command, output, cause }) =>
      [
        `the gate '${command}' fails on the base commit, so no worker was started:`,
        output,
        ...(cause === undefined ? [] : [`likely cause: ${cause}`]),
        'fix the base first, or pass --allow-red-base to land work that makes no gate worse',
      ].join('\n'),
  },
  'setup.failed': {
    ...PASSING,
    sentence: ({ command, output }) => `the workspace could not be prepared by '${command}':\n${output}`,
  },
  'sandbox.failed': {
    ...MACHINE,
    sentence: ({ message }) =>
      `the sandbox did not start, so nothing was run in it: ${message} — drover doctor shows what is missing`,
  },
  'permission.denied': { ...PASSING, exit: 'blocked', sentence: ({ calls }) => `not allowed: ${calls.join('; ')}` },
  'hook.blocked': { ...FOR_GOOD, exit: 'blocked', sentence: ({ message }) => message },
  'plan.declined': {
    ...PASSING,
    exit: 'blocked',
    sentence: () => 'the plan was not approved, so it was not carried out',
  },
  'worker.lost': { ...MACHINE, sentence: ({ message }) => `the worker was lost: ${message}` },
  'git.failed': {
    ...MACHINE,
    keepsWorkspace: true,
    sentence: ({ args, message }) => `git ${args.join(' ')} failed: ${message}`,
  },
  'workspace.failed': {
    ...MACHINE,
    keepsWorkspace: true,
    sentence: ({ message }) => `the workspace cannot be used: ${message}`,
  },
  'store.failed': {
    ...MACHINE,
    keepsWorkspace: true,
    sentence: ({ message }) => `the store of the run cannot be used: ${message}`,
  },
  'dependencies.changed': {
    ...PASSING,
    exit: 'blocked',
    sentence: ({ paths }) =>
      `a worker changed dependencies that all workspaces share, so nothing was delivered; the work is kept. Changed: ${paths.join(', ')}`,
  },
  'checkout.changed': {
    ...PASSING,
    exit: 'blocked',
    sentence: ({ paths }) =>
      `your checkout was changed during the run, so nothing was delivered; the work is kept. Changed: ${paths.join(', ')}`,
  },
};

/** The traits that each limit overrides. Only `budget` resumes: the user can raise it. */
const LIMITS: { readonly [Name in LimitName]: Pick<FailureTraits<'limit.reached'>, 'resume' | 'exit'> } = {
  steps: { resume: false, exit: 'incomplete' },
  'output-tokens': { resume: false, exit: 'incomplete' },
  budget: { resume: true, exit: 'budget' },
  time: { resume: false, exit: 'deadline' },
  idle: { resume: false, exit: 'deadline' },
  failures: { resume: false, exit: 'incomplete' },
};

/** The traits of a failure's kind, or of its limit. */
export function traitsOfFailure(failure: Failure): FailureTraits<FailureKind> {
  // The cast is sound: each row takes failures of its own kind, which the compiler cannot follow.
  const traits = FAILURES[failure.kind] as FailureTraits<FailureKind>;
  return failure.kind === 'limit.reached' ? { ...traits, ...LIMITS[failure.limit] } : traits;
}

/** Describes the failure in one sentence for the user. */
export function describe(failure: Failure): string {
  return traitsOfFailure(failure).sentence(failure);
}

const ABORT_WORDS = { user: 'interrupted', shutdown: 'shutting down', crash: 'drover was stopped in the middle of it' };

const TIMER_WORDS: Record<StreamTimer, string> = {
  headers: 'no response headers',
  'first-byte': 'headers but no first byte',
  silence: 'not a byte',
  progress: 'only keep-alives',
};

function failureSeconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}
