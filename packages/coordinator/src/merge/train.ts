// The merge train: lands the work of finished tasks on one branch, in plan order.
//
// ORDER
//   A task is merged when all tasks before it have landed, failed or been withdrawn, so the result does not depend on
//   speed. A task with a conflict that may be retried moves to the end, together with its dependents.
//
// GATES
//   Up to BATCH_TASKS_MAX tasks are merged on top of each other and pass the gates together. If a gate is red,
//   bisection finds the first task with which it is red, and leaves that task out. Every tree that lands was green
//   itself, or, where the base may be red, made no gate worse than on the head before it. Conflicts count only against
//   landed work: a task that conflicts with one that may yet fail is merged again later.
//
// CRASH
//   A crash can come between the move of the branch and its events. The intent is durable before the branch moves, one
//   batch at a time. On resume the branch is at most one batch ahead of the journal, and repeating the merges must
//   give exactly its trees. If it does not, another program moved the branch: the train ends and everything is kept.
//
// A train that its signal stops leaves starts without ends, as a crash does.

import { setImmediate as immediate } from 'node:timers/promises';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import type { RunEvent } from '@drover/protocol/events';
import { DroverError } from '@drover/core/errors';
import type { Git } from '../git/git.ts';
import type { Identity } from '../git/repository.ts';
import type { Store } from '../store/store.ts';
import { type Checkout, type GateResult, Gates, type Verdict, firstRedGate } from './gate.ts';
import { type Conflict, type Point, describeMergeConflict, mergeTrees } from './merge.ts';
import { mergeCommitMessage } from './message.ts';

const BATCH_TASKS_MAX = 5;
const CONFLICTS_TOLD_MAX = 1_000; // paths

export type TrainEvent = Extract<RunEvent, { readonly type: 'merge_start' | 'merge_end' | 'gate_start' | 'gate_end' }>;

export type TrainOptions = {
  readonly git: Git; // git folder of the store
  readonly commit: Store['commit'];
  readonly run: string;
  readonly base: string;
  readonly head: string; // the base, or on resume the last head in the journal
  readonly identity: Identity;
  readonly isCoAuthored?: boolean; // commits have drover as co-author
  readonly when: string; // ISO time of the run's start, so that a repeated merge gives the same commit
  readonly gates: readonly string[];
  readonly allowRedBase?: boolean;
  readonly checkout: Checkout;
  readonly env: Readonly<Record<string, string>>;
  readonly outputFolder: string;
  readonly knownGates: ReadonlyMap<string, GateResult>;
  readonly emit: (event: TrainEvent, place: { readonly task?: string }) => void;
  /** Resolves when all emitted events are durable. */
  readonly settled: () => Promise<void>;
};

export type ExpectedTask = {
  readonly id: string;
  /** Tasks that must end before this one starts: its dependencies, and tasks on the same files. */
  readonly waitsFor: readonly string[];
};

export type Arrival = {
  readonly task: string;
  readonly commit: string;
  readonly title: string;
  /** From the journal: on resume the message must be the same. */
  readonly summary: string;
  readonly mayRetry: boolean;
};

export type Landing =
  | { readonly outcome: 'landed'; readonly commit: string } // the head where nothing was changed
  | {
      readonly outcome: 'conflict';
      readonly again: boolean; // expected again, at the end of the order
      readonly conflicts: readonly string[];
      readonly onto: string;
      readonly message: string; // for the next attempt's model
    }
  | { readonly outcome: 'gate_failed'; readonly reason: string };

type WaitingTask = Arrival & {
  readonly resolve: (landing: Landing) => void;
  readonly reject: (error: unknown) => void;
};
type Candidate = Point & { readonly waiting: WaitingTask };

function mergedRef(run: string): string {
  return `refs/heads/drover/${run}/merged`;
}

export class MergeTrain {
  readonly #options: TrainOptions;
  readonly #signal: AbortSignal;
  readonly #git: Git;
  readonly #ref: string;
  readonly #gates: Gates;
  readonly #waitsFor = new Map<string, readonly string[]>();
  readonly #waiting = new Map<string, WaitingTask>();
  readonly #started = new Set<string>();
  #order: readonly string[] = [];
  #head: Point | undefined;
  #refAt = ''; // last known commit of the ref; empty if there is none
  #ahead: readonly Point[] = []; // commit of the ref that the journal does not have
  #isRunning = false;
  #ended: { readonly error: unknown } | undefined;

  constructor(options: TrainOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#git = options.git;
    this.#ref = mergedRef(options.run);
    this.#gates = new Gates({ ...options, emit: (event) => options.emit(event, {}) });
    // Wait for the work in progress before reporting: a gate's processes must end first.
    const onAbort = () => this.#isRunning || this.#end(new DroverError(turnFailureOfSignal(signal)));
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  }

  /** The tip of the integration branch, and the base of tasks that start now. */
  get head(): string {
    return this.#head?.commit ?? this.#options.head;
  }

  /** Adds tasks to the order; each will be landed or withdrawn. A task follows those that it waits for. */
  expect(tasks: readonly ExpectedTask[]): void {
    for (const { id, waitsFor } of tasks) this.#waitsFor.set(id, waitsFor);
    this.#order = [...this.#order, ...tasks.map(({ id }) => id)];
  }

  /** Removes a task that failed, was skipped, or has nothing to merge. */
  withdraw(task: string): void {
    if (this.#waiting.has(task)) throw new Error(`${task} is on the merge train already`);
    this.#order = this.#order.filter((id) => id !== task);
    this.#wake();
  }

  /**
   * Moves a task to the end of the order, as after a conflict. On resume, called once for each conflict in the journal.
   */
  sendBack(task: string): void {
    const moved = new Set([task]);
    // The tasks that wait for this one, so it must not wait for them.
    for (const id of this.#order) if (this.#waitsFor.get(id)?.some((other) => moved.has(other))) moved.add(id);
    const isMoved = (id: string) => moved.has(id);
    this.#order = [...this.#order.filter((id) => !isMoved(id)), ...this.#order.filter(isMoved)];
  }

  /** Rejects if git fails or the train is stopped; then nothing more lands. */
  land(arrival: Arrival): Promise<Landing> {
    if (!this.#order.includes(arrival.task)) throw new Error(`the merge train does not expect ${arrival.task}`);
    if (this.#waiting.has(arrival.task)) throw new Error(`${arrival.task} is on the merge train already`);
    const { promise, resolve, reject } = Promise.withResolvers<Landing>();
    this.#waiting.set(arrival.task, { ...arrival, resolve, reject });
    if (this.#ended !== undefined) this.#end(this.#ended.error);
    this.#wake();
    return promise;
  }

  /**
   * Returns the verdict of the gates on the current result. A landed tree is not tested again. Throws if the signal
   * aborts.
   */
  async verdict(): Promise<Verdict> {
    if (this.#options.gates.length === 0) return { passed: true };
    this.#head ??= await this.#open();
    const than = this.#than(await this.#baseTree());
    return this.#gates.verdict({ ...this.#head, tasks: [], ...than }, this.#signal);
  }

  /**
   * Returns the verdict of the gates on the base. If the base may be red, all gates run, the verdict is good, and `red`
   * names those that fail.
   */
  async baseVerdict(): Promise<{ readonly verdict: Verdict; readonly red: readonly string[] }> {
    const tree = await this.#baseTree();
    const base = { commit: this.#options.base, tree, tasks: [], base: true, ...this.#than(tree) } as const;
    const verdict = await this.#gates.verdict(base, this.#signal);
    return { verdict, red: this.#gates.redOn(tree) };
  }

  async #baseTree(): Promise<string> {
    return (await this.#git(['rev-parse', '--verify', `${this.#options.base}^{tree}`])).out.trim();
  }

  #than(tree: string): { readonly than?: string } {
    return this.#options.allowRedBase === true ? { than: tree } : {};
  }

  #wake(): void {
    if (this.#isRunning || this.#ended !== undefined || this.#ready().length === 0) return;
    this.#isRunning = true;
    void this.#run();
  }

  #ready(): readonly WaitingTask[] {
    const ready: WaitingTask[] = [];
    for (const id of this.#order.slice(0, BATCH_TASKS_MAX)) {
      const waiting = this.#waiting.get(id);
      if (waiting === undefined) break;
      ready.push(waiting);
    }
    return ready;
  }

  async #run(): Promise<void> {
    try {
      // Commits that arrive at the same moment are merged together.
      await immediate();
      this.#head ??= await this.#open();
      // One round per batch: every round takes at least one task out of the order.
      for (let ready = this.#ready(); ready.length > 0; ready = this.#ready()) {
        this.#stopIfAborted();
        await this.#take(ready, this.#head);
      }
      this.#stopIfAborted();
    } catch (error) {
      this.#end(this.#signal.aborted ? new DroverError(turnFailureOfSignal(this.#signal), { cause: error }) : error);
    } finally {
      this.#isRunning = false;
    }
  }

  #stopIfAborted(): void {
    if (this.#signal.aborted) throw new DroverError(turnFailureOfSignal(this.#signal));
  }

  #end(error: unknown): void {
    this.#ended ??= { error };
    for (const { reject } of this.#waiting.values()) reject(this.#ended.error);
    this.#waiting.clear();
  }

  async #open(): Promise<Point> {
    const { base, head } = this.#options;
    const { out, code } = await this.#git(['rev-parse', '--verify', '--quiet', this.#ref], { accept: [1] });
    this.#refAt = code === 0 ? out.trim() : '';
    const tree = (await this.#git(['rev-parse', '--verify', `${head}^{tree}`])).out.trim();
    if (this.#refAt === '' && head !== base) throw this.#surprise('it is gone');
    if (this.#refAt !== '' && this.#refAt !== head) this.#ahead = await this.#foundAhead(head);
    return { commit: head, tree };
  }

  async #foundAhead(head: string): Promise<readonly Point[]> {
    const range = ['--first-parent', '--reverse', '--format=%H %T %P', this.#refAt, `^${head}`];
    const lines = (await this.#git(['log', ...range])).out.trim().split('\n');
    const found = lines.map((line) => line.split(' '));
    const isLine = found.every(([, , parent], at) => parent === (at === 0 ? head : found[at - 1]?.[0]));
    if (!isLine || found.length > BATCH_TASKS_MAX) throw this.#surprise(`it is at ${this.#refAt}, not at ${head}`);
    return found.map(([commit = '', tree = '']) => ({ commit, tree }));
  }

  async #take(ready: readonly WaitingTask[], head: Point): Promise<void> {
    const [first] = ready;
    if (first === undefined) return;
    // One task at a time, as long as the journal shows that it has landed already.
    const isAhead = this.#ahead.length > 0;
    const merged = await this.#merge(isAhead ? [first] : ready, head);
    if (!Array.isArray(merged)) return this.#refuse(first, merged, head);
    if (isAhead) return this.#recognise(merged, head);

    const { green, red } = await this.#sift(merged, head);
    this.#stopIfAborted();
    if (green.length > 0) await this.#land(green);
    for (const { waiting, reason } of red) {
      this.#settle(waiting, { outcome: 'gate_failed', reason }, { again: false, reason });
    }
  }

  // Stacks the commits up to the first that conflicts. If that is the first of all, it conflicts with landed work.
  async #merge(ready: readonly WaitingTask[], head: Point): Promise<Candidate[] | Conflict> {
    const { identity: by, when, run, isCoAuthored = false } = this.#options;
    const candidates: Candidate[] = [];
    let onto = head;
    for (const waiting of ready) {
      const tree = await mergeTrees(this.#git, { onto: onto.commit, commit: waiting.commit });
      if (typeof tree !== 'string') {
        if (candidates.length > 0) break;
        this.#start(waiting, head);
        return tree;
      }
      const message = mergeCommitMessage({ ...waiting, run, isCoAuthored });
      const commit =
        tree === onto.tree ? onto.commit : await this.#options.commit({ tree, parent: onto.commit, message, by, when });
      onto = { commit, tree };
      candidates.push({ ...onto, waiting });
    }
    for (const { waiting } of candidates) this.#start(waiting, head);
    return candidates;
  }

  // Once for each arrival, even if it is merged again because another task was left out.
  #start({ task, commit }: WaitingTask, head: Point): void {
    if (this.#started.has(task)) return;
    this.#started.add(task);
    this.#options.emit({ type: 'merge_start', commit, onto: head.commit }, { task });
  }

  async #sift(
    candidates: readonly Candidate[],
    head: Point,
  ): Promise<{
    readonly green: readonly Candidate[];
    readonly red: readonly { waiting: WaitingTask; reason: string }[];
  }> {
    const verdict = (count: number) => {
      const { commit, tree } = candidates[count - 1] ?? head;
      const tasks = candidates.slice(0, count).map(({ waiting }) => waiting.task);
      return this.#gates.verdict({ commit, tree, tasks, ...this.#than(head.tree) }, this.#signal);
    };
    // An unchanged tree needs no gate.
    if (candidates.at(-1)?.tree === head.tree) return { green: candidates, red: [] };
    if ((await verdict(candidates.length)).passed) return { green: candidates, red: [] };

    const bare = await verdict(0);
    if (!bare.passed) {
      const reason = `the gate '${bare.command}' fails on ${head.commit} already, without this task:\n${bare.reason}`;
      return { green: [], red: candidates.map(({ waiting }) => ({ waiting, reason })) };
    }
    const count = await firstRedGate(candidates.length, async (tasks) => (await verdict(tasks)).passed);
    const worst = await verdict(count);
    const reason = worst.passed ? '' : `the gate '${worst.command}' fails with this task merged:\n${worst.reason}`;
    const culprits = candidates.slice(count - 1, count).map(({ waiting }) => ({ waiting, reason }));
    return { green: candidates.slice(0, count - 1), red: culprits };
  }

  async #land(candidates: readonly Candidate[]): Promise<void> {
    const last = candidates.at(-1);
    if (last === undefined) return;
    // Emits the intents and the gates' verdicts before the effect.
    await this.#options.settled();
    if (last.commit !== this.head) await this.#moveRef(last.commit);
    this.#head = { commit: last.commit, tree: last.tree };
    for (const { waiting, commit } of candidates) {
      this.#settle(waiting, { outcome: 'landed', commit }, { again: false, commit });
    }
  }

  async #moveRef(to: string): Promise<void> {
    try {
      await this.#git(['update-ref', this.#ref, to, this.#refAt]);
    } catch (error) {
      const { out } = await this.#git(['rev-parse', '--verify', '--quiet', this.#ref], { accept: [1] });
      if (out.trim() !== to) throw error;
    }
    this.#refAt = to;
  }

  // The branch was moved here before the crash, after green gates.
  async #recognise([candidate]: readonly Candidate[], head: Point): Promise<void> {
    const [next] = this.#ahead;
    if (candidate === undefined || next === undefined) return;
    const { waiting, tree } = candidate;
    const changesNothing = tree === head.tree;
    if (!changesNothing && tree !== next.tree) {
      throw this.#surprise(`it holds ${next.commit}, which is not what merging ${waiting.task} gives`);
    }
    if (!changesNothing) {
      this.#head = next;
      this.#ahead = this.#ahead.slice(1);
    }
    this.#settle(waiting, { outcome: 'landed', commit: this.head }, { again: false, commit: this.head });
  }

  async #refuse(waiting: WaitingTask, conflict: Conflict, head: Point): Promise<void> {
    const again = waiting.mayRetry;
    const conflicts = conflict.paths.slice(0, CONFLICTS_TOLD_MAX);
    const message = await describeMergeConflict(this.#git, conflict, { onto: head.commit, commit: waiting.commit });
    const landing: Landing = { outcome: 'conflict', again, conflicts, onto: head.commit, message };
    this.#settle(waiting, landing, {
      again,
      onto: head.commit,
      conflicts,
      reason: 'it changes the same places as what has landed',
    });
  }

  #settle(
    { task, resolve }: WaitingTask,
    landing: Landing,
    details: Omit<Extract<TrainEvent, { readonly type: 'merge_end' }>, 'type' | 'outcome'>,
  ): void {
    this.#waiting.delete(task);
    this.#started.delete(task);
    if (details.again) this.sendBack(task);
    else this.#order = this.#order.filter((id) => id !== task);
    this.#options.emit({ type: 'merge_end', outcome: landing.outcome, ...details }, { task });
    resolve(landing);
  }

  #surprise(what: string): DroverError {
    return new DroverError({ kind: 'store.failed', message: `another process moved ${this.#ref}: ${what}` });
  }
}
