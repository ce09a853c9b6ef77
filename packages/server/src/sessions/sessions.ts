// Sessions of this server. They live on disk; one is open only while a client uses it, and a while longer.
//
// The server resumes these without a request:
//   1. A turn whose remote calls all have results.
//   2. A turn with a remote call whose deadline passed. The session may be closed, and an earlier server that was
//      killed may have handed out the call.
//   3. A turn that was running when the server was killed, once a server starts again.

import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as wire from '@drover/client/wire';
import { REMOTE_TIMEOUT_MS_DEFAULT, RemoteCallProblem } from '@drover/core/agent/calls/remote-calls';
import type { Input } from '@drover/core/session/execution';
import { DroverError, UsageError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import { foldSessionHistory } from '@drover/core/journal/history';
import { Lock } from '@drover/core/journal/file/lock';
import { journalPath, sessionFolder } from '@drover/core/journal/session-journal';
import { isSessionLive, listSessions } from '@drover/core/journal/sessions';
import type { Message } from '@drover/protocol/messages';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import type { Host } from '../host.ts';
import { servedFolderInside } from '../place.ts';
import { httpNotFound, Refusal, httpUnavailable } from '../http/problem.ts';
import type { EventStream } from '../streams/event-stream.ts';
import type { Progress } from '../streams/feed.ts';
import type { Feeds } from '../streams/feeds.ts';
import { Deadlines } from './deadlines.ts';
import type { Desk } from './desk.ts';
import { Desks, type DesksOptions } from './desks.ts';
import { SessionViews } from './session-views.ts';
import { readSessionSnapshotRecords, wasAskedInServedSession } from './snapshot.ts';

const ID = /^ses_[0-9a-f]{32}$/;
// A file in a session's folder: a server began the session, so a server resumes it.
const MARK = 'served';
const BROKEN_MS = 100;
const BUSY_MS = 250;
const LOOKS_MAX = 200;
const LOOK_MS = 5;
const WORKER = 0; // a session has one agent

export class Sessions {
  readonly #host: Host;
  readonly #feeds: Feeds;
  readonly #desks: Desks;
  readonly #views = new SessionViews();
  readonly #deadlines = new Deadlines((id) => void this.#expire(id));

  constructor(options: DesksOptions) {
    this.#host = options.host;
    this.#feeds = options.feeds;
    this.#desks = new Desks(options);
  }

  /** Resumes what the previous server left: running turns and deadlines. */
  async start(): Promise<void> {
    const { home } = this.#host;
    for (const { id, state } of listSessions(home)) {
      if ((state !== 'open' && state !== 'suspended') || isSessionLive(home, id)) continue;
      if (!existsSync(join(sessionFolder(home, id), MARK))) continue;
      await this.#byItself(id, async () => {
        const pending =
          foldSessionHistory((await readSessionSnapshotRecords(this.#path(id))).records)?.open?.pending ?? [];
        if (pending.length === 0) return this.#goOn(id);
        this.#deadlines.watch(id, pending);
        return undefined;
      });
    }
  }

  async create(wanted: wire.NewSession): Promise<wire.Made | Refusal> {
    const { home, root } = this.#host;
    const { model, tools = [], remoteTimeoutMs, messages = [], options } = wanted;
    const folder = await servedFolderInside(root, wanted.cwd);
    if (folder instanceof Refusal) return folder;
    const id = newId('ses');
    const begin = {
      cwd: folder,
      tools,
      remoteTimeoutMs: remoteTimeoutMs ?? REMOTE_TIMEOUT_MS_DEFAULT,
      messages: messages.map(openingMessageOfServedSession),
      ...(model !== undefined && { model }),
      ...(options !== undefined && { options }),
    };
    const made = await this.#desks.use({ id, begin }, async ({ session }) => {
      await session.begin();
      await writeFile(join(sessionFolder(home, id), MARK), '');
      return { id };
    });
    // A session that could not begin leaves nothing behind.
    if (made instanceof Refusal) await rm(sessionFolder(home, id), { recursive: true, force: true });
    return made;
  }

  /** Begins a turn and streams its events to the end. The turn continues if the client leaves the stream. */
  async execute(id: string, wanted: wire.ExecuteRequest): Promise<EventStream | Refusal> {
    const { content, cancelPending = false, model } = wanted;
    if (model !== undefined) {
      const refusal = await this.#closeForModel(id, wanted);
      if (refusal !== undefined) return refusal;
    }
    if (!this.#isKept(id)) return httpNotFound('session');
    return this.#desks.use({ id, ...(model !== undefined && { model }) }, async (desk) => {
      const refusal = sessionRefusedNow(desk, wanted);
      if (refusal !== undefined) return refusal;
      const stream = this.#feeds.live({ path: this.#path(id) }, 'session_end');
      this.#deadlines.forget(id);
      void this.#execute(desk, { content, cancelPending }).then((isTold) => {
        // Events that were sent before are still on their way to the reader.
        if (!isTold) setTimeout(() => stream.finish(), BROKEN_MS);
      });
      return stream;
    });
  }

  /** Closes a session that has another model, so that it is opened again with this one. */
  async #closeForModel(id: string, wanted: wire.ExecuteRequest): Promise<Refusal | undefined> {
    const desk = this.#desks.get(id);
    if (desk === undefined || desk.wantedModel === wanted.model) return undefined;
    if (desk.isInUse) return AT_WORK;
    const refusal = sessionRefusedNow(desk, { ...wanted, model: desk.wantedModel });
    if (refusal === undefined) await this.#desks.close(desk);
    return refusal;
  }

  deliver(id: string, { results }: wire.ToolResults): Promise<wire.ResultsTaken | Refusal> {
    return this.#with(id, async (desk) => {
      try {
        const pending = await desk.session.deliver(results);
        this.#deadlines.watch(id, pending);
        if (pending.length === 0) void this.#execute(desk, { resume: true });
        return { status: desk.session.status, pending };
      } catch (error) {
        if (error instanceof RemoteCallProblem) return servedSessionNotTaken(error);
        if (error instanceof UsageError) return inTheWayOfServedSession('session.running', error.message);
        throw error;
      }
    });
  }

  /** Cancels the turn that runs or waits. Does nothing if there is none. */
  cancel(id: string): Promise<{ readonly status: wire.SessionStatus } | Refusal> {
    return this.#with(id, async (desk) => {
      await desk.stop('user');
      if (desk.session.status === 'awaiting_tool_execution') await desk.session.abandon();
      this.#deadlines.forget(id);
      return { status: desk.session.status };
    });
  }

  async answer(id: string, requestId: string, answer: wire.PermissionAnswer): Promise<Refusal | undefined> {
    if (!this.#isKept(id)) return httpNotFound('session');
    const { allowed, always = false, words = '' } = answer;
    if (this.#desks.get(id)?.answer(requestId, { allowed, always, words }) === true) return undefined;
    const { records } = await readSessionSnapshotRecords(this.#path(id));
    if (!wasAskedInServedSession(records, requestId)) return httpNotFound('question');
    return inTheWayOfServedSession(
      'question.answered',
      'the question is answered, or nobody waits for the answer any more',
    );
  }

  async remove(id: string): Promise<Refusal | undefined> {
    if (!this.#isKept(id)) return httpNotFound('session');
    const desk = this.#desks.get(id);
    if (desk?.isInUse === true)
      return inTheWayOfServedSession('session.running', 'the session is at work: cancel it first');
    if (desk !== undefined) await this.#desks.close(desk);
    const lock = Lock.take(`${this.#path(id)}.lock`);
    if (lock === undefined) return inTheWayOfServedSession('journal.busy', 'another process has this session');
    try {
      await rm(sessionFolder(this.#host.home, id), { recursive: true, force: true });
    } finally {
      lock.release();
    }
    this.#deadlines.forget(id);
    this.#feeds.end(this.#path(id));
    this.#views.forget(this.#path(id));
    return undefined;
  }

  /** Streams every durable event after `after`, then live ones until the reader leaves. */
  events(id: string, after: number): EventStream | Refusal {
    return this.#isKept(id) ? this.#feeds.replay({ path: this.#path(id) }, after) : httpNotFound('session');
  }

  /** Returns the state of a session, with at most `messagesMax` of its last messages. */
  async snapshot(id: string, messagesMax?: number): Promise<wire.SessionSnapshot | Refusal> {
    if (!this.#isKept(id)) return httpNotFound('session');
    // Three sources describe a session: journal, events sent, running work. Read them until they agree.
    for (let look = 1; ; look++) {
      const progress = this.#progress(id);
      const looked = await this.#views.look(this.#path(id), progress?.seq ?? Number.POSITIVE_INFINITY);
      if (looked instanceof DroverError) return httpUnavailable(looked);
      const { view, isAll } = looked;
      const after = this.#desks.get(id)?.isAtWork ?? false;
      const isStill = (progress !== undefined) === after && !(after && view.isQuiet) && isAll;
      const isAtWork = after || (!view.isQuiet && this.#isAtWork(id));
      if (isStill || look === LOOKS_MAX)
        return view.snapshot(id, { isAtWork, progress, messagesMax }) ?? httpNotFound('session');
      await sleep(LOOK_MS);
    }
  }

  /** How far the running turn's events were sent; undefined if no turn runs in this process. */
  #progress(id: string): Progress | undefined {
    return this.#desks.get(id)?.isAtWork === true ? this.#feeds.progress(this.#path(id), WORKER) : undefined;
  }

  list(): readonly wire.SessionRow[] {
    return listSessions(this.#host.home).map(({ id, title, model, cwd, state, startedAt, updatedAt, cost }) => {
      const live = state === 'open' && this.#isAtWork(id);
      const waiting = this.#desks.get(id)?.waiting ?? 0;
      return { id, title, model, cwd, state, live, waiting, startedAt, updatedAt, ...(cost !== undefined && { cost }) };
    });
  }

  /** Interrupts running turns. The next server resumes waiting ones. */
  async close(): Promise<void> {
    this.#deadlines.close();
    await this.#desks.closeAll();
  }

  async #with<Result>(id: string, work: (desk: Desk) => Promise<Result | Refusal>): Promise<Result | Refusal> {
    return this.#isKept(id) ? this.#desks.use({ id }, work) : httpNotFound('session');
  }

  async #execute(desk: Desk, input: Input): Promise<boolean> {
    const isTold = await desk.execute(input);
    this.#deadlines.watch(desk.id, desk.session.pending);
    this.#desks.rest(desk);
    return isTold;
  }

  async #goOn(id: string): Promise<Refusal | undefined> {
    const went = await this.#with(id, async (desk) => void this.#execute(desk, { resume: true }));
    if (!(went instanceof Refusal) || went.problem.type !== 'server.busy') return went;
    // Too many sessions are open at once. Retry when another has ended.
    setTimeout(() => void this.#byItself(id, () => this.#goOn(id)), BUSY_MS).unref();
    return undefined;
  }

  /** Gives expired calls an error result. The turn resumes when no call is missing. */
  #expire(id: string): Promise<void> {
    return this.#byItself(id, () =>
      this.#with(id, async (desk) => {
        if (desk.session.status !== 'awaiting_tool_execution') return undefined;
        const pending = await desk.session.expire(Date.now());
        this.#deadlines.watch(id, pending);
        if (pending.length === 0) void this.#execute(desk, { resume: true });
        return undefined;
      }),
    );
  }

  /** Runs work that no client requested: failures go to the diagnostics and never end the server. */
  async #byItself(id: string, work: () => Promise<Refusal | undefined>): Promise<void> {
    const { diagnose } = this.#host;
    try {
      const refusal = await work();
      if (refusal !== undefined) diagnose('a session could not go on', { session: id, ...refusal.problem }, 'warn');
    } catch (error) {
      diagnose('a session could not go on', { session: id, error: String(error) }, 'error');
    }
  }

  /** True if a turn runs here or in another process. */
  #isAtWork(id: string): boolean {
    return this.#desks.get(id)?.isAtWork ?? isSessionLive(this.#host.home, id);
  }

  #isKept(id: string): boolean {
    return ID.test(id) && existsSync(this.#path(id));
  }

  #path(id: string): string {
    return journalPath(this.#host.home, id);
  }
}

const AT_WORK = inTheWayOfServedSession('session.running', 'the session is at work on a turn already');

/** Returns why a message cannot be accepted now, or undefined. */
function sessionRefusedNow(desk: Desk, { cancelPending = false, model }: Asking): Refusal | undefined {
  const { status } = desk.session;
  if (status === 'running') return AT_WORK;
  if (status === 'awaiting_tool_execution' && !cancelPending)
    return inTheWayOfServedSession(
      'session.awaiting',
      'the session waits for the results of remote calls',
      CANCEL_PENDING,
    );
  if (model !== undefined && desk.wantedModel !== model)
    return inTheWayOfServedSession('session.running', 'another request has just opened the session with another model');
  return undefined;
}

type Asking = { readonly cancelPending?: boolean; readonly model?: string | undefined };

function openingMessageOfServedSession({ role, content }: wire.OpeningMessage): Message {
  const said = [{ type: 'text' as const, text: content }];
  return role === 'user' ? { role, content: said } : { role, content: said, stop: 'stop', usage: NO_USAGE };
}

const CANCEL_PENDING = 'deliver them, or say cancelPending to give them up';

function inTheWayOfServedSession(type: string, title: string, detail?: string): Refusal {
  return new Refusal(409, type, title, detail === undefined ? {} : { detail });
}

function servedSessionNotTaken({ kind, message }: RemoteCallProblem): Refusal {
  switch (kind) {
    case 'unknown':
      return httpNotFound('call');
    case 'answered':
      return inTheWayOfServedSession('call.answered', message);
    case 'too-large':
      return new Refusal(413, 'result.too_large', message);
  }
}
