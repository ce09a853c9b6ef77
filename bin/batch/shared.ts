// Resources that the runs of one batch over several repositories share.
//
// Guarantees
//   1. All runs together have at most as many workers as one run would have: one pool, one set of worker slots.
//   2. All runs together stay within the budget: they reserve from one pot. Only the process that holds the lock of
//      the pot spends from it. A resumed run first counts what the other runs have spent by their journals.
//   3. A stop reaches every run, and none begins after it.
//   4. Text is printed in the order of the list: the text of a run that is ahead of its turn is held back.

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import type { OpenLane } from '@drover/coordinator/admission/throttle';
import { Limiter } from '@drover/coordinator/run/dispatch';
import { runFolder, runJournalPath } from '@drover/coordinator/run/journal';
import { UsageError } from '@drover/core/errors';
import { Lock, journalLockOwner } from '@drover/core/journal/file/lock';
import { Budget, Pot } from '@drover/core/model/spending/budget';
import type { Cap } from '@drover/protocol/limits';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { openDiagnostics } from '../diagnostics.ts';
import { type Io, type Output, print, type StopCause, type StopListener } from '../io.ts';
import { checkJournalUsable } from '../history/journal.ts';
import { readRunState } from '../history/run.ts';
import { openLauncher } from '../run/open-launcher.ts';
import { providerLaneName, openProviderLane } from '../model/provider-lane.ts';
import { openRunWorkers, type Shared, type Team, type Threads } from '../run/running.ts';
import { stateFolder } from '../start/settings.ts';
import { readStoredBatch, type Within } from './history.ts';

const LOCK = 'budget.lock';

export type BatchShared = Shared &
  AsyncDisposable & {
    /** Streams for the runs; a stop of one stops all. */
    readonly io: Io;
    readonly stopped: () => StopCause | undefined;
  };

type Sharing = Threads & { readonly within: Within; readonly log: string | undefined };

export async function openBatchShared({ workers: count, threads, within, log }: Sharing, io: Io): Promise<BatchShared> {
  await using opening = new AsyncDisposableStack();
  const launcher = opening.adopt(count > 1 ? openLauncher(childProcessEnvironment(io.env)) : undefined, (each) =>
    each?.close(),
  );
  const stop = opening.adopt(
    shareBatchStop(io, () => launcher?.kill()),
    ({ close }) => close(),
  );
  const diagnostics = opening.adopt(await openDiagnostics(io, log), (each) => each.close());
  const { run, close } = await openRunWorkers({ workers: count, threads }, { diagnostics, launcher });
  opening.defer(close);
  const lanes = new Map<string, OpenLane>();
  opening.defer(() => lanes.forEach((lane) => lane.close()));
  const team: Team = {
    limit: new Limiter(count),
    // The batch closes them after the last run.
    workers: { run, warm: () => undefined, close: async () => undefined },
    laneOf: (model, provider) => {
      const name = providerLaneName(model, provider);
      const open = lanes.get(name) ?? openProviderLane(model, provider, count);
      lanes.set(name, open);
      return open.lane;
    },
  };
  const pot = within.payers === undefined ? undefined : new Pot();
  if (within.payers !== undefined)
    opening.adopt(lockBatchBudget(stateFolder(io), within.payers), (lock) => lock.release());
  const opened = opening.move();
  return {
    team,
    ...(pot !== undefined && { pot }),
    io: { ...io, onStop: stop.onStop },
    stopped: stop.cause,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function shareBatchStop(io: Io, atOnce: () => void) {
  const listeners = new Set<StopListener>();
  let first: StopCause | undefined;
  const close = io.onStop({
    stop: (cause) => {
      first ??= cause;
      for (const { stop } of listeners) stop(cause);
    },
    atOnce: () => {
      atOnce();
      for (const listener of listeners) listener.atOnce();
    },
  });
  const onStop: Io['onStop'] = (listener) => {
    listeners.add(listener);
    if (first !== undefined) listener.stop(first);
    return () => void listeners.delete(listener);
  };
  return { onStop, cause: () => first, close };
}

type Payer = { readonly home: string; readonly cap: Cap | undefined };

/** Budget pot of a run that is resumed alone. It includes what the other runs of its batch have spent. */
export async function openSharedOnBatchResume(id: string, { home, cap }: Payer): Promise<Shared & Disposable> {
  const payers = (await readStoredBatch(home, id))?.within?.payers;
  if (payers === undefined || cap === undefined) return { [Symbol.dispose]: () => undefined };
  const lock = lockBatchBudget(home, payers);
  try {
    const pot = new Pot();
    const budget = new Budget(cap, undefined, pot);
    for (const other of payers) {
      if (other === id || !existsSync(runJournalPath(home, other))) continue;
      const kept = await readRunState(home, other);
      checkJournalUsable(kept);
      if (kept.past !== undefined) budget.spend(kept.past.spent.total);
    }
    return { pot, [Symbol.dispose]: () => lock.release() };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function lockBatchBudget(home: string, payers: readonly string[]): Lock {
  const folder = runFolder(home, payers[0] ?? '');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, LOCK);
  const lock = Lock.take(path);
  if (lock !== undefined) return lock;
  throw new UsageError(
    `the repositories of this batch share one budget, and process ${journalLockOwner(path)} works on one of them; resume when it has ended`,
  );
}

/** Gives each run its own output, and prints the outputs in order. */
export class Turns {
  readonly #io: Io;
  readonly #outputs: readonly HeldOutput[];
  readonly #ended = new Set<number>();
  #turn = 0;

  /** Without outputs all runs print at once. */
  constructor(io: Io, outputs: number) {
    this.#io = io;
    this.#outputs = Array.from({ length: outputs }, () => new HeldOutput(io.stdout));
    void this.#outputs[0]?.pass();
  }

  ioOf(at: number): Io {
    const stdout = this.#outputs[at];
    // A run whose turn has come prints directly, so it can paint a dashboard.
    return stdout === undefined || at === this.#turn ? this.#io : { ...this.#io, stdout };
  }

  async end(at: number): Promise<void> {
    await this.#outputs[at]?.written();
    this.#ended.add(at);
    while (this.#ended.has(this.#turn)) {
      this.#turn += 1;
      await this.#outputs[this.#turn]?.pass();
    }
  }
}

class HeldOutput extends Writable {
  readonly isTTY: boolean;
  readonly columns?: number;
  readonly #to: Output;
  #held: string[] | undefined = [];

  constructor(to: Output) {
    super();
    this.#to = to;
    this.isTTY = to.isTTY === true;
    if (to.columns !== undefined) this.columns = to.columns;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const text = chunk.toString();
    if (this.#held === undefined) {
      void print(this.#to, text).then(done);
      return;
    }
    this.#held.push(text);
    done();
  }

  /** Resolves when all text is held or printed and no more can come. */
  written(): Promise<void> {
    return new Promise((resolve) => void this.end(resolve));
  }

  /** Prints the held text; later text is printed directly. */
  pass(): Promise<void> {
    const text = this.#held?.join('') ?? '';
    this.#held = undefined;
    return print(this.#to, text);
  }
}
