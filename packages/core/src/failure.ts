// Why something went wrong, as a value.
//
// A failure crosses threads, is written to the journal and is shown by several views, so it is JSON
// and not a class: a thrown subclass reaches the other side of a worker thread as a bare Error with
// neither its name nor its fields. DroverError carries a Failure while it is being thrown.
//
// Three things may be thrown, and no fourth: DroverError (the turn or run must hear of it), ToolError
// (text for the model) and UsageError (text for the person at the prompt). Anything else is a bug.

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

export class DroverError extends Error {
  override readonly name = 'DroverError';
  readonly failure: Failure;

  constructor(failure: Failure, options?: ErrorOptions) {
    super(describe(failure), options);
    this.failure = failure;
  }
}

/** Text for the model: the call it made did not work. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

/** Text for the person at the prompt: what is wrong with what they typed or configured, and the fix. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** One sentence for a person. */
export function describe(failure: Failure): string {
  switch (failure.kind) {
    case 'aborted':
      return ABORT_WORDS[failure.by];
    case 'provider.unavailable':
      return `the provider is unavailable: ${failure.message}`;
    case 'provider.throttled':
      return failure.retryAfterMs === undefined
        ? `the provider asks to slow down: ${failure.message}`
        : `the provider asks to wait ${seconds(failure.retryAfterMs)}: ${failure.message}`;
    case 'provider.rejected':
      return `the provider refuses (${failure.status}): ${failure.message}${failure.fix === undefined ? '' : ` — ${failure.fix}`}`;
    case 'request.unmade':
      return `the request could not be made: ${failure.message} — ${failure.fix}`;
    case 'provider.garbled':
      return `the answer arrived broken: ${failure.message}`;
    case 'provider.stalled':
      return `the provider went quiet: ${TIMER_WORDS[failure.timer]} for ${seconds(failure.afterMs)}`;
    case 'context.overflow':
      return `the conversation is too long for the model: ${failure.message}`;
    case 'answer.empty':
      return 'the model answered nothing, twice';
    case 'answer.refused':
      return `the model declined: ${failure.message}`;
    case 'answer.paused':
      return `the model paused ${failure.limit} times without finishing`;
    case 'tool.unknown':
      return `the model asked for unknown tools ${failure.limit} times in a row`;
    case 'answer.text_call':
      return `the model wrote its call of ${failure.tool} as text ${failure.limit + 1} times instead of making it`;
    case 'internal':
      return `an error in drover itself: ${failure.message}`;
    case 'journal.busy':
      return `process ${failure.owner} is writing ${failure.path}: wait for it, or stop it`;
    case 'journal.damaged':
      return `${failure.path}:${failure.line} is damaged: ${failure.what}`;
    case 'journal.newer':
      return `${failure.path} was written by a newer drover (format ${failure.version}); use that one`;
    case 'compaction.failed':
      return `the conversation could not be shortened: ${failure.message}`;
    case 'limit.reached':
      return failure.message;
    case 'gate.failed':
      return failure.unchanged === true
        ? `it changed nothing, and the gate '${failure.command}' fails on its base:\n${failure.output}`
        : `the gate '${failure.command}' fails:\n${failure.output}`;
    case 'setup.failed':
      return `the workspace could not be prepared by '${failure.command}':\n${failure.output}`;
    case 'sandbox.failed':
      return `the sandbox did not start, so nothing was run in it: ${failure.message} — drover doctor shows what is missing`;
    case 'permission.denied':
      return `not allowed: ${failure.calls.join('; ')}`;
    case 'plan.declined':
      return 'the plan was not approved, so it was not carried out';
    case 'worker.lost':
      return `the worker was lost: ${failure.message}`;
    case 'git.failed':
      return `git ${failure.args.join(' ')} failed: ${failure.message}`;
    case 'workspace.failed':
      return `the workspace cannot be used: ${failure.message}`;
    case 'store.failed':
      return `the store of the run cannot be used: ${failure.message}`;
    case 'checkout.changed':
      return `your checkout was changed during the run, so nothing was delivered; the work is kept. Changed: ${failure.paths.join(', ')}`;
  }
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
