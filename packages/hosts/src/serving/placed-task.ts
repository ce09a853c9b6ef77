// One placement on a host: from the job that was taken to the release of the workspace.
//
//   hello → order → have → pack → ready → task → … → outcome → release
//
// A placement ends early in two ways. Stopped by the host (lease over, newer epoch, shutdown), its workspace is kept,
// so that the attempt can resume in it. Closed by the coordinator, its workspace is released.

import { join } from 'node:path';
import { deserialize } from 'node:v8';
import { DroverError } from '@drover/core/errors';
import { describe, type Failure } from '@drover/protocol/failures';
import { bestEffort, pause } from '@drover/core/promises';
import type { RunTask, TaskSpec } from '@drover/core/task/task';
import { taskLinkOverWire } from '@drover/core/task/wire';
import { builtinTools } from '@drover/core/tools/builtin';
import { submitResult } from '@drover/core/tools/submit-result';
import { gitAt } from '@drover/coordinator/git/git';
import type { Slots, Workspace } from '@drover/coordinator/slots/slots';
import type { Frame, Line } from '../line/line.ts';
import { digestOfOrder, type FromHost, type Job, type Order, type ToHost } from '../messages.ts';
import { PackIntake, sendPackToHost } from '../packs.ts';
import { type LinePort, hostPortOverLine } from '../wire-port.ts';
import { serveWithCheckpoints } from './checkpoints.ts';
import { type HostRepository, listCommitsHostHas, noteCommitHostHas } from './repository.ts';
import { TreeState } from './tree-state.ts';

const HELLO_EVERY_MS = 1_000;
const HELLOS_MAX = 20;

const READERS = new Set([
  ...builtinTools.filter(({ access }) => access === 'read').map(({ name }) => name),
  submitResult.name,
]);

/** The parts of a host that a placement uses. */
export type PlacedContext = {
  readonly job: Job;
  readonly line: Line<ToHost, FromHost>;
  readonly hello: () => void;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  readonly runTask: RunTask;
  /** Opens the workspaces of the run. Throws a refusal if the host cannot give what the order requires. */
  readonly open: (order: Order) => Promise<OpenRun>;
  /** The workspace that this host has kept for the attempt. */
  readonly kept: () => Workspace | undefined;
  readonly keep: (workspace: Workspace) => void;
  /** Network connections of this attempt's commands are reported through it. */
  readonly onLink: (emit: ReturnType<typeof taskLinkOverWire>['link']['emit'] | undefined) => void;
};

export type OpenRun = {
  readonly slots: Slots;
  readonly repository: HostRepository;
  readonly contained: boolean;
};

/** Why a host does not take a placement, in a sentence for the user. */
export class Refusal extends Error {}

export class PlacedTask {
  readonly #context: PlacedContext;
  readonly #stop = new AbortController();
  readonly #arrived: Frame<ToHost>[] = [];
  #news = Promise.withResolvers<void>();
  #port: LinePort | undefined;
  #workspace: Workspace | undefined;
  #isClosed = false; // by the coordinator
  #order: Order | undefined;
  #open: OpenRun | undefined;
  #saved: { readonly commit: string; readonly leftOut: readonly string[] } | undefined;
  #unsaved: Failure | undefined;
  #tree: TreeState | undefined;
  readonly ended: Promise<void>;

  constructor(context: (placed: PlacedTask) => PlacedContext) {
    this.#context = context(this);
    this.ended = this.#run();
  }

  get job(): Job {
    return this.#context.job;
  }

  hear(frame: Frame<ToHost>): void {
    // Messages of the wire are for the task that runs now.
    if (frame.body.type === 'wire') return this.#port?.hear(frame.body.message);
    this.#arrived.push(frame);
    this.#news.resolve();
  }

  /** Ends the placement. `closed`: the coordinator has no use for the workspace. `stopped`: it is told at once. */
  end(why: Failure, by: 'host' | 'closed' | 'stopped'): void {
    this.#isClosed ||= by === 'closed';
    if (by === 'stopped') this.#context.line.send({ type: 'given up', why: 'its host was stopped' });
    this.#stop.abort(new DroverError(why));
    this.#port?.close();
    this.#news.resolve();
  }

  async #run(): Promise<void> {
    const { line } = this.#context;
    try {
      const order = await this.#prepare();
      if (order !== undefined) await this.#serve(order);
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        const why = placedTaskErrorSentence(error);
        line.send(error instanceof Refusal ? { type: 'refused', why } : { type: 'given up', why });
      }
    }
    this.#context.onLink(undefined);
    const workspace = this.#workspace;
    if (workspace === undefined) return;
    if (this.#stop.signal.aborted && !this.#isClosed) this.#context.keep(workspace);
    else await workspace.release();
  }

  async #prepare(): Promise<Order | undefined> {
    const { job, line, home: _ } = this.#context;
    const first = await this.#firstFrame();
    if (first?.body.type !== 'order') return undefined;
    const { order } = first.body;
    if (digestOfOrder(order) !== job.digest) throw new Refusal('the order is not the one that the job was signed for');
    this.#order = order;
    this.#open = await this.#context.open(order);
    const { repository } = this.#open;
    line.send({ type: 'have', commits: await listCommitsHostHas(repository) });
    await this.#takePack();
    await noteCommitHostHas(repository, [order.base]);
    this.#workspace = await this.#workspaceFor(order, this.#open);
    line.send({ type: 'ready', workspace: this.#workspace.path });
    return order;
  }

  /** Says hello until the coordinator answers. */
  async #firstFrame(): Promise<Frame<ToHost> | undefined> {
    for (let hello = 0; hello < HELLOS_MAX && this.#arrived.length === 0; hello++) {
      if (this.#stop.signal.aborted) return undefined;
      this.#context.hello();
      const waited = new AbortController();
      await Promise.race([this.#news.promise, pause(HELLO_EVERY_MS, waited.signal)]);
      waited.abort();
    }
    return this.#arrived.length === 0 ? undefined : this.#next();
  }

  async #next(): Promise<Frame<ToHost>> {
    for (;;) {
      const frame = this.#arrived.shift();
      if (frame !== undefined) return frame;
      this.#stop.signal.throwIfAborted();
      this.#news = Promise.withResolvers<void>();
      await this.#news.promise;
    }
  }

  async #takePack(): Promise<void> {
    const place = this.#open?.repository.place;
    if (place === undefined) return;
    const intake = new PackIntake(place);
    try {
      for (;;) {
        const { body, blob } = await this.#next();
        if (body.type !== 'pack') throw new Error(`a ${body.type} instead of a pack`);
        if (blob !== undefined) await intake.take(blob);
        if (body.last) return await intake.end();
      }
    } catch (error) {
      intake.abandon();
      throw error;
    }
  }

  async #workspaceFor(order: Order, { slots }: OpenRun): Promise<Workspace> {
    const kept = this.#context.kept() ?? (order.goesOn ? await slots.again(order) : undefined);
    if (kept !== undefined && order.goesOn) return kept;
    await kept?.release();
    const { worker, task, attempt, base } = order;
    const workspace = await slots.take({ worker, task, attempt, base, signal: this.#stop.signal });
    if (order.checkpoint !== undefined) await this.#restore(workspace, order.checkpoint);
    return workspace;
  }

  /** Brings the files of an earlier host's checkpoint into a workspace that is at the base. */
  async #restore({ path }: Workspace, checkpoint: string): Promise<void> {
    const { slots } = this.#openRun;
    const { env } = this.#context;
    const index = join(path, '..', 'git', 'index.restore');
    const git = gitAt({ gitDir: slots.store.gitDir, workTree: path, indexFile: index, env });
    await git(['read-tree', this.#base]);
    await git(['update-index', '-q', '--refresh'], { accept: [1] });
    await git(['read-tree', '--reset', '-u', checkpoint]);
    this.#saved = { commit: checkpoint, leftOut: [] };
  }

  async #serve(order: Order): Promise<void> {
    for (;;) {
      const { body, blob } = await this.#next();
      if (body.type === 'release') return;
      if (body.type !== 'task' || blob === undefined) throw new Error(`a ${body.type} instead of a task`);
      await this.#work(this.#specOf(deserialize(blob) as TaskSpec, order));
    }
  }

  #specOf(spec: TaskSpec, { run, task, attempt }: Order): TaskSpec {
    const { home, env } = this.#context;
    const { sandbox } = this.#workspace ?? {};
    return {
      ...spec,
      env,
      policy: { ...spec.policy, contained: this.#openRun.contained },
      ...(sandbox !== undefined && { sandbox }),
      outputFolder: join(home, 'hosts', 'outputs', run, `${task}-${attempt}`),
    };
  }

  async #work(spec: TaskSpec): Promise<void> {
    const { line, runTask, onLink } = this.#context;
    const port = hostPortOverLine((message) => line.send({ type: 'wire', message }));
    this.#port = port;
    const wire = taskLinkOverWire({ port }, 0);
    const { link, flush } = serveWithCheckpoints(wire.link, { save: () => this.#save(), readers: READERS });
    onLink(link.emit);
    try {
      const signal = AbortSignal.any([wire.signal, this.#stop.signal]);
      const outcome = await runTask(spec, link, signal);
      this.#stop.signal.throwIfAborted();
      await flush();
      await this.#save();
      // Closing sends what the wire still holds, so the outcome is the last.
      wire.close();
      line.send({ type: 'outcome', outcome, ...(this.#unsaved !== undefined && { unsaved: this.#unsaved }) });
    } finally {
      wire.close();
      this.#port = undefined;
    }
  }

  /** Sends the files as they are now, if they changed since the last time. */
  async #save(): Promise<void> {
    const { line } = this.#context;
    const { run, task, startedAt: when } = this.#given;
    const { slots } = this.#openRun;
    const base = this.#base;
    // A file may vanish during the look: then git looks.
    if ((await bestEffort(this.#hasChanged())) === false) return;
    this.#unsaved = undefined;
    const order = { message: 'checkpoint', when, branch: `drover/${run}/${task}` };
    const made = await this.#workspace?.commit(order).catch((error: unknown) => {
      // The files are there, but no commit can hold them: the attempt's end says so.
      if (!(error instanceof DroverError) || error.failure.kind !== 'workspace.failed') throw error;
      this.#unsaved = error.failure;
      return undefined;
    });
    if (this.#unsaved !== undefined) return;
    const { commit, leftOut } = made ?? { commit: base, leftOut: [] };
    const before = this.#saved ?? { commit: base, leftOut: [] };
    if (commit === before.commit && leftOut.length === before.leftOut.length) return;
    const place = { gitDir: slots.store.gitDir, env: this.#context.env };
    const send = async (part: Buffer, last: boolean) => {
      await line.room();
      line.send({ type: 'pack', last }, part);
    };
    if (commit !== before.commit) await sendPackToHost(place, { commits: [commit], have: [base, before.commit] }, send);
    line.send({ type: 'checkpoint', commit, leftOut });
    this.#saved = { commit, leftOut };
  }

  async #hasChanged(): Promise<boolean> {
    const { path } = this.#workspace ?? {};
    if (path === undefined || this.#unsaved !== undefined) return true;
    this.#tree ??= new TreeState(path);
    return this.#tree.hasChanged();
  }

  get #given(): Order {
    if (this.#order === undefined) throw new Error('there is no order yet');
    return this.#order;
  }

  get #base(): string {
    return this.#given.base;
  }

  get #openRun(): OpenRun {
    if (this.#open === undefined) throw new Error('there is no order yet');
    return this.#open;
  }
}

function placedTaskErrorSentence(error: unknown): string {
  if (error instanceof DroverError) return describe(error.failure);
  return error instanceof Error ? error.message : String(error);
}
