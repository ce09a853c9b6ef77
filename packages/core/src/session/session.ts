// A session: one agent's conversation with an id. It runs one turn at a time, can wait for remote tools
// and go on later, and tells everything that happens as events.

import { Bus } from '../bus.ts';
import { CHARS_PER_TOKEN_DEFAULT, Conversation, rounded, type TokenFigures } from '../conversation/conversation.ts';
import { Instructions } from '../conversation/instructions.ts';
import { systemPrompt } from '../conversation/prompt.ts';
import type { Event, PendingCall } from '@drover/protocol/events';
import { describe } from '@drover/protocol/failures';
import { UsageError } from '../errors.ts';
import type { Past } from '../journal/history.ts';
import type { Usage } from '@drover/protocol/messages';
import { checkSampling } from '../model/sampling.ts';
import { NO_SPENDING, priced, spentIn, sumSpent, type Spent } from '../model/spending/spent.ts';
import { tokensOf } from '../model/spending/usage.ts';
import { failedTurn, type TurnOutcome } from '@drover/protocol/outcomes';
import { makeAgent } from '../agent/agent.ts';
import { abandonedCalls, endOf, labelIn } from '../agent/calls/calls.ts';
import { compactOnWish } from '../agent/compact.ts';
import type { Execution, ExecutionResult, Input, SessionStatus } from './execution.ts';
import { unlessAborted, watch } from '../agent/limits.ts';
import { isAnswered, runTurn } from '../agent/loop.ts';
import {
  answeredCalls,
  bounded,
  checkTimeout,
  checkTools,
  givenUp,
  matched,
  overdue,
  startOf,
  type Answered,
  type RemoteResult,
} from '../agent/calls/remote-calls.ts';
import { checkInput, isBusy, waitsForNone } from '../agent/calls/refusal.ts';
import type { Outlet, SessionOptions } from './session-options.ts';
import { showing, type Showing } from '../agent/showing.ts';
import { addMessage, addOpening, emit, endingOf, Turn, type Agent } from '../agent/turn.ts';

export class Session {
  readonly id: string;
  readonly bus: Bus;
  readonly conversation: Conversation;
  readonly #options: SessionOptions;
  readonly #outlet: Outlet;
  readonly #agent: Agent;
  readonly #instructions: Instructions;
  #turn = new Turn(0);
  #spent: Spent = NO_SPENDING; // in this execution
  #total: Spent = NO_SPENDING;
  #isRunning = false;
  #started: Promise<void> | undefined;
  #last: Promise<void> = Promise.resolve(); // settled when all that was begun before is over
  readonly #handedOut = new Set<string>(); // all calls that ever were, by id
  #isOpen = false; // a turn has begun and not ended
  #canResume = false;
  #ending: Past['ending'];
  #progress: () => void = () => undefined;

  constructor(options: SessionOptions) {
    checkTools(options.tools);
    checkTimeout(options.remoteTimeoutMs);
    if (options.sampling !== undefined) checkSampling(options.sampling, options);
    this.#options = options;
    this.id = options.id;
    const { past, pass, store } = options;
    this.bus = new Bus({ owner: { session: options.id }, lastSeq: past?.lastSeq ?? 0, pass, ...(store && { store }) });
    this.#outlet = options.outlet ?? this.bus;
    this.conversation = new Conversation(systemPrompt(undefined), options.charsPerToken ?? CHARS_PER_TOKEN_DEFAULT);
    this.#instructions = new Instructions(options.context.cwd);
    this.#agent = makeAgent(options, {
      conversation: this.conversation,
      instructions: this.#instructions,
      emit: (event, place) => this.#outlet.emit(event, place),
      settled: (signal) => this.#settled(signal),
      spend: (usage, estimate) => this.#spend(usage, estimate),
      progress: () => this.#progress(),
    });
    this.conversation.replace(options.seed ?? []);
    if (past !== undefined) this.#restore(past);
  }

  /** The calls that wait for a remote tool. */
  get pending(): readonly PendingCall[] {
    return this.#turn.open?.pending ?? [];
  }

  /** provider/name. */
  get model(): string {
    return `${this.#options.provider.id}/${this.#options.model}`;
  }

  /** US dollars of all its turns, each request at the price of its model; undefined where no price is known. */
  get totalCost(): number | undefined {
    return tokensOf(this.#total.usage) === 0 ? 0 : this.#total.cost;
  }

  /** How the last turn ended; undefined while it hasn't, and before there was one. */
  get ending(): Past['ending'] {
    return this.#isRunning ? undefined : this.#ending;
  }

  get status(): SessionStatus {
    if (this.#isRunning) return 'running';
    return this.pending.length > 0 ? 'awaiting_tool_execution' : 'idle';
  }

  /** How long the next prompt is, tools included. */
  get tokens(): TokenFigures {
    return this.conversation.figures(this.#agent.definitionChars, this.#options.contextTokens);
  }

  /** Settles when all that was begun so far is over. */
  get idle(): Promise<void> {
    return this.#last;
  }

  /** Puts its beginning on the disk, before anything is asked of it. */
  async begin(): Promise<void> {
    await this.#start();
    await this.#outlet.settled();
  }

  /** Shows what happens while it happens. */
  execute(input: Input, signal: AbortSignal): Execution {
    return showing(this.bus, () => this.#begin(input, signal));
  }

  /** Shortens the conversation because the user wishes so. Resolves to whether it became shorter. */
  compact(signal: AbortSignal): Showing<boolean> {
    if (this.status !== 'idle') throw isBusy(this.id);
    this.#isRunning = true;
    return showing(this.bus, () => this.#inOrder(() => this.#compact(signal)));
  }

  /** The same, for whoever sees the events where they go. */
  async run(input: Input, signal: AbortSignal): Promise<ExecutionResult> {
    return this.#begin(input, signal);
  }

  /**
   * Takes results of remote calls, in any order and a few at a time, and puts them on the disk. Resolves to
   * the calls that are still waited for; where there are none, `resume` goes on. Throws RemoteCallProblem.
   */
  async deliver(results: readonly RemoteResult[]): Promise<readonly PendingCall[]> {
    this.#matched(results);
    if (this.#isRunning) throw isBusy(this.id);
    return this.#inOrder(() => this.#take(this.#matched(results)));
  }

  /** Calls past their deadline get a result that says so. Resolves to those that are still waited for. */
  async expire(now: number): Promise<readonly PendingCall[]> {
    if (this.#isRunning) return this.pending;
    return this.#inOrder(() => this.#take(overdue(this.pending, now)));
  }

  /** Gives up the remote calls that are waited for, and with them the turn. */
  async abandon(): Promise<ExecutionResult> {
    if (this.#isRunning) throw isBusy(this.id);
    return this.#inOrder(async () => {
      if (this.#turn.open === undefined) throw waitsForNone(this.id);
      this.#spent = NO_SPENDING;
      this.#closeCalls();
      const result = this.#tell({ status: 'cancelled' });
      await this.#outlet.settled();
      return result;
    });
  }

  #begin(input: Input, signal: AbortSignal): Promise<ExecutionResult> {
    this.#check(input);
    this.#isRunning = true;
    return this.#inOrder(() => this.#run(input, signal));
  }

  // What is told of an ending may be answered before it is on the disk; that comes first all the same.
  #inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }

  async #run(input: Input, signal: AbortSignal): Promise<ExecutionResult> {
    this.#spent = NO_SPENDING;
    const watching = watch(this.#options.limits, signal);
    this.#progress = watching.progress;
    try {
      const outcome = await this.#takeTurn(input, watching.signal);
      const result = this.#tell(outcome);
      this.#isRunning = false;
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

  async #compact(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#start();
      const isShorter = await compactOnWish(this.#agent, this.#turn, signal);
      await this.#outlet.settled();
      return isShorter;
    } finally {
      this.#isRunning = false;
    }
  }

  #check(input: Input): void {
    const { id, status, pending } = this;
    if (status === 'running') throw isBusy(id);
    if ('results' in input) this.#matched(input.results);
    checkInput(input, { id, pending, canResume: this.#canResume });
  }

  async #takeTurn(input: Input, signal: AbortSignal): Promise<TurnOutcome> {
    const answers = 'results' in input ? this.#matched(input.results) : [];
    const isStarted = this.#started !== undefined;
    await this.#start();
    if ('content' in input) {
      if (isStarted) await this.#readInstructions();
      this.#abandonTurn();
      this.#turn = new Turn(this.#turn.number + 1);
      const content =
        typeof input.content === 'string' ? [{ type: 'text' as const, text: input.content }] : input.content;
      addMessage(this.#agent, this.#turn, { role: 'user', content });
    }
    await this.#take(answers);
    // Whoever goes on does not wait for what is overdue.
    if ((await this.#take(overdue(this.pending, Date.now()))).length > 0) return { status: 'suspended' };
    if ('resume' in input && isAnswered(this.#agent, this.#turn)) return { status: 'done' };
    this.#isOpen = true;
    return runTurn(this.#agent, this.#turn, signal);
  }

  #start(): Promise<void> {
    this.#started ??= this.#tellStart();
    return this.#started;
  }

  async #tellStart(): Promise<void> {
    const { past, opening = [] } = this.#options;
    const start = startOf(this.#options, this.model);
    if (start !== undefined) this.#emit(start);
    if (past === undefined) for (const message of opening) addOpening(this.#agent, this.#turn, message);
    if (this.#options.system !== undefined) this.conversation.system = this.#options.system;
    await this.#readInstructions();
  }

  /** Again with each message: the files may have changed. A run that hands out the prompt has warned of them. */
  async #readInstructions(): Promise<void> {
    const { text, leftOut, isNew } = await this.#instructions.forStart();
    if (this.#options.system !== undefined || !isNew) return;
    this.conversation.system = systemPrompt(text);
    for (const message of leftOut) this.#emit({ type: 'warning', message });
  }

  #restore(past: Past): void {
    const { messages, turn, steps, answers, ending, open, refused, usage, cost, handedOut } = past;
    this.conversation.replace(messages);
    this.#turn = new Turn(turn);
    this.#turn.steps = steps;
    this.#turn.answers = answers;
    this.#turn.open = open;
    this.#turn.refused = refused;
    this.#total = spentIn({ usage, cost });
    if (past.model === this.model) this.conversation.recalibrate(past.tokens ?? {});
    this.#isOpen = turn > 0 && ending === undefined;
    this.#ending = ending;
    this.#canResume = turn > 0 && ending !== 'done';
    for (const callId of handedOut) this.#handedOut.add(callId);
  }

  /** A new message ends what is open: calls get results that say so, and the turn its ending. */
  #abandonTurn(): void {
    if (!this.#isOpen) return;
    const wasWaiting = this.pending.length > 0;
    this.#closeCalls();
    this.#turn.messages.length = 0;
    const crashed = failedTurn({ kind: 'aborted', by: 'crash' }, true);
    const ending = endingOf(wasWaiting ? { status: 'cancelled' } : crashed, []);
    if (ending !== undefined) this.#emit(ending);
    this.#isOpen = false;
  }

  #closeCalls(): void {
    this.#answer(givenUp(this.pending));
    const { open } = this.#turn;
    this.#turn.open = undefined;
    if (open !== undefined) addMessage(this.#agent, this.#turn, { role: 'tool', results: abandonedCalls(open) });
  }

  #matched(results: readonly RemoteResult[]): readonly Answered[] {
    return matched(results, { session: this.id, pending: this.pending, known: this.#handedOut });
  }

  async #take(answers: readonly Answered[]): Promise<readonly PendingCall[]> {
    if (answers.length === 0) return this.pending;
    this.#answer(await bounded(answers, this.#options.context));
    await this.#outlet.settled();
    return this.pending;
  }

  #answer(answers: readonly Answered[]): void {
    const { open } = this.#turn;
    if (open === undefined) return;
    for (const { call, output } of answers) this.#emit(endOf(labelIn(call), output));
    this.#turn.open = answeredCalls(open, answers);
  }

  #tell(outcome: TurnOutcome): ExecutionResult {
    const messages = this.#turn.messages.splice(0);
    const reason = 'failure' in outcome ? describe(outcome.failure) : undefined;
    const ending = endingOf(outcome, this.conversation.messages);
    if (ending !== undefined) this.#emit(ending);
    this.#isOpen = ending === undefined;
    this.#ending = outcome.status === 'suspended' ? undefined : outcome.status;
    this.#canResume = outcome.status !== 'done';
    for (const { callId } of this.pending) this.#handedOut.add(callId);
    this.#emit({
      type: 'session_end',
      outcome: outcome.status,
      ...(reason !== undefined && { reason }),
      messages,
      ...this.#spent,
    });
    const { denials, refused } = this.#turn;
    const told = { outcome, messages, pending: this.pending, denials, refused: refused?.calls ?? [] };
    return { ...told, ...this.#spent };
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

  /** Waits for the disk, but not longer than anybody wants to. */
  async #settled(signal: AbortSignal): Promise<void> {
    if (this.#options.store === undefined && this.#options.outlet === undefined) return;
    await unlessAborted(this.#outlet.settled(), signal);
  }

  /** Prices a request, once; returns its dollars. */
  #spend(usage: Usage, estimate: number | undefined): number | undefined {
    const request = priced(usage, this.#options.price);
    this.#spent = sumSpent(this.#spent, request);
    this.#total = sumSpent(this.#total, request);
    const { usage: total, cost } = this.#total;
    const { ratio } = this.conversation;
    this.#emit({
      type: 'usage',
      usage,
      total,
      ...(cost !== undefined && { cost }),
      ...(request.cost !== undefined && { requestCost: request.cost }),
      ...(estimate !== undefined && { estimate, window: this.#options.contextTokens }),
      ...(ratio !== undefined && { estimateRatio: rounded(ratio) }),
    });
    return request.cost;
  }
}
