// The session behind a chat. The user can change its model or start a new session. The journal is opened with the
// first message, so a chat without messages leaves no files.

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Session } from '@drover/core/session/session';
import type { Execution } from '@drover/core/session/execution';
import type { Showing } from '@drover/core/agent/showing';
import type { Shown } from '@drover/core/bus';
import { isConversationSummary } from '@drover/core/conversation/compaction';
import type { TokenFigures } from '@drover/core/conversation/conversation';
import { newId } from '@drover/core/ids';
import { listJournalIds } from '@drover/core/journal/listing';
import type { Message, TextPart, Usage } from '@drover/protocol/messages';
import { sessionFolder } from '@drover/core/journal/session-journal';
import type { Steered } from '@drover/core/session/inbox';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { runShell, type ShellEnd } from '@drover/core/tools/process/run-shell';
import type { Contained } from '@drover/coordinator/slots/containment';
import { NO_SPENDING, spentIn, sumSpent } from '@drover/core/model/spending/spent';
import { modelFactsOf } from '@drover/core/model/catalog';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import { sessionTools } from '@drover/core/tools/builtin';
import { skillTools } from '@drover/core/tools/skill';
import { diagnosticsRedactor } from '../diagnostics.ts';
import type { Surroundings } from '../session/execution.ts';
import type { ModelChoice } from '../model/model-choice.ts';
import { openJournalOfSession } from '../session/open-journal.ts';
import { openProvider, type OpenedProvider } from '../model/open-provider.ts';
import { containSession, openSessionAtWork, openSessionServers, type SessionWork } from '../session/open-session.ts';
import type { Asked } from '../terminal/permission.ts';
import { findModelPrice } from '../model/price.ts';
import { totalTokens } from '../views/text/figures.ts';
import { diagnoseSandbox } from '../sandbox/containment.ts';
import { readAttachments, typedWords } from './input/attachments.ts';
import { chatFolder } from './list-files.ts';
import { type Mode, nextChatMode } from './mode.ts';
import { measurePromptParts } from './output/prompt-parts.ts';
import { runNews, runNote } from './runs/run-note.ts';
import { SessionRuns } from './runs/session-runs.ts';
import { UndoLog } from './undo/undo-log.ts';

// A session has no work left when the user leaves it, unless the user left at once.
const IDLE_MS_MAX = 500;
const SHELL_MS_MAX = 600_000;

type Opened = {
  readonly session: Session;
  readonly contained: Contained | undefined;
  readonly runs: SessionRuns;
  readonly close: () => Promise<void>;
};

/** Usage, cost and size of the conversation. */
export type Standing = {
  readonly usage: Usage;
  readonly cost: number | undefined;
  readonly tokens: TokenFigures; // of the next prompt
};

export class Talk {
  readonly #surroundings: Surroundings;
  readonly #asked: Asked;
  #work: SessionWork;
  #provider: OpenedProvider;
  #opened: Opened | undefined;
  #used: Pick<Standing, 'usage' | 'cost'> = { usage: NO_USAGE, cost: undefined }; // of this session
  #undo: UndoLog | undefined;
  #mode: Mode = 'edit';
  readonly #notes: TextPart[] = []; // for the next message
  readonly #noted = new Set<string>(); // runs whose reports went into the notes
  readonly #news: string[] = []; // for the user
  #isModelChosen = false;
  #ofRuns = NO_SPENDING; // of this session
  #spent = NO_SPENDING; // of all sessions of this chat, with their runs

  private constructor(work: SessionWork, provider: OpenedProvider, surroundings: Surroundings, asked: Asked) {
    this.#work = work;
    this.#provider = provider;
    this.#surroundings = surroundings;
    this.#asked = asked;
  }

  /** Starts a chat. An existing session is opened at once, which locks it for this process. */
  static async begin(work: SessionWork, surroundings: Surroundings, asked: Asked, isNew: boolean): Promise<Talk> {
    findModelPrice(work.model, work.budget, surroundings.settings);
    const provider = await openProvider(work.model, surroundings.settings, surroundings.diagnostics);
    const talk = new Talk(work, provider, surroundings, asked);
    if (isNew) return talk;
    try {
      await talk.#open();
      return talk;
    } catch (error) {
      await talk.close();
      throw error;
    }
  }

  get id(): string {
    return this.#work.session;
  }

  get model(): ModelChoice {
    return this.#work.model;
  }

  /** True if the session has any message. */
  get isBegun(): boolean {
    return this.#opened !== undefined;
  }

  /** The user's messages that are still in the conversation. */
  get said(): readonly string[] {
    const messages = this.#opened?.session.conversation.messages ?? [];
    return messages.flatMap((message) => {
      if (message.role !== 'user' || isConversationSummary(message)) return [];
      return typedWords(message)?.text ?? [];
    });
  }

  /** Begins a turn. Notes that were added since the last message come before its text. */
  async say(text: string, signal: AbortSignal): Promise<Execution> {
    const { session } = await this.#open();
    const parts = await readAttachments(text, this.#work.cwd); // throws if an attachment can't be read; the notes stay then
    const content = [...this.#notes.splice(0), ...parts];
    this.#undo?.begin();
    return session.execute({ content, cancelPending: true }, signal);
  }

  /** Sends a message to the agent at its next step; undefined if no turn runs. */
  steer(text: string): Steered | undefined {
    return this.#opened?.session.steer(text);
  }

  /** Text that the model reads with the next message. */
  note(text: string): void {
    this.#notes.push({ type: 'text', text });
  }

  /** Removes and returns what the user does not know yet about the runs of this session. */
  takeNews(): readonly string[] {
    return this.#news.splice(0);
  }

  /** The turn is over: notes what it changed. */
  async endTurn(): Promise<void> {
    await this.#opened?.runs.tell();
    await this.#undo?.endTurn();
  }

  /** Changes of earlier turns, which can be undone; undefined before the first message. */
  get undo(): UndoLog | undefined {
    return this.#undo;
  }

  /** The whole conversation, for a coordinator, with what the user has done since the last message. */
  get handedOver(): readonly Message[] {
    const messages = this.#opened?.session.conversation.messages ?? [];
    return this.#notes.length === 0 ? messages : [...messages, { role: 'user', content: [...this.#notes] }];
  }

  /** A run of this session is about to begin. The session begins with it, as it does with a message. */
  async beginRun(run: string, goal: string): Promise<void> {
    const { session, runs } = await this.#open();
    await session.begin();
    await runs.begin(run, (await diagnosticsRedactor(this.#surroundings.io)).text(goal));
  }

  /** A run of this session has ended: it counts, and its report goes along with the next message. */
  async endRun(run: string): Promise<void> {
    const { runs } = await this.#open();
    await this.#readRuns(runs);
    this.#spent = sumSpent(this.#spent, await runs.spent(run));
    if (this.#work.budget === undefined) return;
    // The budget of an open session is what was left when it was opened.
    await this.#leave();
    await this.#open();
  }

  /** The size of each part of the next prompt, in estimated tokens. */
  get parts(): readonly (readonly [name: string, tokens: number])[] {
    return this.#opened === undefined ? [] : measurePromptParts(this.#opened.session);
  }

  get mode(): Mode {
    return this.#mode;
  }

  changeMode(): void {
    this.#mode = nextChatMode(this.#mode);
  }

  /** Answers that hold for the rest of the chat. */
  get remembered(): ReadonlyMap<string, boolean> {
    return this.#asked.remembered;
  }

  get work(): SessionWork {
    return this.#work;
  }

  /** Runs a command of the user in the folder, in the sandbox if there is one. */
  async shell(script: string, onOutput: (chunk: Buffer) => undefined, signal: AbortSignal): Promise<ShellEnd> {
    const { contained } = await this.#open();
    const { cwd } = this.#work;
    const env = childProcessEnvironment(this.#surroundings.io.env);
    const spec = {
      script,
      cwd,
      env,
      sandbox: contained?.policy,
      callId: newId('call'),
      timeoutMs: SHELL_MS_MAX,
      onOutput,
    };
    return runShell(spec, signal);
  }

  /** Leaves the session, and opens another one that is on disk. */
  async switchTo(session: string): Promise<void> {
    await this.#leave();
    this.#forgetNotes(); // they belong to the session that was left
    this.#work = { ...this.#work, session };
    await this.#open();
  }

  /** Shortens the conversation; undefined if it is empty. */
  async compact(signal: AbortSignal): Promise<Showing<boolean> | undefined> {
    return this.#opened?.session.compact(signal);
  }

  /** Adds up usage and cost from events. */
  sees(event: Shown): void {
    if (event.type !== 'usage') return;
    this.#used = { usage: event.total, cost: event.cost };
    this.#spent = sumSpent(this.#spent, spentIn({ usage: event.usage, cost: event.requestCost }));
  }

  /** Changes the model for later messages. Throws UsageError and keeps the old one if the new one can't be used. */
  async useModel(model: ModelChoice): Promise<void> {
    const { settings, diagnostics } = this.#surroundings;
    findModelPrice(model, this.#work.budget, settings);
    const provider = await openProvider(model, settings, diagnostics);
    await this.#leave();
    await this.#provider.close();
    this.#provider = provider;
    this.#isModelChosen = true;
    this.#work = { ...this.#work, model };
  }

  /** True if the user has changed the model in this chat. */
  get isModelChosen(): boolean {
    return this.#isModelChosen;
  }

  /** Starts an empty session, and returns the id of the previous one, which is kept. */
  async startAnew(): Promise<string> {
    const { session: before } = this.#work;
    await this.#leave();
    this.#forgetNotes();
    this.#used = { usage: NO_USAGE, cost: undefined };
    this.#work = {
      ...this.#work,
      session: nextChatSessionName(before, listJournalIds(this.#surroundings.settings.home, 'sessions')),
    };
    return before;
  }

  get standing(): Standing {
    const window = this.#surroundings.settings.contextTokens ?? modelFactsOf(this.#work.model.name).contextTokens;
    const { usage, cost } = sumSpent(spentIn(this.#used), this.#ofRuns);
    return { usage, cost, tokens: this.#opened?.session.tokens ?? { estimate: 0, expected: 0, window } };
  }

  async close(): Promise<void> {
    await this.#leave();
    await this.#provider.close();
  }

  async #open(): Promise<Opened> {
    if (this.#opened !== undefined) return this.#opened;
    const { settings, diagnostics } = this.#surroundings;
    diagnoseSandbox(this.#work.containment, diagnostics);
    const journal = await openJournalOfSession({ home: settings.home, session: this.id }, this.#surroundings);
    const { store, past } = journal;
    const folder = chatFolder(this.#work.cwd, this.#surroundings.io, settings);
    const undo = await UndoLog.open(join(sessionFolder(settings.home, this.id), 'undo'), folder);
    this.#undo = undo;
    const box = await containSession(this.#work, settings.home);
    const servers = await openSessionServers(this.#work, this.#surroundings);
    const runs = await SessionRuns.open(settings.home, this.id);
    await this.#readRuns(runs);
    const work = { ...this.#work, budget: this.budgetLeft };
    const price = findModelPrice(work.model, undefined, settings);
    const session = openSessionAtWork(work, this.#surroundings, {
      provider: this.#provider.provider,
      price,
      asked: this.#asked,
      contained: box.contained,
      runLater: box.runLater,
      store,
      past,
      tools: [...sessionTools, ...skillTools(work.extensions.skills)],
      servers,
      remoteTimeoutMs: undefined,
      stepsBefore: 0,
      mode: () => this.#mode,
      beforeCall: (tool, input) => undo.before(tool, input),
    });
    if (past !== undefined) this.#used = { usage: past.usage, cost: past.cost };
    box.tellTo(session);
    const close = async () => {
      await servers.close();
      await box.close();
      await journal.close();
    };
    this.#opened = { session, contained: box.contained, runs, close };
    return this.#opened;
  }

  async #leave(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    this.#undo = undefined;
    if (opened === undefined) return;
    await Promise.race([opened.session.idle, delay(IDLE_MS_MAX, undefined, { ref: false })]);
    await opened.close();
  }

  async #readRuns(runs: SessionRuns): Promise<void> {
    this.#ofRuns = await runs.spent();
    for (const run of await runs.untold()) {
      if (this.#noted.has(run.id)) continue;
      this.#noted.add(run.id);
      this.note(runNote(run));
      this.#news.push(runNews(run));
    }
  }

  #forgetNotes(): void {
    this.#notes.length = 0;
    this.#noted.clear();
    this.#news.length = 0;
    this.#ofRuns = NO_SPENDING;
  }

  /** The budget covers the whole chat, across sessions, models and runs. */
  get budgetLeft(): SessionWork['budget'] {
    const { budget } = this.#work;
    if (budget === undefined) return undefined;
    const { usage, cost = 0 } = this.#spent;
    if ('usd' in budget) return { usd: Math.max(0, budget.usd - cost) };
    return { tokens: Math.max(0, budget.tokens - totalTokens(usage)) };
  }
}

/** The next free name: docs becomes docs-2, then docs-3. */
function nextChatSessionName(id: string, taken: readonly string[]): string {
  if (id.startsWith('ses_')) return newId('ses');
  const [, base = id] = /^(.*?)(?:-\d+)?$/.exec(id) ?? [];
  for (let number = 2; ; number++) {
    const name = `${base.slice(0, 58)}-${number}`;
    if (!taken.includes(name)) return name;
  }
}
