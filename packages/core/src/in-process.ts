// An agent inside your own program: create a session, execute, read its events, await the result.
//
//   const session = createSession('session-123', { tools: [search, openEditor] }, { model, env: process.env });
//   const stream = execute(session, { role: 'user', content: 'Hello' });
//   for await (const event of stream) show(event);
//   const { status, pendingToolCalls } = await stream.result();
//
// Guarantees
//   1. result() settles even if the caller reads no events or stops reading. Only the signal stops the work.
//   2. Input that does not fit the state of the session (running, or awaiting results) is rejected by result() and
//      by the iteration. It changes nothing.
//   3. With `home` the session is durable. A session with the same id resumes it, in this or another process.
//   4. Your program runs the tools declared with remoteTool(): the execution ends with `awaiting_tool_execution`,
//      and the next one starts with some or all of the results.

import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Question } from './agent/calls/calls.ts';
import { STEPS_MAX_DEFAULT, TEXT_CALL_RETRIES_DEFAULT } from './agent/limits.ts';
import type { Limits, Cap } from '@drover/protocol/limits';
import { checkAgentTools, type RemoteResult } from './agent/calls/remote-calls.ts';
import { Session } from './session/session.ts';
import type { Execution, ExecutionResult, Input, SessionStatus } from './session/execution.ts';
import type { SessionOptions } from './session/session-options.ts';
import type { Shown, Store } from './bus.ts';
import type { PendingCall } from '@drover/protocol/events';
import { UsageError } from './errors.ts';
import type { Failure } from '@drover/protocol/failures';
import { newId } from './ids.ts';
import type { Past } from './journal/history.ts';
import { openSessionJournal, sessionFolder } from './journal/session-journal.ts';
import {
  defaultTimeouts,
  modelFactsOf,
  knownProviders,
  parseModelLabel,
  wireApis,
  type Api,
  type ModelFacts,
} from './model/catalog.ts';
import type { ImagePart, Message, TextPart, Usage } from '@drover/protocol/messages';
import type { Provider } from './model/provider.ts';
import { defaultRetry } from './model/retry.ts';
import { spentIn } from './model/spending/spent.ts';
import type { TurnOutcome } from '@drover/protocol/outcomes';
import { pathsDeniedIn } from './permission/denied-paths.ts';
import { judgeCall, type Policy } from './permission/policy.ts';
import { Questions, type UserAnswer } from './permission/questions.ts';
import type { Rule } from './permission/rules.ts';
import { EventRedaction } from './redaction/event-redaction.ts';
import { Redactor } from './redaction/redactor.ts';
import { requestWithoutSecrets } from './redaction/request-redaction.ts';
import { secretValues } from './redaction/secret-values.ts';
import { childProcessEnvironment } from './tools/process/environment.ts';
import type { Tool } from './tools/tool.ts';
import { bestEffort, handled } from './promises.ts';

/** A session id, which is also the name of a folder. */
const ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

export type AgentContext = {
  readonly tools: readonly Tool[];
  /** Messages before the session began. Pass the same ones when you resume a session from `home`. */
  readonly messages?: readonly Message[];
  /** Working folder of the tools (default: the current folder). */
  readonly cwd?: string;
  /** System prompt (default: drover's own). */
  readonly system?: string;
};

export type AgentOptions = {
  readonly model: string; // provider/name
  /** Usually process.env. Supplies the provider's key and base URL; commands of tools get its harmless variables. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly apiKey?: string;
  readonly baseUrl?: string;
  /** API format of your own server; its provider may then have any name. */
  readonly api?: Api;
  /** Facts about the model; they override the catalog. */
  readonly facts?: Partial<ModelFacts>;
  /** Budget of the whole session, earlier processes included. */
  readonly budget?: Cap;
  readonly limits?: Partial<Limits>;
  /** Permission rules: which calls run unasked, are asked about, or are refused. */
  readonly rules?: readonly Rule[];
  /** Decides about calls that no rule allows, one question at a time. If omitted, such calls are refused. */
  readonly ask?: (question: Question, signal: AbortSignal) => Promise<UserAnswer>;
  /** Timeout of remote calls whose tool has none (default: ten minutes). */
  readonly remoteTimeoutMs?: number;
  /** Folder that stores sessions. If omitted, the session ends with the process. */
  readonly home?: string;
  /** Called when that folder can't be written, and when it can be written again. */
  readonly onTrouble?: (message: string) => void;
};

/** A message, results of pending calls, or a request to resume an interrupted turn. */
export type ExecuteInput =
  | {
      readonly role: 'user';
      readonly content: string | readonly (TextPart | ImagePart)[];
      /** Gives up pending remote calls. Without it, a message is refused while calls are pending. */
      readonly cancelPending?: boolean;
    }
  | readonly RemoteResult[]
  | { readonly resume: true };

export type ExecuteResult = Ending & {
  readonly messages: readonly Message[]; // the new ones
  readonly usage: Usage; // of this execution
  readonly cost?: number; // of this execution, in US dollars; absent if the price is unknown
};

type Ending =
  | { readonly status: 'completed' | 'cancelled'; readonly pendingToolCalls?: never; readonly failure?: never }
  | {
      readonly status: 'awaiting_tool_execution';
      readonly pendingToolCalls: readonly PendingCall[];
      readonly failure?: never;
    }
  | { readonly status: 'incomplete' | 'error'; readonly failure: Failure; readonly pendingToolCalls?: never };

export type ExecuteStream = AsyncIterable<Shown> & { readonly result: () => Promise<ExecuteResult> };

/** Creates a session. Throws on invalid arguments; opens no file and no connection yet. */
export function createSession(id: string, context: AgentContext, options: AgentOptions): AgentSession {
  return new AgentSession(id, context, options);
}

export function execute(
  session: AgentSession,
  input: ExecuteInput,
  signal: AbortSignal = new AbortController().signal,
): ExecuteStream {
  const execution = session.open().then((opened) => opened.execute(inProcessInput(input), signal));
  const result = execution.then(async (begun) => inProcessResult(await begun.result()));
  // Iteration and result() report a failure. A caller that uses neither must not crash on an unhandled rejection.
  handled(result);
  return { [Symbol.asyncIterator]: () => inProcessEvents(execution), result: () => result };
}

async function* inProcessEvents(execution: Promise<Execution>): AsyncGenerator<Shown> {
  yield* await execution;
}

export class AgentSession {
  readonly id: string;
  readonly #context: AgentContext;
  readonly #options: AgentOptions;
  readonly #connect: () => Promise<Provider>;
  #opening: Promise<Session> | undefined;
  #session: Session | undefined;
  #close: () => Promise<void> = async () => undefined;

  constructor(id: string, context: AgentContext, options: AgentOptions) {
    if (!ID.test(id))
      throw new UsageError(
        `${JSON.stringify(id)} is no id for a session: it has up to 128 letters, digits, _ . and -, and begins with a letter or a digit`,
      );
    checkAgentTools(context.tools, options.remoteTimeoutMs);
    this.id = id;
    this.#context = context;
    this.#options = options;
    this.#connect = inProcessConnection(options);
  }

  get status(): SessionStatus {
    return this.#session?.status ?? 'idle';
  }

  /** How the last execution ended; undefined while one runs or waits, and before the first one. */
  get ending(): Session['ending'] {
    return this.#session?.ending;
  }

  /** The model as provider/name. */
  get model(): string {
    return this.#options.model;
  }

  /** Cost of all executions in US dollars, earlier processes included; undefined if unknown, 0 until opened. */
  get totalCost(): number | undefined {
    return this.#session === undefined ? 0 : this.#session.totalCost;
  }

  /** The whole conversation. Until the session is opened, only the messages of its context. */
  get messages(): readonly Message[] {
    return this.#session?.conversation.messages ?? this.#context.messages ?? [];
  }

  get pendingToolCalls(): readonly PendingCall[] {
    return this.#session?.pending ?? [];
  }

  /** Returns the underlying session, for its other methods. `execute` opens it automatically. */
  open(): Promise<Session> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      // Allow a retry: another process may hold the session only for a moment.
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** Waits for work in progress and closes the journal, so that another process can resume the session. */
  async close(): Promise<void> {
    const opened = this.#opening && (await bestEffort(this.#opening));
    await opened?.idle;
    if (this.#options.home === undefined) return;
    this.#opening = undefined;
    const close = this.#close;
    this.#close = async () => undefined;
    await close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #open(): Promise<Session> {
    const { home, onTrouble = () => undefined } = this.#options;
    const provider = requestWithoutSecrets(await this.#connect(), inProcessKeys(this.#options));
    if (home === undefined) return this.#make(provider, join(tmpdir(), newId('ses')), undefined);
    const hooks = {
      onTrouble,
      onRecovery: () => onTrouble(`${home} can be written again`),
      diagnose: () => undefined,
    };
    const kept = await openSessionJournal(home, this.id, { ...hooks, before: this.#context.messages ?? [] });
    this.#close = kept.close;
    return this.#make(provider, join(sessionFolder(home, this.id), 'outputs'), kept);
  }

  #make(provider: Provider, outputFolder: string, kept: Kept | undefined): Session {
    const { tools, messages = [], system } = this.#context;
    const { env = {}, budget, limits, remoteTimeoutMs } = this.#options;
    const cwd = resolve(this.#context.cwd ?? '.');
    const { name: model } = parseModelLabel(this.#options.model);
    const { contextTokens, outputTokensMax, price } = { ...modelFactsOf(model), ...this.#options.facts };
    const redaction = new EventRedaction(new Redactor([...inProcessKeys(this.#options), ...secretValues(env)]));
    this.#session = new Session({
      id: this.id,
      worker: 0,
      provider,
      model,
      contextTokens,
      outputTokensMax,
      ...(price && { price }),
      ...(budget && { cap: budget }),
      tools,
      ...(remoteTimeoutMs !== undefined && { remoteTimeoutMs }),
      context: {
        cwd,
        env: childProcessEnvironment(env),
        outputFolder,
        ...pathsDeniedIn(this.#options.rules ?? [], cwd),
      },
      ...(system !== undefined && { system }),
      seed: messages,
      limits: { stepsMax: STEPS_MAX_DEFAULT, textCallRetriesMax: TEXT_CALL_RETRIES_DEFAULT, ...limits },
      retry: defaultRetry,
      ...inProcessPermissions(cwd, this.#options),
      pass: (event, place) => redaction.pass(event, place),
      ...(kept && { store: kept.store }),
      ...(kept?.past && { past: kept.past, spentBefore: spentIn(kept.past) }),
    });
    return this.#session;
  }
}

/** Returns all provider keys given to this program. They are removed from every request. */
function inProcessKeys({ env = {}, apiKey }: AgentOptions): readonly string[] {
  const known = knownProviders.flatMap(({ keyEnv }) => env[keyEnv]?.trim() ?? []);
  return apiKey === undefined ? known : [apiKey, ...known];
}

type Kept = { readonly store: Store; readonly past: Past | undefined };

function inProcessInput(input: ExecuteInput): Input {
  if ('resume' in input) return input;
  if (!('role' in input)) return { results: input };
  const { content, cancelPending = false } = input;
  return { content, cancelPending };
}

function inProcessResult({ outcome, messages, pending, usage, cost }: ExecutionResult): ExecuteResult {
  return { ...inProcessEnding(outcome, pending), messages, usage, ...(cost !== undefined && { cost }) };
}

function inProcessEnding(outcome: TurnOutcome, pending: readonly PendingCall[]): Ending {
  switch (outcome.status) {
    case 'done':
      return { status: 'completed' };
    case 'suspended':
      return { status: 'awaiting_tool_execution', pendingToolCalls: pending };
    case 'cancelled':
      return { status: 'cancelled' };
    case 'incomplete':
    case 'error':
      return { status: outcome.status, failure: outcome.failure };
  }
}

/** Checks the provider options at once; the returned function connects. */
function inProcessConnection(options: AgentOptions): () => Promise<Provider> {
  const { env = {} } = options;
  const { provider: id } = parseModelLabel(options.model);
  const known = knownProviders.find((each) => each.id === id);
  const api = options.api ?? known?.api;
  if (api === undefined) {
    const names = knownProviders.map((each) => each.id).join(', ');
    throw new UsageError(`there is no provider '${id}'; known are ${names}; for another one, say which api it speaks`);
  }
  const named = (name: string | undefined) => (name === undefined ? undefined : env[name]?.trim() || undefined);
  const baseUrl = options.baseUrl ?? named(known?.baseUrlEnv);
  // The user's own server often needs no key.
  const apiKey = options.apiKey ?? named(known?.keyEnv) ?? (baseUrl === undefined ? undefined : 'none');
  if (apiKey === undefined) {
    const source = known === undefined ? '' : `, or env with ${known.keyEnv} in it`;
    throw new UsageError(`${id} needs a key: pass apiKey${source}`);
  }
  const opened = { id, apiKey, timeouts: defaultTimeouts, ...(baseUrl !== undefined && { baseUrl }) };
  return () => wireApis[api](opened);
}

type Asking = { readonly signal: AbortSignal; readonly fail: (error: unknown) => void };

function inProcessPermissions(
  root: string,
  { rules = [], ask }: AgentOptions,
): Pick<SessionOptions, 'judge' | 'question'> {
  const asking = new Map<string, Asking>(); // by requestId
  const put = async (question: Question): Promise<void> => {
    const { signal, fail } = asking.get(question.requestId) ?? {};
    if (ask === undefined || signal === undefined) return;
    try {
      questions.answer(question.requestId, await ask(question, signal));
    } catch (error) {
      // A cancelled question may fail. Any other error is a bug in the caller's `ask`.
      if (!signal.aborted) fail?.(error);
    }
  };
  const questions = new Questions((question) => void put(question));
  const policy: Policy = {
    root,
    rules,
    yes: false,
    contained: false,
    workspace: true,
    isOwnFolder: true,
    remembered: questions.remembered,
  };
  return {
    judge: (tool, input) => judgeCall(policy, tool, input),
    question: async (question, signal) => {
      if (ask === undefined)
        return { allowed: false, by: 'nobody', always: false, reason: `${question.why}, and nobody is there to ask` };
      const failed = Promise.withResolvers<never>();
      asking.set(question.requestId, { signal, fail: failed.reject });
      return Promise.race([questions.ask(question, signal), failed.promise]).finally(() =>
        asking.delete(question.requestId),
      );
    },
  };
}
