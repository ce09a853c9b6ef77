// A session: one agent's conversation with an id.
//
// Guarantees
//   1. A session runs one turn at a time. It rejects input that does not fit its state, and changes nothing then.
//   2. A session that waits for remote tools is suspended, and can be resumed later by another process.
//   3. Everything that happens is emitted as events. An execution ends when all of them are durable.
//
// Crash: `past`, read from the journal, restores messages, open calls, spending and the state of the last turn.

import { Bus } from '../bus.ts';
import { CHARS_PER_TOKEN_DEFAULT, Conversation, type TokenFigures } from '../conversation/conversation.ts';
import { Instructions } from '../conversation/instructions.ts';
import { systemPrompt } from '../conversation/prompt.ts';
import { skillCatalogue } from '../skills/skill.ts';
import type { Event, PendingCall } from '@drover/protocol/events';
import { describe } from '@drover/protocol/failures';
import { UsageError } from '../errors.ts';
import type { Past } from '../journal/history.ts';
import type { Usage } from '@drover/protocol/messages';
import { checkSampling } from '../model/sampling.ts';
import { labelOfModel, ModelRoutes } from '../model/fallback.ts';
import { chargeToTally } from '../model/spending/tally.ts';
import { NO_SPENDING, pricedUsage, spentIn, sumSpent, type Spent } from '../model/spending/spent.ts';
import { spentTokensOf } from '../model/spending/usage.ts';
import { failedTurnOutcome, type TurnOutcome } from '@drover/protocol/outcomes';
import { makeAgent } from '../agent/agent.ts';
import { abandonedCalls, callEndEvent, callLabelIn } from '../agent/calls/calls.ts';
import { compactAgentOnWish } from '../agent/compact.ts';
import type { Execution, ExecutionResult, Input, SessionStatus } from './execution.ts';
import { unlessTurnAborted, type Watch, watchTurnLimits } from '../agent/limits.ts';
import { areCallsAnswered, runTurn } from '../agent/loop.ts';
import {
  answeredRemoteCalls,
  boundRemoteResults,
  checkAgentTools,
  givenUpRemoteResults,
  matchRemoteResults,
  overdueRemoteResults,
  sessionStartWithRemoteTools,
  type Answered,
  type RemoteResult,
} from '../agent/calls/remote-calls.ts';
import { Inbox, type Steered } from './inbox.ts';
import { busySession, checkSessionInput, sessionWithoutCalls } from './input-check.ts';
import type { Outlet, SessionOptions } from './session-options.ts';
import { showAgentEvents, type Showing } from '../agent/showing.ts';
import {
  addTurnMessage,
  addTurnOpening,
  checkTurn,
  emitTurnEvent,
  turnEndingEvent,
  isTurnWhole,
  Turn,
  type Agent,
} from '../agent/turn.ts';
import { bestEffort } from '../promises.ts';

export class Session {
  readonly id: string;
  readonly bus: Bus;
  readonly conversation: Conversation;
  readonly #options: SessionOptions;
  readonly #outlet: Outlet;
  readonly #routes: ModelRoutes;
  readonly #agent: Agent;
  readonly #instructions: Instructions;
  #turn = new Turn(0);
  #spent: Spent = NO_SPENDING; // in this execution
  #total: Spent = NO_SPENDING;
  #isRunning = false;
  #started: Promise<void> | undefined;
  #last: Promise<void> = Promise.resolve(); // resolves when all earlier work has ended
  readonly #handedOut = new Set<string>(); // ids of all remote calls so far
  #isOpen = false; // a turn has begun and not ended
  #canResume = false;
  #ending: Past['ending'];
  #watch: Watch | undefined; // of the turn
  readonly #inbox: Inbox;

  constructor(options: SessionOptions) {
    checkAgentTools(options.tools, options.remoteTimeoutMs);
    if (options.sampling !== undefined) checkSampling(options.sampling, options);
    this.#options = options;
    this.id = options.id;
    const { past, pass, store } = options;
    this.bus = new Bus({ owner: { session: options.id }, lastSeq: past?.lastSeq ?? 0, pass, ...(store && { store }) });
    this.#outlet = options.outlet ?? this.bus;
    this.conversation = new Conversation(systemPrompt(undefined), options.charsPerToken ?? CHARS_PER_TOKEN_DEFAULT);
    this.#instructions = new Instructions(options.context.cwd);
    this.#routes = new ModelRoutes(options, options.fallbacks);
    this.#inbox = options.inbox ?? new Inbox();
    this.#agent = makeAgent(options, {
      conversation: this.conversation,
      routes: this.#routes,
      instructions: this.#instructions,
      emit: (event, place) => this.#outlet.emit(event, place),
      settled: (signal) => this.#settled(signal),
      spend: (usage, estimate) => this.#spend(usage, estimate),
      book: (usage) => this.#book(usage),
      total: () => this.#total,
      progress: () => this.#watch?.progress(),
      hold: () => this.#watch?.hold() ?? (() => undefined),
      inbox: this.#inbox,
    });
    this.conversation.replace(options.seed ?? []);
    if (past !== undefined) this.#restore(past);
  }

  /** The calls that wait for a remote tool. */
  get pending(): readonly PendingCall[] {
    return this.#turn.open?.pending ?? [];
  }

  /** The model as provider/name. */
  get model(): string {
    return labelOfModel(this.#routes.current);
  }

  /** Cost of all turns in US dollars, each request at the price of its model; undefined if no price is known. */
  get totalCost(): number | undefined {
    return spentTokensOf(this.#total.usage) === 0 ? 0 : this.#total.cost;
  }

  /** How the last turn ended; undefined while a turn runs and before the first one. */
  get ending(): Past['ending'] {
    return this.#isRunning ? undefined : this.#ending;
  }

  get status(): SessionStatus {
    if (this.#isRunning) return 'running';
    return this.pending.length > 0 ? 'awaiting_tool_execution' : 'idle';
  }

  /** Token figures of the next prompt, tools included. */
  get tokens(): TokenFigures {
    return this.conversation.figures(this.#agent.toolset.chars, this.#routes.current.contextTokens);
  }

  /** Resolves when all work begun so far has ended. */
  get idle(): Promise<void> {
    return this.#last;
  }

  /** Makes the start of the session durable, before its first execution. */
  async begin(): Promise<void> {
    await this.#start();
    await this.#outlet.settled();
  }

  /** Starts an execution whose events can be read while it runs. */
  execute(input: Input, signal: AbortSignal): Execution {
    return showAgentEvents(this.bus, () => this.#begin(input, signal));
  }

  /** Sends a message to the agent at its next step; undefined if no turn runs. */
  steer(content: Parameters<Inbox['add']>[0]): Steered | undefined {
    return this.#isRunning ? this.#inbox.add(content) : undefined;
  }

  /** Compacts the conversation at the user's request. Resolves to true if it became shorter. */
  compact(signal: AbortSignal): Showing<boolean> {
    if (this.status !== 'idle') throw busySession(this.id);
    this.#isRunning = true;
    return showAgentEvents(this.bus, () => this.#inOrder(() => this.#compact(signal)));
  }

  /** Executes without a stream of events, for callers that read them from the outlet. */
  async run(input: Input, signal: AbortSignal): Promise<ExecutionResult> {
    return this.#begin(input, signal);
  }

  /**
   * Stores results of remote calls, in any order, some or all of them. Resolves to the calls still pending, once the
   * results are durable. With none pending, `resume` continues the turn. Throws RemoteCallProblem.
   */
  async deliver(results: readonly RemoteResult[]): Promise<readonly PendingCall[]> {
    this.#matched(results);
    if (this.#isRunning) throw busySession(this.id);
    return this.#inOrder(() => this.#take(this.#matched(results)));
  }

  /** Gives calls past their deadline an error result. Resolves to the calls still pending. */
  async expire(now: number): Promise<readonly PendingCall[]> {
    if (this.#isRunning) return this.pending;
    return this.#inOrder(() => this.#take(overdueRemoteResults(this.pending, now)));
  }

  /** Gives up the pending remote calls and cancels the turn. */
  async abandon(): Promise<ExecutionResult> {
    if (this.#isRunning) throw busySession(this.id);
    return this.#inOrder(async () => {
      if (this.#turn.open === undefined) throw sessionWithoutCalls(this.id);
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

  // A caller may send input as soon as it sees the ending. Such input waits until the ending is durable.
  #inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = Promise.allSettled([result]).then(() => undefined);
    return result;
  }

  async #run(input: Input, signal: AbortSignal): Promise<ExecutionResult> {
    this.#spent = NO_SPENDING;
    const watching = watchTurnLimits(this.#options.limits, signal);
    this.#watch = watching;
    try {
      const ended = await this.#takeTurn(input, watching.signal);
      watching.stop(); // the limits cover the agent, not its check
      const checking = { check: this.#options.check, emit: (event: Event) => this.#emit(event) };
      const result = this.#tell(isTurnWhole(ended, this.#turn) ? await checkTurn(checking, signal) : ended);
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
      const isShorter = await compactAgentOnWish(this.#agent, this.#turn, signal);
      await this.#outlet.settled();
      return isShorter;
    } finally {
      this.#isRunning = false;
    }
  }

  #check(input: Input): void {
    const { id, status, pending } = this;
    if (status === 'running') throw busySession(id);
    if ('results' in input) this.#matched(input.results);
    checkSessionInput(input, { id, pending, canResume: this.#canResume });
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
      addTurnMessage(this.#agent, this.#turn, { role: 'user', content });
    }
    await this.#take(answers);
    // A resumed turn does not wait for overdue calls.
    if ((await this.#take(overdueRemoteResults(this.pending, Date.now()))).length > 0) return { status: 'suspended' };
    if ('resume' in input && areCallsAnswered(this.#agent, this.#turn)) return { status: 'done' };
    this.#isOpen = true;
    return runTurn(this.#agent, this.#turn, signal);
  }

  #start(): Promise<void> {
    this.#started ??= this.#tellStart();
    return this.#started;
  }

  async #tellStart(): Promise<void> {
    const { past, opening = [] } = this.#options;
    const start = sessionStartWithRemoteTools(this.#options, labelOfModel(this.#routes.first));
    if (start !== undefined) this.#emit(start);
    if (past === undefined) for (const message of opening) addTurnOpening(this.#agent, this.#turn, message);
    if (this.#options.system !== undefined) this.conversation.system = this.#options.system;
    await this.#readInstructions();
  }

  /** Reads the instruction files again with each message. With a given `system` prompt, the run reports problems. */
  async #readInstructions(): Promise<void> {
    const { text, leftOut, isNew } = await this.#instructions.forStart();
    if (this.#options.system !== undefined || !isNew) return;
    this.conversation.system = systemPrompt(skillCatalogue(this.#options.skills ?? []), text);
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
    if (past.model === labelOfModel(this.#routes.first)) {
      if (past.fallback !== undefined) this.#routes.restore(past.fallback);
      this.conversation.recalibrate(past.tokens ?? {});
    }
    this.#isOpen = turn > 0 && ending === undefined;
    this.#ending = ending;
    this.#canResume = turn > 0 && ending !== 'done';
    for (const callId of handedOut) this.#handedOut.add(callId);
  }

  /** Ends an open turn before a new message: open calls get error results, and the turn its ending. */
  #abandonTurn(): void {
    if (!this.#isOpen) return;
    const wasWaiting = this.pending.length > 0;
    this.#closeCalls();
    this.#turn.messages.length = 0;
    const crashed = failedTurnOutcome({ kind: 'aborted', by: 'crash' }, true);
    const ending = turnEndingEvent(wasWaiting ? { status: 'cancelled' } : crashed, []);
    if (ending !== undefined) this.#emit(ending);
    this.#isOpen = false;
  }

  #closeCalls(): void {
    this.#answer(givenUpRemoteResults(this.pending));
    const { open } = this.#turn;
    this.#turn.open = undefined;
    if (open !== undefined) addTurnMessage(this.#agent, this.#turn, { role: 'tool', results: abandonedCalls(open) });
  }

  #matched(results: readonly RemoteResult[]): readonly Answered[] {
    return matchRemoteResults(results, { session: this.id, pending: this.pending, known: this.#handedOut });
  }

  async #take(answers: readonly Answered[]): Promise<readonly PendingCall[]> {
    if (answers.length === 0) return this.pending;
    this.#answer(await boundRemoteResults(answers, this.#options.context));
    await this.#outlet.settled();
    return this.pending;
  }

  #answer(answers: readonly Answered[]): void {
    const { open } = this.#turn;
    if (open === undefined) return;
    for (const { call, output } of answers) this.#emit(callEndEvent(callLabelIn(call), output));
    this.#turn.open = answeredRemoteCalls(open, answers);
  }

  #tell(outcome: TurnOutcome): ExecutionResult {
    const messages = this.#turn.messages.splice(0);
    const reason = 'failure' in outcome ? { reason: describe(outcome.failure) } : {};
    const ending = turnEndingEvent(outcome, this.conversation.messages);
    if (ending !== undefined) this.#emit(ending);
    this.#isOpen = ending === undefined;
    this.#ending = outcome.status === 'suspended' ? undefined : outcome.status;
    this.#canResume = outcome.status !== 'done';
    for (const { callId } of this.pending) this.#handedOut.add(callId);
    this.#emit({ type: 'session_end', outcome: outcome.status, ...reason, messages, ...this.#spent });
    const { denials, refused } = this.#turn;
    return { outcome, messages, pending: this.pending, denials, refused: refused?.calls ?? [], ...this.#spent };
  }

  /** Emits a bug as the ending of the turn. The caller throws the error, even if the ending cannot be stored. */
  async #tellBug(error: unknown): Promise<void> {
    const failure = { kind: 'internal' as const, message: error instanceof Error ? error.message : String(error) };
    this.#tell({ status: 'error', failure });
    await bestEffort(this.#outlet.settled());
  }

  #emit(event: Event): void {
    emitTurnEvent(this.#agent, this.#turn, event);
  }

  /** Resolves when all events are durable; throws as soon as the signal is aborted. */
  async #settled(signal: AbortSignal): Promise<void> {
    if (this.#options.store === undefined && this.#options.outlet === undefined) return;
    await unlessTurnAborted(this.#outlet.settled(), signal);
  }

  /** Adds the usage of a request to the totals, and tells it. Returns its cost in US dollars. */
  #spend(usage: Usage, estimate: number | undefined): number | undefined {
    const { price, contextTokens: window } = this.#routes.current;
    const { ratio } = this.conversation;
    const figures = { ...(estimate !== undefined && { estimate }), ...(ratio !== undefined && { ratio }) };
    const { cost, event } = chargeToTally({ total: this.#total, window, ...figures }, usage, price);
    this.#book(usage);
    this.#emit(event);
    return cost;
  }

  #book(usage: Usage): void {
    const request = pricedUsage(usage, this.#routes.current.price);
    this.#spent = sumSpent(this.#spent, request);
    this.#total = sumSpent(this.#total, request);
  }
}
