// One placement, at the coordinator: the line to the host that took it, and what happens on it.

import type { HostName } from '@drover/protocol/events';
import { setTimeout as delay } from 'node:timers/promises';
import { serialize } from 'node:v8';
import { turnFailureOfSignal } from '@drover/core/agent/limits';
import { handled } from '@drover/core/promises';
import type { Failure } from '@drover/protocol/failures';
import type { TaskOutcome } from '@drover/protocol/outcomes';
import type { TaskLink } from '@drover/core/task/link';
import type { Displaced, TaskSpec } from '@drover/core/task/task';
import { serveTaskWire } from '@drover/core/task/wire';
import type { GitPlace } from '@drover/coordinator/git/git';
import type { Frame, Line } from '../line/line.ts';
import type { FromHost, Order, ToHost } from '../messages.ts';
import { PackIntake, sendPackToHost } from '../packs.ts';
import { type LinePort, hostPortOverLine } from '../wire-port.ts';

const STOP_MS_MAX = 5_000;
const RELEASE_MS_MAX = 2_000;

/** The files of an attempt as its host last reported them. */
export type Checkpoint = { readonly commit: string; readonly leftOut: readonly string[] };

/** How work on a host ended: by itself, or because the host is lost or cannot carry on. */
export type HostEnd =
  | { readonly type: 'outcome'; readonly outcome: TaskOutcome | Displaced; readonly unsaved?: Failure }
  | { readonly type: 'lost'; readonly why: string };

export type PlacementOptions = {
  readonly host: HostName;
  readonly order: Order;
  readonly store: GitPlace;
  readonly open: (hear: (frame: Frame<FromHost>) => void, broken: (why: string) => void) => Line<FromHost, ToHost>;
  readonly drop: (line: Line<FromHost, ToHost>, why: string | undefined) => void;
  /** The host has reported files, and they are in the store. */
  readonly onCheckpoint: (checkpoint: Checkpoint) => void;
};

export class Placement {
  readonly host: HostName;
  readonly #options: PlacementOptions;
  readonly #line: Line<FromHost, ToHost>;
  readonly #ready = Promise.withResolvers<string>();
  readonly #lost = Promise.withResolvers<HostEnd>();
  #ended = Promise.withResolvers<HostEnd>();
  #port: LinePort | undefined;
  #intake: PackIntake | undefined;
  #turn: Promise<void> = Promise.resolve(); // frames are handled one after the other
  #why: string | undefined;
  #isOver = false;

  constructor(options: PlacementOptions) {
    this.#options = options;
    this.host = options.host;
    this.#line = options.open(
      (frame) => this.#hear(frame),
      (why) => this.break(why),
    );
    this.#line.send({ type: 'order', order: options.order });
  }

  get isLost(): boolean {
    return this.#why !== undefined;
  }

  /** The path of the workspace on the host. Rejects with the reason if there is none. */
  async ready(): Promise<string> {
    return this.#ready.promise;
  }

  async run(spec: TaskSpec, link: TaskLink, signal: AbortSignal): Promise<HostEnd> {
    if (this.#why !== undefined) return { type: 'lost', why: this.#why };
    this.#ended = Promise.withResolvers<HostEnd>();
    const port = hostPortOverLine((message) => this.#line.send({ type: 'wire', message }));
    this.#port = port;
    const served = serveTaskWire(port, link, {
      onBegin: () => undefined,
      onSign: () => undefined,
      onFell: () => undefined,
    });
    let grace: NodeJS.Timeout | undefined;
    const stop = () => {
      served.stop(turnFailureOfSignal(signal));
      grace = setTimeout(() => this.break(`it did not stop within ${STOP_MS_MAX / 1_000} s`), STOP_MS_MAX);
    };
    signal.addEventListener('abort', stop, { once: true });
    this.#line.send({ type: 'task' }, serialize(spec));
    if (signal.aborted) stop();
    try {
      return await Promise.race([this.#ended.promise, this.#lost.promise]);
    } finally {
      clearTimeout(grace);
      signal.removeEventListener('abort', stop);
      served.close('ignored');
      this.#port = undefined;
    }
  }

  /** Gives the workspace back. Frames that arrive later are ignored. */
  async release(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#line.send({ type: 'release' });
    await Promise.race([this.#line.drained(), delay(RELEASE_MS_MAX, undefined, { ref: false })]);
    this.#options.drop(this.#line, undefined);
  }

  /** The host is lost, or this placement is not wanted any more. */
  break(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#why = why;
    this.#intake?.abandon();
    handled(this.#ready.promise);
    this.#ready.reject(new Error(why));
    this.#lost.resolve({ type: 'lost', why });
    this.#options.drop(this.#line, why);
  }

  #hear(frame: Frame<FromHost>): void {
    // Messages of the wire wait for nothing, unless a checkpoint is on its way: its results come after it.
    this.#turn = this.#turn.then(() => this.#take(frame)).catch((error: unknown) => this.break(String(error)));
  }

  async #take({ body, blob }: Frame<FromHost>): Promise<void> {
    switch (body.type) {
      case 'refused':
      case 'given up':
        return this.break(body.why);
      case 'have':
        return this.#sendBase(body.commits);
      case 'ready':
        return this.#ready.resolve(body.workspace);
      case 'wire':
        return this.#port?.hear(body.message);
      case 'pack': {
        this.#intake ??= new PackIntake(this.#options.store);
        if (blob !== undefined) await this.#intake.take(blob);
        if (!body.last) return;
        await this.#intake.end();
        this.#intake = undefined;
        return;
      }
      case 'checkpoint':
        return this.#options.onCheckpoint({ commit: body.commit, leftOut: body.leftOut });
      case 'outcome':
        return this.#ended.resolve(body);
    }
  }

  async #sendBase(have: readonly string[]): Promise<void> {
    const { order, store } = this.#options;
    const commits = [order.base, ...(order.checkpoint === undefined ? [] : [order.checkpoint])];
    await sendPackToHost(store, { commits, have }, async (part, last) => {
      await this.#line.room();
      this.#line.send({ type: 'pack', last }, part);
    });
  }
}
