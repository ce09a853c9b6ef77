// Failures: why something went wrong, as a value, and what follows from each kind.
//
// A failure crosses threads, is written to the journal and is shown by several views. So it is JSON and not a class:
// a thrown subclass loses its name and its fields on its way out of a thread. `errors.ts` of core throws them.

import type { ExitName } from './outcomes.ts';

export type StreamTimer = 'headers' | 'first-byte' | 'silence' | 'progress';
export type LimitName = 'steps' | 'output-tokens' | 'budget' | 'time' | 'idle' | 'failures';

export type Failure =
  | { readonly kind: 'aborted'; readonly by: 'user' | 'shutdown' | 'crash' }
  /** Worth trying again: overloaded, unreachable, reset. `shouldRetry` is the server's own word. */
  | {
      readonly kind: 'provider.unavailable';
      readonly message: string;
      readonly status?: number;
      readonly retryAfterMs?: number;
      readonly shouldRetry?: true;
    }
  /** Too many requests. Without retryAfterMs the server did not say for how long. */
  | {
      readonly kind: 'provider.throttled';
      readonly message: string;
      readonly status: number;
      readonly retryAfterMs?: number;
    }
  /** Trying again cannot help: bad key, no quota, unknown model, invalid request. `fix` says what the user can do. */
  | { readonly kind: 'provider.rejected'; readonly status: number; readonly message: string; readonly fix?: string }
  /** Nothing was sent, because nothing could be: a key or an address with characters that don't belong there. */
  | { readonly kind: 'request.unmade'; readonly message: string; readonly fix: string }
  /** What arrived is not an answer: cut off, no terminal event, too large. */
  | { readonly kind: 'provider.garbled'; readonly message: string }
  | { readonly kind: 'provider.stalled'; readonly timer: StreamTimer; readonly afterMs: number }
  | { readonly kind: 'context.overflow'; readonly message: string }
  | { readonly kind: 'answer.empty' }
  | { readonly kind: 'answer.refused'; readonly message: string }
  | { readonly kind: 'answer.paused'; readonly limit: number }
  | { readonly kind: 'tool.unknown'; readonly limit: number }
  | { readonly kind: 'answer.text_call'; readonly tool: string; readonly limit: number }
  | { readonly kind: 'compaction.failed'; readonly message: string }
  /** A bug. It is thrown as it is; this is how the turn that it ended is told. */
  | { readonly kind: 'internal'; readonly message: string }
  | { readonly kind: 'journal.busy'; readonly path: string; readonly owner: string }
  | { readonly kind: 'journal.damaged'; readonly path: string; readonly line: number; readonly what: string }
  | { readonly kind: 'journal.newer'; readonly path: string; readonly version: number }
  | { readonly kind: 'limit.reached'; readonly limit: LimitName; readonly message: string }
  /** A worker says that it is done, and a gate of its task fails. `unchanged`: it fails on the base, which the worker left as it was. */
  | { readonly kind: 'gate.failed'; readonly command: string; readonly output: string; readonly unchanged?: true }
  /** The sandbox did not start, so the command in it was never run. */
  | { readonly kind: 'sandbox.failed'; readonly message: string }
  /** The commands that prepare a workspace failed, so no work began there. */
  | { readonly kind: 'setup.failed'; readonly command: string; readonly output: string }
  /** An agent stopped for want of calls that were not allowed. */
  | { readonly kind: 'permission.denied'; readonly calls: readonly string[] }
  /** The user did not approve the plan of a run. */
  | { readonly kind: 'plan.declined' }
  /** The thread that worked on a task is gone: crashed, out of memory, or deaf. */
  | { readonly kind: 'worker.lost'; readonly message: string }
  /** A git command ran, or was to be started, and failed. */
  | { readonly kind: 'git.failed'; readonly args: readonly string[]; readonly message: string }
  /** A task's checkout cannot be made, cleaned or read. */
  | { readonly kind: 'workspace.failed'; readonly message: string }
  /** The objects and branches that a run makes cannot be written, or another process changed them. */
  | { readonly kind: 'store.failed'; readonly message: string }
  /** Somebody changed the user's checkout while the run was at work. */
  | { readonly kind: 'checkout.changed'; readonly paths: readonly string[] };

export type FailureKind = Failure['kind'];

type FailureOf<Kind extends FailureKind> = Extract<Failure, { readonly kind: Kind }>;

export type FailureTraits<Kind extends FailureKind> = {
  /** Whether the same request is sent again, and after how long. */
  readonly retry: 'never' | 'backoff' | 'as-asked';
  /** Whether a task that failed with it gets another attempt in the same run. */
  readonly reattempt: boolean;
  /** Whether `drover resume` tries its task again: the cause lies outside the task and may be gone. */
  readonly resume: boolean;
  /** Whether the work of the attempt may exist only in its workspace. */
  readonly keepsWorkspace: boolean;
  readonly exit: ExitName;
  /** One sentence for a person. */
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
      `the provider asks to ${retryAfterMs === undefined ? 'slow down' : `wait ${seconds(retryAfterMs)}`}: ${message}`,
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
    sentence: ({ timer, afterMs }) => `the provider went quiet: ${TIMER_WORDS[timer]} for ${seconds(afterMs)}`,
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
  'limit.reached': { ...FOR_GOOD, sentence: ({ message }) => message }, // `LIMITS` says the rest
  'gate.failed': {
    ...FOR_GOOD,
    sentence: ({ unchanged, command, output }) =>
      unchanged === true
        ? `it changed nothing, and the gate '${command}' fails on its base:\n${output}`
        : `the gate '${command}' fails:\n${output}`,
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
  'checkout.changed': {
    ...PASSING,
    exit: 'blocked',
    sentence: ({ paths }) =>
      `your checkout was changed during the run, so nothing was delivered; the work is kept. Changed: ${paths.join(', ')}`,
  },
};

/** A limit that the user can raise may let a task go on; the others are its own. */
export const LIMITS: { readonly [Name in LimitName]: Pick<FailureTraits<'limit.reached'>, 'resume' | 'exit'> } = {
  steps: { resume: false, exit: 'incomplete' },
  'output-tokens': { resume: false, exit: 'incomplete' },
  budget: { resume: true, exit: 'budget' },
  time: { resume: false, exit: 'deadline' },
  idle: { resume: false, exit: 'deadline' },
  failures: { resume: false, exit: 'incomplete' },
};

/** The traits of a failure's kind, or of its limit. */
export function traitsOf(failure: Failure): FailureTraits<FailureKind> {
  // A record by kind: the traits of a failure's kind take that failure, which the compiler cannot follow.
  const traits = FAILURES[failure.kind] as FailureTraits<FailureKind>;
  return failure.kind === 'limit.reached' ? { ...traits, ...LIMITS[failure.limit] } : traits;
}

/** One sentence for a person. */
export function describe(failure: Failure): string {
  return traitsOf(failure).sentence(failure);
}

const ABORT_WORDS = { user: 'interrupted', shutdown: 'shutting down', crash: 'drover was stopped in the middle of it' };

const TIMER_WORDS: Record<StreamTimer, string> = {
  headers: 'no response headers',
  'first-byte': 'headers but no first byte',
  silence: 'not a byte',
  progress: 'only keep-alives',
};

function seconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}
