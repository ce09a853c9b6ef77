// An agent inside a program of your own: make a session, execute, read its events, take the result.
//
//   const session = createSession('session-123', { tools: [search, openEditor] }, { model, env: process.env });
//   const stream = execute(session, { role: 'user', content: 'Hello' });
//   for await (const event of stream) show(event);
//   const { status, pendingToolCalls } = await stream.result();
//
// WHAT HOLDS
//   result() settles, whether or not anybody iterates, and also where somebody stops half way: who leaves
//   the events does not stop the work; the signal does. What does not fit the state of the session (it is
//   at work, or waits for results) is refused by result() and by the iteration, and changes nothing.
//   With `home` the session is kept there, and a session of the same id goes on with it, in whatever process.
//
// What is declared with remoteTool() is for the program to run: the execution ends with
// `awaiting_tool_execution`, and the next one begins with the results, all of them or a few.

import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Question } from './agent/calls/calls.ts';
import { STEPS_MAX_DEFAULT, TEXT_CALL_RETRIES_DEFAULT } from './agent/limits.ts';
import type { Limits, Cap } from '@drover/protocol/limits';
import { checkTimeout, checkTools, type RemoteResult } from './agent/calls/remote-calls.ts';
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
  factsOf,
  knownProviders,
  parseModel,
  wireApis,
  type Api,
  type ModelFacts,
} from './model/catalog.ts';
import type { ImagePart, Message, TextPart, Usage } from '@drover/protocol/messages';
import type { Provider } from './model/provider.ts';
import { defaultRetry } from './model/retry.ts';
import { spentIn } from './model/spending/spent.ts';
import type { TurnOutcome } from '@drover/protocol/outcomes';
import { deniedIn } from './permission/denied-paths.ts';
import { judge, type Policy } from './permission/policy.ts';
import { Questions, type Answer } from './permission/questions.ts';
import type { Rule } from './permission/rules.ts';
import { EventRedaction } from './redaction/event-redaction.ts';
import { Redactor } from './redaction/redactor.ts';
import { withoutSecrets } from './redaction/request-redaction.ts';
import { secretValues } from './redaction/secret-values.ts';
import { childEnvironment } from './tools/process/environment.ts';
import type { Tool } from './tools/tool.ts';

/** It names a folder. */
const ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

export type AgentContext = {
  readonly tools: readonly Tool[];
  /** What was said before the session began. A kept session is given the same again. */
  readonly messages?: readonly Message[];
  /** The folder that tools work in; where the program runs unless told. */
  readonly cwd?: string;
  /** Instead of drover's own system prompt. */
  readonly system?: string;
};

export type AgentOptions = {
  readonly model: string; // provider/name
  /** Mostly process.env: the provider's key and address are looked up in it, and commands that tools run see what is harmless of it. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly apiKey?: string;
  readonly baseUrl?: string;
  /** The format a server of your own speaks; its provider may then have any name. */
  readonly api?: Api;
  /** What is known of the model, where the catalog doesn't know it, or better. */
  readonly facts?: Partial<ModelFacts>;
  /** Of the whole session, also of a kept one that is opened again. */
  readonly budget?: Cap;
  readonly limits?: Partial<Limits>;
  /** What may run by itself, is asked about, or is refused. */
  readonly rules?: readonly Rule[];
  /** Asked one question at a time about what no rule allows; without it, such calls are refused. */
  readonly ask?: (question: Question, signal: AbortSignal) => Promise<Answer>;
  /** How long a remote call may wait for its result, where its tool doesn't say it. Ten minutes unless told. */
  readonly remoteTimeoutMs?: number;
  /** The folder in which sessions are kept. Without it, this one is gone with the process. */
  readonly home?: string;
  /** Told when that folder can't be written, and that it can be again. */
  readonly onTrouble?: (message: string) => void;
};

/** A message, the results that are waited for, or the wish to go on with what was interrupted. */
export type ExecuteInput =
  | {
      readonly role: 'user';
      readonly content: string | readonly (TextPart | ImagePart)[];
      /** Remote calls that are waited for are given up; without it, a message meanwhile is refused. */
      readonly cancelPending?: boolean;
    }
  | readonly RemoteResult[]
  | { readonly resume: true };

export type ExecuteResult = Ending & {
  readonly messages: readonly Message[]; // the new ones
  readonly usage: Usage; // of this execution
  readonly cost?: number; // of this execution, in US dollars; absent where the price is unknown
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

/** Throws where what it is made of can't be used. Nothing is opened before it is needed. */
export function createSession(id: string, context: AgentContext, options: AgentOptions): AgentSession {
  return new AgentSession(id, context, options);
}

export function execute(
  session: AgentSession,
  input: ExecuteInput,
  signal: AbortSignal = new AbortController().signal,
): ExecuteStream {
  const execution = session.open().then((opened) => opened.execute(inputOf(input), signal));
  const result = execution.then(async (begun) => resultOf(await begun.result()));
  // Whoever iterates, or awaits it, hears of a failure; whoever does neither must not be crashed by it.
  result.catch(() => undefined);
  return { [Symbol.asyncIterator]: () => eventsOf(execution), result: () => result };
}

async function* eventsOf(execution: Promise<Execution>): AsyncGenerator<Shown> {
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
    checkTools(context.tools);
    checkTimeout(options.remoteTimeoutMs);
    this.id = id;
    this.#context = context;
    this.#options = options;
    this.#connect = connectionTo(options);
  }

  get status(): SessionStatus {
    return this.#session?.status ?? 'idle';
  }

  /** How the last execution ended; undefined while one runs or waits, and before the first one. */
  get ending(): Session['ending'] {
    return this.#session?.ending;
  }

  /** provider/name: the one that is asked. */
  get model(): string {
    return this.#options.model;
  }

  /** US dollars of all executions, also of other processes; undefined where the price is unknown. 0 until it is open. */
  get totalCost(): number | undefined {
    return this.#session === undefined ? 0 : this.#session.totalCost;
  }

  /** The whole conversation. Of a kept session only what was given, until it is open. */
  get messages(): readonly Message[] {
    return this.#session?.conversation.messages ?? this.#context.messages ?? [];
  }

  get pendingToolCalls(): readonly PendingCall[] {
    return this.#session?.pending ?? [];
  }

  /** The session itself, for what else it can do. Executing opens it anyway. */
  open(): Promise<Session> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      // Another process may have it now, and not in a minute.
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** Waits for what is under way, and lets go of what the session is kept in: another process may go on with it. */
  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined);
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
    const provider = withoutSecrets(await this.#connect(), keysIn(this.#options));
    if (home === undefined) return this.#make(provider, join(tmpdir(), newId('ses')), undefined);
    const hooks = {
      onTrouble,
      onRecovery: () => onTrouble(`${home} can be written again`),
      diagnose: () => undefined,
    };
    const kept = await openSessionJournal(home, this.id, hooks, this.#context.messages);
    this.#close = kept.close;
    return this.#make(provider, join(sessionFolder(home, this.id), 'outputs'), kept);
  }

  #make(provider: Provider, outputFolder: string, kept: Kept | undefined): Session {
    const { tools, messages = [], system } = this.#context;
    const { env = {}, budget, limits, remoteTimeoutMs } = this.#options;
    const cwd = resolve(this.#context.cwd ?? '.');
    const { name: model } = parseModel(this.#options.model);
    const { contextTokens, outputTokensMax, price } = { ...factsOf(model), ...this.#options.facts };
    const redaction = new EventRedaction(new Redactor([...keysIn(this.#options), ...secretValues(env)]));
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
      context: { cwd, env: childEnvironment(env), outputFolder, ...deniedIn(this.#options.rules ?? [], cwd) },
      ...(system !== undefined && { system }),
      seed: messages,
      limits: { stepsMax: STEPS_MAX_DEFAULT, textCallRetriesMax: TEXT_CALL_RETRIES_DEFAULT, ...limits },
      retry: defaultRetry,
      ...permissions(cwd, this.#options),
      pass: (event, place) => redaction.pass(event, place),
      ...(kept && { store: kept.store }),
      ...(kept?.past && { past: kept.past, spentBefore: spentIn(kept.past) }),
    });
    return this.#session;
  }
}

/** The keys of providers that this program was given: no request holds one of them. */
function keysIn({ env = {}, apiKey }: AgentOptions): readonly string[] {
  const known = knownProviders.flatMap(({ keyEnv }) => env[keyEnv]?.trim() ?? []);
  return apiKey === undefined ? known : [apiKey, ...known];
}

type Kept = { readonly store: Store; readonly past: Past | undefined };

function inputOf(input: ExecuteInput): Input {
  if ('resume' in input) return input;
  if (!('role' in input)) return { results: input };
  const { content, cancelPending = false } = input;
  return { content, cancelPending };
}

function resultOf({ outcome, messages, pending, usage, cost }: ExecutionResult): ExecuteResult {
  return { ...endingOf(outcome, pending), messages, usage, ...(cost !== undefined && { cost }) };
}

function endingOf(outcome: TurnOutcome, pending: readonly PendingCall[]): Ending {
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

/** What is wrong with the choice is told at once; the provider is opened later. */
function connectionTo(options: AgentOptions): () => Promise<Provider> {
  const { env = {} } = options;
  const { provider: id } = parseModel(options.model);
  const known = knownProviders.find((each) => each.id === id);
  const api = options.api ?? known?.api;
  if (api === undefined) {
    const names = knownProviders.map((each) => each.id).join(', ');
    throw new UsageError(`there is no provider '${id}'; known are ${names}; for another one, say which api it speaks`);
  }
  const named = (name: string | undefined) => (name === undefined ? undefined : env[name]?.trim() || undefined);
  const baseUrl = options.baseUrl ?? named(known?.baseUrlEnv);
  // A server of one's own often wants no key.
  const apiKey = options.apiKey ?? named(known?.keyEnv) ?? (baseUrl === undefined ? undefined : 'none');
  if (apiKey === undefined) {
    const source = known === undefined ? '' : `, or env with ${known.keyEnv} in it`;
    throw new UsageError(`${id} needs a key: pass apiKey${source}`);
  }
  const opened = { id, apiKey, timeouts: defaultTimeouts, ...(baseUrl !== undefined && { baseUrl }) };
  return () => wireApis[api](opened);
}

type Asking = { readonly signal: AbortSignal; readonly fail: (error: unknown) => void };

function permissions(root: string, { rules = [], ask }: AgentOptions): Pick<SessionOptions, 'judge' | 'question'> {
  const asking = new Map<string, Asking>(); // by requestId
  const put = async (question: Question): Promise<void> => {
    const { signal, fail } = asking.get(question.requestId) ?? {};
    if (ask === undefined || signal === undefined) return;
    try {
      questions.answer(question.requestId, await ask(question, signal));
    } catch (error) {
      // A question that was withdrawn may well fail; anything else is a bug of whoever is asked.
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
    judge: (tool, input) => judge(policy, tool, input),
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
