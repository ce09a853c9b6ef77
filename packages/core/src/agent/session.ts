// A session: one agent's conversation with an id. It runs one turn at a time, can wait for remote tools
// and go on later, and tells everything that happens as events.

import { Bus, type BusOptions, type Reader, type Shown } from '../bus.ts';
import { CHARS_PER_TOKEN_DEFAULT, codePoints, Conversation } from '../conversation/conversation.ts';
import { Instructions } from '../conversation/instructions.ts';
import { systemPrompt } from '../conversation/prompt.ts';
import type { Decision, Event, PendingCall } from '../events.ts';
import { describe, UsageError } from '../failure.ts';
import type { Json } from '../json.ts';
import { Budget, type Cap } from '../model/budget.ts';
import { costOf, type Price } from '../model/catalog.ts';
import type { ImagePart, Message, Provider, TextPart, Usage } from '../model/protocol.ts';
import type { RetryPolicy } from '../model/retry.ts';
import type { TurnOutcome } from '../outcome.ts';
import type { Tool, ToolContext } from '../tools/tool.ts';
import type { Denial, Question, Verdict } from './calls.ts';
import { watch, type Limits } from './limits.ts';
import { closeCalls, runTurn } from './loop.ts';
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
  readonly charsPerToken?: number;
  readonly tools: readonly Tool[];
  readonly context: Omit<ToolContext, 'callId' | 'signal'>;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly judge: (tool: Tool, input: Json) => Promise<Verdict>;
  readonly question: (question: Question, signal: AbortSignal) => Promise<Decision>;
  readonly pass: BusOptions['pass'];
};

/** What a turn begins with: a message, or the results a suspended session waits for. */
export type Input =
  | { readonly content: string | readonly (TextPart | ImagePart)[] }
  | { readonly results: readonly RemoteResult[] };

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

// Told while nothing comes of the work, so the idle clock runs on.
const WAITING: ReadonlySet<Event['type']> = new Set([
  'retry',
  'heartbeat',
  'warning',
  'usage',
  'permission_request',
  'attempt_discarded',
]);

const NOTHING: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

export class Session {
  readonly id: string;
  readonly bus: Bus;
  readonly conversation: Conversation;
  readonly #options: SessionOptions;
  readonly #agent: Agent;
  readonly #instructions: Instructions;
  #turn = new Turn(0);
  #spent: Usage = NOTHING; // in this execution
  #total: Usage = NOTHING;
  #isRunning = false;
  #isStarted = false;
  #progress: () => void = () => undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.id = options.id;
    this.bus = new Bus({ session: options.id, pass: options.pass });
    this.conversation = new Conversation(systemPrompt(undefined), options.charsPerToken ?? CHARS_PER_TOKEN_DEFAULT);
    this.#instructions = new Instructions(options.context.cwd);
    this.#agent = this.#makeAgent();
  }

  get pending(): readonly PendingCall[] {
    return this.#turn.open?.settled.pending ?? [];
  }

  execute(input: Input, signal: AbortSignal): Execution {
    if (this.#isRunning) throw new UsageError(`session ${this.id} is busy: wait for its turn to end, or cancel it`);
    if ('content' in input && this.#turn.open !== undefined)
      throw new UsageError(`session ${this.id} waits for the results of ${this.pending.length} remote calls`);
    if ('results' in input && this.#turn.open === undefined)
      throw new UsageError(`session ${this.id} waits for no results`);
    this.#isRunning = true;
    const reader = this.bus.reader();
    const result = this.#run(input, signal, reader);
    // Whoever awaits result() hears of a failure; whoever doesn't must not be crashed by it.
    result.catch(() => undefined);
    return { [Symbol.asyncIterator]: () => reader[Symbol.asyncIterator](), result: () => result };
  }

  async #run(input: Input, signal: AbortSignal, reader: Reader): Promise<ExecutionResult> {
    this.#spent = NOTHING;
    const watching = watch(this.#options.limits, signal);
    this.#progress = watching.progress;
    try {
      const outcome = await this.#takeTurn(input, watching.signal);
      return this.#tell(outcome);
    } finally {
      watching.stop();
      this.#isRunning = false;
      reader.finish();
    }
  }

  async #takeTurn(input: Input, signal: AbortSignal): Promise<TurnOutcome> {
    if (!this.#isStarted) await this.#start();
    if ('content' in input) {
      this.#turn = new Turn(this.#turn.number + 1);
      const content =
        typeof input.content === 'string' ? [{ type: 'text' as const, text: input.content }] : input.content;
      addMessage(this.#agent, this.#turn, { role: 'user', content });
    } else if (!this.#deliver(input.results)) {
      return { status: 'suspended' };
    }
    return runTurn(this.#agent, this.#turn, signal);
  }

  async #start(): Promise<void> {
    this.#isStarted = true;
    const { provider, model, context } = this.#options;
    this.#emit({ type: 'session_start', model: `${provider.id}/${model}`, cwd: context.cwd });
    this.conversation.system = systemPrompt(await this.#instructions.forStart());
  }

  /** True once every remote call has its result. */
  #deliver(delivered: readonly RemoteResult[]): boolean {
    const { open } = this.#turn;
    if (open === undefined) return false;
    const results = [...open.settled.results];
    for (const { callId, output, isError } of delivered) {
      const call = open.settled.pending.find((pending) => pending.callId === callId);
      if (call === undefined) throw new UsageError(`session ${this.id} waits for no call ${callId}`);
      results[call.callIndex] = { id: call.toolUseId, name: call.name, output, isError: isError ?? false };
    }
    const pending = open.settled.pending.filter(({ callIndex }) => results[callIndex] === undefined);
    this.#turn.open = { calls: open.calls, settled: { ...open.settled, results, pending } };
    if (pending.length > 0) return false;
    closeCalls(this.#agent, this.#turn, open.calls, results);
    return true;
  }

  #tell(outcome: TurnOutcome): ExecutionResult {
    const { price } = this.#options;
    const messages = this.#turn.messages.splice(0);
    const cost = price && costOf(this.#spent, price);
    const costs = cost === undefined ? {} : { cost };
    const reason = 'failure' in outcome ? describe(outcome.failure) : undefined;
    const ending = endingOf(outcome, messages);
    if (ending !== undefined) this.#emit(ending);
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
      bench: { tools, worker, context, instructions: this.#instructions, judge, question },
      limits,
      retry,
      budget: new Budget(this.#options.cap, this.#options.price),
      cacheKey: this.id,
      emit: (event, place) => {
        if (!WAITING.has(event.type)) this.#progress();
        this.bus.emit(event, place);
      },
      spend: (usage) => this.#spend(usage),
    };
  }

  #spend(usage: Usage): void {
    this.#spent = sum(this.#spent, usage);
    this.#total = sum(this.#total, usage);
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

function sum(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    ...((a.estimated ?? b.estimated) && { estimated: true as const }),
  };
}
