// Runs of this server and of other processes. All are read from their journals. Only runs of this process can be
// cancelled and answered.

import { isDone } from '@drover/protocol/run';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as wire from '@drover/client/wire';
import { planProblems } from '@drover/coordinator/plan/graph';
import { isRunLive, listRuns, runStateOfRecords } from '@drover/coordinator/run/runs';
import { runJournalPath } from '@drover/coordinator/run/journal';
import { isProgressEnded } from '@drover/coordinator/view/progress';
import { taskRowsOfState, type TaskProgress } from '@drover/coordinator/view/state';
import { DroverError, UsageError } from '@drover/core/errors';
import { sessionTitle } from '@drover/core/journal/sessions';
import type { JsonObject } from '@drover/protocol/json';
import type { Host, HostedRun } from '../host.ts';
import { servedFolderInside } from '../place.ts';
import { httpNotFound, Refusal, httpUnavailable, httpUnfitBody, httpUnusableRequest } from '../http/problem.ts';
import {
  lastSeqOfServedSession,
  openQuestionsOfServedSession,
  readSessionSnapshotRecords,
  wasAskedInServedSession,
} from '../sessions/snapshot.ts';
import type { EventStream } from '../streams/event-stream.ts';
import type { Feeds, Source } from '../streams/feeds.ts';

const ID = /^run_[0-9a-f]{32}$/;
const PATCH_CHARS_MAX = 2_000_000;
const STOP_MS_MAX = 20_000;

export type RunsOptions = { readonly host: Host; readonly feeds: Feeds; readonly runsMax: number };

export class Runs {
  readonly #options: RunsOptions;
  readonly #atWork = new Map<string, HostedRun>();
  #starting = 0;
  #isClosed = false;

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  async start(wanted: wire.NewRun): Promise<wire.Made | Refusal> {
    const { host } = this.#options;
    return this.#carry(async () => {
      const cwd = await servedFolderInside(host.root, wanted.cwd);
      return cwd instanceof Refusal ? cwd : host.startRun({ ...wanted, cwd });
    });
  }

  /** With `tasks`, those are retried; all that failed if there are none. */
  async resume(id: string, { tasks, ...approval }: wire.RunRetry): Promise<wire.Made | Refusal> {
    if (!this.#isKept(id)) return httpNotFound('run');
    const run = await this.#atWorkOn(id);
    if (run !== undefined && tasks !== undefined) return runRefusedByServer(run.control.retry(tasks)) ?? { id };
    if (this.#isLive(id)) return new Refusal(409, 'run.live', 'the run is at work already');
    const stranger = await this.#elsewhere(id);
    if (stranger !== undefined) return stranger;
    const retry = tasks === undefined ? {} : { retry: tasks };
    return this.#carry(() => this.#options.host.resumeRun({ id, ...approval, ...retry }));
  }

  async deliver(id: string, { deliver = 'merge' }: wire.RunMerge): Promise<wire.RunDelivered | Refusal> {
    if (!this.#isKept(id)) return httpNotFound('run');
    const stranger = await this.#elsewhere(id);
    if (stranger !== undefined) return stranger;
    try {
      return { delivered: await this.#options.host.deliverRun(id, deliver) };
    } catch (error) {
      return refusalOfServedRun(error);
    }
  }

  async wholeDiff(id: string): Promise<wire.RunDiff | Refusal> {
    if (!this.#isKept(id)) return httpNotFound('run');
    const patch = await this.#options.host.diffOf(id);
    if (patch === undefined) return new Refusal(404, 'commit.gone', 'what this run changed is no longer there');
    return { patch: patch.slice(0, PATCH_CHARS_MAX) };
  }

  async answerPlan(id: string, given: wire.PlanAnswer): Promise<Refusal | undefined> {
    if (!this.#isKept(id)) return httpNotFound('run');
    const run = this.#atWork.get(id);
    if (run === undefined) return this.#notHere(id);
    const proposed = runStateOfRecords((await readSessionSnapshotRecords(this.#path(id))).records).proposed ?? [];
    const tasks = given.answer === 'run' ? (given.tasks ?? proposed) : [];
    const wrong =
      given.answer === 'run'
        ? planProblems(tasks, {
            tasksMax: tasks.length,
            done: new Set(),
            agents: proposed.flatMap(({ agent }) => agent ?? []),
          })
        : [];
    if (wrong.length > 0 && proposed.length > 0)
      return httpUnfitBody(wrong.map(({ at, message }) => ({ path: `tasks.${at}`, message })));
    const other = tasks.findIndex(({ id: each, model }) => model !== proposed.find((task) => task.id === each)?.model);
    if (other >= 0 && proposed.length > 0)
      return httpUnfitBody([{ path: `tasks.${other}.model`, message: 'the model of a task can’t be changed here' }]);
    const { comment = '' } = given;
    if (given.answer === 'comment' && comment.trim() === '')
      return httpUnfitBody([{ path: 'comment', message: 'a comment has words' }]);
    const answer = given.answer === 'comment' ? { comment } : { tasks };
    if (run.answerPlan(given.answer === 'stop' ? undefined : answer)) return undefined;
    return new Refusal(409, 'plan.answered', 'no plan of this run waits for an answer');
  }

  /** The run, unless it told its end: then it is waited for until it has closed all that it opened. */
  async #atWorkOn(id: string): Promise<HostedRun | undefined> {
    const run = this.#atWork.get(id);
    if (run === undefined || !hasToldEnd((await readSessionSnapshotRecords(this.#path(id))).records)) return run;
    await run.ended;
    return undefined;
  }

  /** Refuses a run whose repository is outside the served folder. */
  async #elsewhere(id: string): Promise<Refusal | undefined> {
    const { settings } = runStateOfRecords((await readSessionSnapshotRecords(this.#path(id))).records);
    const folder = await servedFolderInside(this.#options.host.root, settings?.repository);
    return folder instanceof Refusal ? folder : undefined;
  }

  async #carry(begin: () => Promise<HostedRun | Refusal>): Promise<wire.Made | Refusal> {
    const { feeds, runsMax } = this.#options;
    if (this.#isClosed) return new Refusal(503, 'server.closing', 'the server is about to end');
    if (this.#atWork.size + this.#starting >= runsMax)
      return new Refusal(503, 'server.busy', `${runsMax} runs are at work already: try again when one has ended`);
    this.#starting += 1;
    try {
      const run = await begin();
      if (run instanceof Refusal) return run;
      this.#atWork.set(run.id, run);
      const unfollow = feeds.follow(this.#source(run.id), run.bus);
      void run.ended.then(() => {
        this.#atWork.delete(run.id);
        unfollow();
      });
      return { id: run.id };
    } catch (error) {
      return refusalOfServedRun(error);
    } finally {
      this.#starting -= 1;
    }
  }

  list(): readonly wire.RunRow[] {
    return listRuns(this.#options.host.home).map((run) => {
      const { id, title, model, cwd, state, startedAt, updatedAt, tasks, landed, cost } = run;
      const live = state === 'open' && this.#isLive(id);
      const waiting = this.#waitingIn(id);
      const row = { id, title, model, cwd, state, live, waiting, startedAt, updatedAt, tasks, landed };
      return { ...row, ...(cost !== undefined && { cost }) };
    });
  }

  async snapshot(id: string): Promise<wire.RunSnapshot | Refusal> {
    if (!this.#isKept(id)) return httpNotFound('run');
    const live = this.#isLive(id);
    const { records, problem } = await readSessionSnapshotRecords(this.#path(id));
    if (problem !== undefined && records.length === 0) return httpUnavailable(problem);
    return snapshotOfServedRun(id, records, { live, waiting: this.#waitingIn(id), isDamaged: problem !== undefined });
  }

  /** Streams every durable event after `after`, then live ones to the run's end; undefined if the client has all. */
  async events(id: string, after: number): Promise<EventStream | Refusal | undefined> {
    if (!this.#isKept(id)) return httpNotFound('run');
    if (after > 0 && !this.#isLive(id)) {
      const { records } = await readSessionSnapshotRecords(this.#path(id));
      if (hasToldEnd(records) && lastSeqOfServedSession(records) <= after) return undefined;
    }
    return this.#options.feeds.replay(this.#source(id), after);
  }

  cancel(id: string): Refusal | undefined {
    if (!this.#isKept(id)) return httpNotFound('run');
    const run = this.#atWork.get(id);
    if (run === undefined) return this.#notHere(id);
    run.cancel();
    return undefined;
  }

  /** Asks something of a run at work in this process. `ask` returns why it was refused. */
  control(id: string, ask: (control: HostedRun['control']) => string | undefined): Refusal | undefined {
    if (!this.#isKept(id)) return httpNotFound('run');
    const run = this.#atWork.get(id);
    return run === undefined ? this.#notHere(id) : runRefusedByServer(ask(run.control));
  }

  async answer(id: string, requestId: string, answer: wire.PermissionAnswer): Promise<Refusal | undefined> {
    if (!this.#isKept(id)) return httpNotFound('run');
    const { allowed, always = false, words = '' } = answer;
    if (this.#atWork.get(id)?.answer(requestId, { allowed, always, words }) === true) return undefined;
    const { records } = await readSessionSnapshotRecords(this.#path(id));
    if (!wasAskedInServedSession(records, requestId)) return httpNotFound('question');
    if (!this.#atWork.has(id) && this.#isLive(id)) return this.#notHere(id);
    return new Refusal(409, 'question.answered', 'the question is answered, or nobody waits for the answer any more');
  }

  async diff(id: string, task: string, signal: AbortSignal): Promise<wire.TaskDiff | Refusal> {
    if (!this.#isKept(id)) return httpNotFound('run');
    const { records } = await readSessionSnapshotRecords(this.#path(id));
    const { tasks, settings } = runStateOfRecords(records);
    const commit = tasks.get(task)?.commit;
    if (settings === undefined || commit === undefined) return httpNotFound('task');
    const patch = await this.#options.host.patchOf({ repository: settings.repository, commit }, signal);
    if (patch === undefined) return new Refusal(404, 'commit.gone', 'what this task changed is no longer there');
    return { task, commit, patch: patch.slice(0, PATCH_CHARS_MAX) };
  }

  /** Interrupts all runs of this server. They can be resumed later. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const runs = [...this.#atWork.values()];
    for (const run of runs) run.cancel();
    const ended = Promise.all(runs.map((run) => run.ended));
    await Promise.race([ended, sleep(STOP_MS_MAX, undefined, { ref: false })]);
  }

  #notHere(id: string): Refusal {
    return this.#isLive(id)
      ? new Refusal(409, 'run.elsewhere', 'another process is at work on this run: only there it can be told something')
      : new Refusal(409, 'run.over', 'nobody is at work on this run');
  }

  #waitingIn(id: string): number {
    return this.#atWork.get(id)?.waiting() ?? 0;
  }

  #isLive(id: string): boolean {
    return this.#atWork.has(id) || isRunLive(this.#options.host.home, id);
  }

  #isKept(id: string): boolean {
    return ID.test(id) && existsSync(this.#path(id));
  }

  #source(id: string): Source {
    return { path: this.#path(id), lastType: 'run_end' };
  }

  #path(id: string): string {
    return runJournalPath(this.#options.host.home, id);
  }
}

function runRefusedByServer(why: string | undefined): Refusal | undefined {
  return why === undefined ? undefined : new Refusal(409, 'task.refused', why);
}

function refusalOfServedRun(error: unknown): Refusal {
  if (error instanceof UsageError) return httpUnusableRequest(error);
  if (error instanceof DroverError) return httpUnavailable(error);
  throw error;
}

function hasToldEnd(records: readonly JsonObject[]): boolean {
  return records.findLast(({ type }) => type !== 'delivered')?.['type'] === 'run_end';
}

type Standing = { readonly live: boolean; readonly waiting: number; readonly isDamaged: boolean };

function snapshotOfServedRun(
  id: string,
  records: readonly JsonObject[],
  { live, waiting, isDamaged }: Standing,
): wire.RunSnapshot {
  const state = runStateOfRecords(records);
  const tasks = [...state.tasks.values()];
  const [first, last] = [records.at(0)?.['at'], records.at(-1)?.['at']];
  const { settings, end, cost } = state;
  return {
    id,
    seq: lastSeqOfServedSession(records),
    goal: settings?.goal ?? '',
    title: sessionTitle(settings?.goal ?? ''),
    model: settings?.model ?? '',
    cwd: settings?.repository ?? '',
    state: isDamaged ? 'damaged' : (end?.outcome ?? (settings === undefined ? 'empty' : 'open')),
    live: live && end === undefined,
    waiting,
    startedAt: typeof first === 'string' ? first : '',
    updatedAt: typeof last === 'string' ? last : '',
    tasks: tasks.length,
    landed: tasks.filter((task) => isDone(task.state)).length,
    ...(cost !== undefined && { cost }),
    rows: end?.tasks ?? taskRowsOfState(state).filter(({ task }) => isServedTaskFinished(state.tasks.get(task))),
    questions: live && end === undefined ? openQuestionsOfServedSession(records) : [],
    ...(live && state.proposed !== undefined && { plan: state.proposed }),
  };
}

function isServedTaskFinished(task: TaskProgress | undefined): boolean {
  return task !== undefined && isProgressEnded(task.state);
}
