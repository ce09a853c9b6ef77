// Sessions that are open in this process. The first caller opens a session. An idle one is closed after a while, so
// that it costs nothing and another process may open it.

import { realpath } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { DroverError, UsageError } from '@drover/core/errors';
import { foldSessionHistory } from '@drover/core/journal/history';
import { readJournalFile } from '@drover/core/journal/file/journal';
import { journalPath } from '@drover/core/journal/session-journal';
import { UnfitOptions } from '@drover/core/model/sampling';
import type { Host, SessionWanted } from '../host.ts';
import { isInsideServedFolder } from '../place.ts';
import { Refusal, httpUnavailable, httpUnfitOptions, httpUnusableRequest } from '../http/problem.ts';
import type { Feeds } from '../streams/feeds.ts';
import { Desk } from './desk.ts';

const STOP_MS_MAX = 10_000;

export type DesksOptions = {
  readonly host: Host;
  readonly feeds: Feeds;
  readonly idleMs: number;
  readonly openMax: number;
};

export class Desks {
  readonly #options: DesksOptions;
  readonly #opening = new Map<string, Promise<Desk>>(); // includes those that are open
  readonly #open = new Map<string, Desk>();
  readonly #closing = new Map<string, Promise<void>>();
  readonly #idle = new Map<string, NodeJS.Timeout>();
  #isClosed = false;

  constructor(options: DesksOptions) {
    this.#options = options;
  }

  get(id: string): Desk | undefined {
    return this.#open.get(id);
  }

  /** Opens the session if necessary and runs `work` with it; returns a refusal if it cannot be opened. */
  async use<Result>(wanted: SessionWanted, work: (desk: Desk) => Promise<Result | Refusal>): Promise<Result | Refusal> {
    try {
      const desk = await this.#desk(wanted);
      if (desk instanceof Refusal) return desk;
      return await desk.use(() => work(desk)).finally(() => this.rest(desk));
    } catch (error) {
      if (error instanceof UnfitOptions) return httpUnfitOptions(error);
      if (error instanceof UsageError) return httpUnusableRequest(error);
      if (error instanceof DroverError) return httpUnavailable(error);
      throw error;
    }
  }

  /** Closes the session after the idle time, unless a caller needs it. */
  rest(desk: Desk): void {
    clearTimeout(this.#idle.get(desk.id));
    if (this.#open.get(desk.id) !== desk || desk.isInUse) return;
    const timer = setTimeout(() => desk.isInUse || void this.close(desk), this.#options.idleMs);
    this.#idle.set(desk.id, timer);
  }

  /** Closes the session. No caller may use it afterwards. */
  close(desk: Desk): Promise<void> {
    const { id } = desk;
    if (this.#open.get(id) !== desk) return this.#closing.get(id) ?? Promise.resolve();
    clearTimeout(this.#idle.get(id));
    this.#idle.delete(id);
    this.#open.delete(id);
    this.#opening.delete(id);
    const { diagnose } = this.#options.host;
    const closing = desk
      .close()
      .catch((error: unknown) =>
        diagnose('a session could not be closed', { session: id, error: String(error) }, 'error'),
      )
      .finally(() => this.#closing.delete(id));
    this.#closing.set(id, closing);
    return closing;
  }

  /** Interrupts running turns and closes all sessions. */
  async closeAll(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#opening.values());
    const desks = [...this.#open.values()];
    const stopped = Promise.all(desks.map((desk) => desk.stop('shutdown')));
    await Promise.race([stopped, sleep(STOP_MS_MAX, undefined, { ref: false })]);
    await Promise.all([...desks.map((desk) => this.close(desk)), ...this.#closing.values()]);
  }

  async #desk(wanted: SessionWanted): Promise<Desk | Refusal> {
    const { id } = wanted;
    await this.#closing.get(id);
    if (this.#isClosed) return new Refusal(503, 'server.closing', 'the server is about to end');
    const known = this.#opening.get(id);
    if (known !== undefined) return known;
    if (this.#opening.size >= this.#options.openMax)
      return new Refusal(503, 'server.busy', 'too many sessions are open: try again when one of them has ended');
    const opening = this.#openDesk(wanted);
    this.#opening.set(id, opening);
    opening.catch(() => this.#opening.delete(id));
    return opening;
  }

  async #openDesk(wanted: SessionWanted): Promise<Desk> {
    const { host, feeds } = this.#options;
    const { id } = wanted;
    const path = journalPath(host.home, id);
    if (wanted.begin === undefined) await checkPlaceOfServedSession(path, host.root);
    const hosted = await host.openSession(wanted);
    const unfollow = feeds.follow({ path }, hosted.session.bus);
    const model = wanted.model ?? wanted.begin?.model;
    const desk = new Desk({ id, hosted, model, diagnose: host.diagnose, onClose: unfollow });
    this.#open.set(id, desk);
    return desk;
  }
}

/** A session begun from the command line may work anywhere; the server opens it only inside the served folder. */
async function checkPlaceOfServedSession(path: string, root: string): Promise<void> {
  const { records } = await readJournalFile(path);
  const cwd = foldSessionHistory(records)?.cwd;
  if (cwd === undefined) throw new UsageError('the session has never begun');
  if (!isInsideServedFolder(await realpath(root), cwd))
    throw new UsageError(`the session works outside of the folder that is served`);
}
