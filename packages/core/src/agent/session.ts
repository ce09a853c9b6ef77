// A session: one agent's conversation with an id. It runs one turn at a time, can wait for remote tools
// and go on later, and tells everything that happens as events.

import { Bus, type BusOptions, type Shown, type Store } from '../bus.ts';
import { CHARS_PER_TOKEN_DEFAULT, codePoints, Conversation } from '../conversation/conversation.ts';
import { Instructions } from '../conversation/instructions.ts';
import { systemPrompt } from '../conversation/prompt.ts';
import { utf8Bytes } from '../conversation/prompt-bound.ts';
import type { Decision, Event, PendingCall } from '../events.ts';
import { describe, DroverError, UsageError } from '../failure.ts';
import type { Past } from '../journal/history.ts';
import type { Json } from '../json.ts';
import { budgetOnly, type Admission } from '../model/admission.ts';
import { Budget, type Cap } from '../model/budget.ts';
import { costOf, type Price } from '../model/catalog.ts';
import type { ImagePart, Message, Provider, TextPart, Usage } from '../model/protocol.ts';
import type { RetryPolicy } from '../model/retry.ts';
import { NO_USAGE, sumUsage } from '../model/usage.ts';
import { failedTurn, type TurnOutcome } from '../outcome.ts';
import type { Tool, ToolContext } from '../tools/tool.ts';
import { abandonedCalls, toolNamed, type Denial, type Question, type Verdict } from './calls.ts';
import { failureOf, watch, type Limits } from './limits.ts';
import { runTurn } from './loop.ts';
import { addMessage, emit, Turn, type Agent } from './turn.ts';

export type SessionOptions = {
  readonly id: string;
  readonly worker: number; // 0 unless a coordinator made it
  readonly provider: Provider;
  readonly model: string;
  readonly contextTokens: number;
  readonly outputTokensMax: number;
  readonly price?: Price;
  readonly cap?: Cap;
  /** Leave for its requests, where it shares a provider with others; else its own cap decides. */
  readonly admission?: Admission;
  readonly charsPerToken?: number;
  readonly tools: readonly Tool[];
  readonly context: Omit<ToolContext, 'callId' | 'signal'>;
  /** A system prompt made elsewhere, to the byte. */
  readonly system?: string;
  /** What was said before it began, by others. */
  readonly seed?: readonly Message[];
  readonly cacheKey?: string;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly judge: (tool: Tool, input: Json) => Promise<Verdict>;
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision>;
  readonly pass: BusOptions['pass'];
  readonly store?: Store;
  /** Where events go instead of to a bus of its own. */
  readonly outlet?: Outlet;
  /** What a session of this id has been through before. */
  readonly past?: Past;
};

/** What an execution begins with: a message, the results a suspended session waits for, or the wish to go on. */
export type Input =
  | { readonly content: string | readonly (TextPart | ImagePart)[] }
  | { readonly results: readonly RemoteResult[] }
  | { readonly resume: true };

/** What a session needs of a bus. */
export type Outlet = Pick<Bus, 'emit' | 'settled'>;

export type RemoteResult = { readonly callId: string; readonly output: string; readonly isError?: boolean };

export type ExecutionResult = {
  readonly outcome: TurnOutcome;
  readonly messages: readonly Message[]; // the new ones
  readonly pending: readonly PendingCall[];
  readonly denials: readonly Denial[];
  readonly usage: Usage; // of this execution
  readonly cost?: number;
};

/** Iterate it, or await `result()`, or both. */
export type Execution = AsyncIterable<Shown> & { readonly result: () => Promise<ExecutionResult> };

const WAITING_TOLD_MS = 100; // to the idle clock

// Told while nothing comes of the work, so the idle clock runs on.
const WAITING: ReadonlySet<Event['type']> = new Set([
  'retry',
  'heartbeat',
  'warning',
  'usage',
  'permission_request',
  'attempt_discarded',
]);

export class Session {
  readonly id: string;
  readonly bus: Bus;
  readonly conversation: Conversation;
  readonly #options: SessionOptions;
  readonly #outlet: Outlet;
  readonly #agent: Agent;
  readonly #instructions: Instructions;
  #turn = new Turn(0);
  #spent: Usage = NO_USAGE; // in this execution
  #total: Usage = NO_USAGE;
  #isRunning = false;
  #isStarted = false;
  #isOpen = false; // a turn has begun and not ended
  #canResume = false;
  #progress: () => void = () => undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.id = options.id;
    const { past, pass, store } = options;
    this.bus = new Bus({ owner: { session: options.id }, lastSeq: past?.lastSeq ?? 0, pass, ...(store && { store }) });
    this.#outlet = options.outlet ?? this.bus;
    this.conversation = new Conversation(systemPrompt(undefined), options.charsPerToken ?? CHARS_PER_TOKEN_DEFAULT);
    this.#instructions = new Instructions(options.context.cwd);
    this.#agent = this.#makeAgent();
    this.conversation.replace(options.seed ?? []);
    if (past !== undefined) this.#restore(past);
  }

  /** The calls that wait for a remote tool. */
  get pending(): readonly PendingCall[] {
    return this.#turn.open?.pending ?? [];
  }

  /** Shows what happens while it happens. */
  execute(input: Input, signal: AbortSignal): Execution {
    this.#check(input);
    const reader = this.bus.reader();
    const result = this.run(input, signal).finally(() => reader.finish());
    // Whoever awaits result() hears of a failure; whoever doesn't must not be crashed by it.
    result.catch(() => undefined);
    return { [Symbol.asyncIterator]: () => reader[Symbol.asyncIterator](), result: () => result };
  }

  /** The same, for whoever sees the events where they go. */
  async run(input: Input, signal: AbortSignal): Promise<ExecutionResult> {
    this.#check(input);
    this.#isRunning = true;
    this.#spent = NO_USAGE;
    const watching = watch(this.#options.limits, signal);
    this.#progress = watching.progress;
    try {
      const outcome = await this.#takeTurn(input, watching.signal);
      const result = this.#tell(outcome);
      await this.#outlet.settled();
      return result;
    } catch (error) {
      if (!(error instanceof UsageError)) await this.#tellBug(error);
      throw error;
    } finally {
      watching.stop();
      this.#isRunning = false;
    }
  }

  #check(input: Input): void {
    if (this.#isRunning) throw new UsageError(`session ${this.id} is busy: wait for its turn to end, or cancel it`);
    if ('content' in input && this.pending.length > 0)
      throw new UsageError(`session ${this.id} waits for the results of ${this.pending.length} remote calls`);
    if ('results' in input && this.pending.length === 0)
      throw new UsageError(`session ${this.id} waits for no results`);
    if ('resume' in input && !this.#canResume)
      throw new UsageError(`session ${this.id} has nothing to resume: its last turn is done`);
  }

  async #takeTurn(input: Input, signal: AbortSignal): Promise<TurnOutcome> {
    if (!this.#isStarted) await this.#start();
    if ('content' in input) {
      this.#abandonTurn();
      this.#turn = new Turn(this.#turn.number + 1);
      const content =
        typeof input.content === 'string' ? [{ type: 'text' as const, text: input.content }] : input.content;
      addMessage(this.#agent, this.#turn, { role: 'user', content });
    }
    if ('results' in input) this.#deliver(input.results);
    if (this.pending.length > 0) return { status: 'suspended' };
    if ('resume' in input && this.#isAnswered) return { status: 'done' };
    this.#isOpen = true;
    return runTurn(this.#agent, this.#turn, signal);
  }

  async #start(): Promise<void> {
    this.#isStarted = true;
    const { provider, model, context, past } = this.#options;
    const label = `${provider.id}/${model}`;
    // Told again where another model goes on, so that the journal says who did what.
    if (past?.model !== label) this.#emit({ type: 'session_start', model: label, cwd: context.cwd });
    // Also where the prompt comes from elsewhere: what it holds is not to be told again.
    const instructions = await this.#instructions.forStart();
    this.conversation.system = this.#options.system ?? systemPrompt(instructions);
  }

  /** The model has said its last word, and only the ending is missing. */
  get #isAnswered(): boolean {
    const last = this.conversation.messages.at(-1);
    if (this.#turn.open !== undefined || this.#turn.answers === 0) return false;
    if (last?.role === 'assistant') return last.stop === 'stop';
    if (last?.role !== 'tool') return false;
    const isFinal = (name: string) => toolNamed(this.#options.tools, name)?.final === true;
    return last.results.some(({ name, isError }) => !isError && isFinal(name));
  }

  #restore({ messages, turn, steps, answers, ending, open, usage }: Past): void {
    this.conversation.replace(messages);
    this.#turn = new Turn(turn);
    this.#turn.steps = steps;
    this.#turn.answers = answers;
    this.#turn.open = open;
    this.#total = usage;
    this.#isOpen = turn > 0 && ending === undefined;
    this.#canResume = turn > 0 && ending !== 'done';
  }

  /** A new message ends what a crash left open: its calls get results that say so, and the turn its ending. */
  #abandonTurn(): void {
    if (!this.#isOpen) return;
    const { open } = this.#turn;
    this.#turn.open = undefined;
    if (open !== undefined) addMessage(this.#agent, this.#turn, { role: 'tool', results: abandonedCalls(open) });
    this.#turn.messages.length = 0;
    const ending = endingOf(failedTurn({ kind: 'aborted', by: 'crash' }, true), []);
    if (ending !== undefined) this.#emit(ending);
    this.#isOpen = false;
  }

  #deliver(delivered: readonly RemoteResult[]): void {
    const { open } = this.#turn;
    if (open === undefined) return;
    const calls = delivered.map(({ callId }) => open.pending.find((pending) => pending.callId === callId));
    delivered.forEach(({ callId }, at) => {
      if (calls[at] === undefined) throw new UsageError(`session ${this.id} waits for no call ${callId}`);
    });
    const results = [...open.results];
    delivered.forEach(({ output, isError = false }, at) => {
      const call = calls[at];
      if (call !== undefined) results[call.callIndex] = { id: call.toolUseId, name: call.name, output, isError };
    });
    const pending = open.pending.filter(({ callIndex }) => results[callIndex] === undefined);
    this.#turn.open = { ...open, results, pending };
  }

  #tell(outcome: TurnOutcome): ExecutionResult {
    const { price } = this.#options;
    const messages = this.#turn.messages.splice(0);
    const cost = price && costOf(this.#spent, price);
    const costs = cost === undefined ? {} : { cost };
    const reason = 'failure' in outcome ? describe(outcome.failure) : undefined;
    const ending = endingOf(outcome, this.conversation.messages);
    if (ending !== undefined) this.#emit(ending);
    this.#isOpen = ending === undefined;
    this.#canResume = outcome.status !== 'done';
    this.#emit({
      type: 'session_end',
      outcome: outcome.status,
      ...(reason !== undefined && { reason }),
      messages,
      usage: this.#spent,
      ...costs,
    });
    return { outcome, messages, pending: this.pending, denials: this.#turn.denials, usage: this.#spent, ...costs };
  }

  /** A bug ends the turn, too, and is told as its ending before it goes up. Where even that fails, it just goes up. */
  async #tellBug(error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    this.#tell({ status: 'error', failure: { kind: 'internal', message } });
    await this.#outlet.settled().catch(() => undefined);
  }

  #emit(event: Event): void {
    emit(this.#agent, this.#turn, event);
  }

  #makeAgent(): Agent {
    const { provider, model, tools, context, limits, retry, judge, question, worker } = this.#options;
    const definitions = tools.map(({ name, description, schema }) => ({ name, description, schema }));
    return {
      conversation: this.conversation,
      provider,
      model,
      contextTokens: this.#options.contextTokens,
      outputTokensMax: this.#options.outputTokensMax,
      definitions,
      definitionChars: codePoints(JSON.stringify(definitions)),
      definitionBytes: utf8Bytes(JSON.stringify(definitions)),
      bench: { tools, worker, context, instructions: this.#instructions, judge, question },
      limits,
      retry,
      admission: unhurried(
        this.#options.admission ?? budgetOnly(new Budget(this.#options.cap, this.#options.price)),
        () => this.#progress(),
      ),
      cacheKey: this.#options.cacheKey ?? this.id,
      emit: (event, place) => {
        if (!WAITING.has(event.type)) this.#progress();
        this.#outlet.emit(event, place);
      },
      settled: (signal) => this.#settled(signal),
      spend: (usage) => this.#spend(usage),
    };
  }

  /** Waits for the disk, but not longer than anybody wants to. */
  async #settled(signal: AbortSignal): Promise<void> {
    if (this.#options.store === undefined && this.#options.outlet === undefined) return;
    const given = Promise.withResolvers<void>();
    const giveUp = () => given.reject(new DroverError(failureOf(signal)));
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      await Promise.race([this.#outlet.settled(), given.promise]);
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  #spend(usage: Usage): void {
    this.#spent = sumUsage(this.#spent, usage);
    this.#total = sumUsage(this.#total, usage);
    const { price } = this.#options;
    const { ratio } = this.conversation;
    this.#emit({
      type: 'usage',
      usage,
      total: this.#total,
      ...(price && { cost: costOf(this.#total, price) }),
      ...(ratio !== undefined && { estimateRatio: Math.round(ratio * 1000) / 1000 }),
    });
  }
}

/** Waiting for leave is no idleness: others decide how long that takes. */
function unhurried({ admit }: Admission, progress: () => void): Admission {
  return {
    admit: async (wanted, signal) => {
      const waiting = setInterval(progress, WAITING_TOLD_MS);
      try {
        return await admit(wanted, signal);
      } finally {
        clearInterval(waiting);
      }
    },
  };
}

function endingOf(outcome: TurnOutcome, messages: readonly Message[]): Event | undefined {
  switch (outcome.status) {
    case 'done': {
      const message = messages.findLast((each) => each.role === 'assistant');
      return message && { type: 'done', message };
    }
    case 'incomplete':
    case 'error':
      return { type: outcome.status, failure: outcome.failure, reason: describe(outcome.failure) };
    case 'cancelled':
      return { type: 'cancelled' };
    case 'suspended':
      return undefined; // awaiting_tool_execution has told it
  }
}
