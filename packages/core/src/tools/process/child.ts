// Child processes: started in a group of their own, and gone, all of them, when their call is over.
//
// HOW ONE ENDS
//   By itself, by its time limit, or by the signal. In the last two cases, and where something it
//   started outlives it, everything that belongs to it gets TERM and, a grace later, KILL.
//
// WHAT CANNOT HANG IT
//   A grandchild that keeps the pipes open: they are read for as long as something comes, then
//   closed. A child that waits for input: its stdin is empty.
//
// Node's own spawn, without a library round it: starting a process is most of what a small call costs.

import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { ToolError } from '../../errors.ts';
import { LauncherLost, type ProcessEnd, type ProcessInput, type ProcessSpec, type StartedProcess } from './launcher.ts';
import { startProcess } from './start.ts';
import { endOrphans, MARK, markedProcesses, markOf, ProcessTree, sendSignal } from './tree.ts';

// Between TERM and KILL. Cancelling has to be quick.
const TERM_GRACE_MS = 1_000;
const KILL_ROUNDS_MAX = 20;
const LOOK_AGAIN_FIRST_MS = 5;
const LOOK_AGAIN_LAST_MS = 100;
// After the process itself has ended: how long its pipes may stay open, and be silent.
const PIPES_OPEN_MS = 100;
const PIPES_SILENT_MS = 250;
const PIPES_DRAIN_MS_MAX = 5_000;
// Between the last look at a process that was ended, and word of how it ended.
const WORD_MS_MAX = 1_000;

/** A promise holds the output back until it settles; it must not reject. The chunk is gone after that. */
export type OutputReader = (chunk: Buffer) => Promise<void> | undefined;

export type ChildStart = {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly callId: string;
  readonly files?: ProcessSpec['files'];
  readonly report?: ProcessSpec['report'];
  /** The process is a sandbox. Ending it ends everything inside at once, so what is inside is asked first. */
  readonly contains?: boolean;
  /** Its standard input, which may come later; absent: empty. */
  readonly input?: ProcessInput;
};

export type ChildReaders = {
  readonly timeoutMs: number;
  readonly onStdout: OutputReader;
  /** Omit to merge stderr into stdout. */
  readonly onStderr?: OutputReader;
};

export type ChildSpec = ChildStart & ChildReaders;

/** A process that runs, and whose output has not been read yet. */
export type StartedChild = { readonly spec: ChildStart; readonly process: StartedProcess };

export type ChildEnd = {
  readonly endedBy: 'itself' | 'timeout' | 'abort';
  readonly exitCode?: number;
  readonly signal?: NodeJS.Signals;
  readonly durationMs: number;
  /** How many processes outlived the one that was started, and had to be ended. */
  readonly leftBehind: number;
  readonly report?: string;
};

/** Throws ToolError where it can't be started. */
export async function runChild(spec: ChildSpec, signal: AbortSignal): Promise<ChildEnd> {
  if (signal.aborted) throw new ToolError('interrupted before it was started');
  const startedAt = performance.now();
  const child = await startChild(spec, spec.onStderr === undefined);
  const end = await attendChild(child, spec, signal);
  return { ...end, durationMs: Math.round(performance.now() - startedAt) };
}

/** Reads its output, and ends it when it is time. Throws ToolError where its launcher is lost. */
export async function attendChild(
  { spec, process: child }: StartedChild,
  readers: ChildReaders,
  signal: AbortSignal,
): Promise<ChildEnd> {
  const startedAt = performance.now();
  let end: ProcessEnd | undefined;
  const exited = child.ended.then((told) => void (end = told));
  const pipes = new Pipes(child, readers);
  const stop = stopRequest(readers.timeoutMs, signal);
  const tree = new ProcessTree(child.pid, spec.callId, spec.contains === true);

  try {
    await Promise.race([exited, stop.asked]);
    const endedBy = end === undefined ? stop.why() : 'itself';
    if (endedBy === 'itself') await pipes.closedWithin(PIPES_OPEN_MS);
    const isClean = endedBy === 'itself' && pipes.areClosed && !tree.groupMayLive;
    const ended = isClean ? 0 : await endAll(tree);
    await pipes.drain();
    if (end === undefined) await within(WORD_MS_MAX, exited);
    return {
      endedBy,
      ...end,
      durationMs: Math.round(performance.now() - startedAt),
      leftBehind: endedBy === 'itself' ? ended : 0,
    };
  } catch (error) {
    if (!(error instanceof LauncherLost)) throw error;
    await endAll(tree);
    await pipes.drain();
    throw lost(spec, error);
  } finally {
    stop.forget();
    groups.delete(child.pid);
  }
}

/** Ends a process that is not attended, with all it started. */
export function killChild({ process: { pid, stdout, stderr } }: StartedChild): void {
  sendSignal(-pid, 'SIGKILL');
  stdout.destroy();
  stderr?.destroy();
  groups.delete(pid);
}

const groups = new Set<number>();

/** The process groups that this thread has running. */
export function runningGroups(): readonly number[] {
  return [...groups];
}

/**
 * Sends a signal to all children at once, for a process that is about to end. On Linux it also finds
 * those of other threads, and those that left their group.
 */
export function endAllChildren(signal: NodeJS.Signals): void {
  for (const group of groups) sendSignal(-group, signal);
  // Twice, because one that is just being started has no environment to show.
  for (let look = 0; look < 2; look++) for (const id of markedProcesses()) sendSignal(id, signal);
}

/** `together`: stderr may come with stdout. Throws ToolError where it can't be started. */
export async function startChild(spec: ChildStart, together: boolean): Promise<StartedChild> {
  const { file, args, cwd, files, report, input } = spec;
  const env = { ...spec.env, [MARK]: markOf(spec.callId) };
  try {
    const further = { ...(files && { files }), ...(report && { report }) };
    const started = await startProcess({ file, args, cwd, env, detached: true, together, ...further }, input);
    groups.add(started.pid);
    return { spec, process: started };
  } catch (error) {
    if (error instanceof LauncherLost) {
      // It may have been started all the same.
      endOrphans(spec.callId);
      throw lost(spec, error);
    }
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new ToolError(`${file} could not be started in ${cwd}: ${why}`, { cause: error });
  }
}

function lost({ file }: ChildStart, cause: LauncherLost): ToolError {
  return new ToolError(`${cause.message}, and ${file} was ended before it was done`, { cause });
}

function stopRequest(timeoutMs: number, signal: AbortSignal) {
  const asked = Promise.withResolvers<void>();
  const timer = setTimeout(asked.resolve, timeoutMs);
  const onAbort = () => asked.resolve();
  signal.addEventListener('abort', onAbort, { once: true });
  // The signal may have come while the process was being started.
  if (signal.aborted) onAbort();
  return {
    asked: asked.promise,
    why: () => (signal.aborted ? ('abort' as const) : ('timeout' as const)),
    forget() {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    },
  };
}

// Returns how many there were.
async function endAll(tree: ProcessTree): Promise<number> {
  let alive = tree.look();
  const count = alive.length;
  tree.signal(alive, 'SIGTERM');
  const deadline = performance.now() + TERM_GRACE_MS;
  for (let pauseMs = LOOK_AGAIN_FIRST_MS; alive.length > 0 && performance.now() < deadline;) {
    await delay(pauseMs);
    pauseMs = Math.min(2 * pauseMs, LOOK_AGAIN_LAST_MS);
    alive = tree.look();
  }
  // More than once, because a process may fork between the look and the blow.
  for (let round = 0; alive.length > 0 && round < KILL_ROUNDS_MAX; round++) {
    tree.signal(alive, 'SIGKILL');
    await delay(LOOK_AGAIN_FIRST_MS);
    alive = tree.look();
  }
  return count;
}

class Pipes {
  readonly #streams: readonly Readable[];
  readonly #closed = Promise.withResolvers<void>();
  #open: number;
  #held = 0;
  #lastChunkAt = performance.now();

  constructor({ stdout, stderr }: StartedProcess, { onStdout, onStderr = onStdout }: ChildReaders) {
    this.#streams = stderr === undefined ? [stdout] : [stdout, stderr];
    this.#open = this.#streams.length;
    this.#read(stdout, onStdout);
    if (stderr !== undefined) this.#read(stderr, onStderr);
  }

  get areClosed(): boolean {
    return this.#open === 0;
  }

  async closedWithin(ms: number): Promise<void> {
    if (!this.areClosed) await within(ms, this.#closed.promise);
  }

  /** Reads what is still in the pipes, then closes them. */
  async drain(): Promise<void> {
    const deadline = performance.now() + PIPES_DRAIN_MS_MAX;
    this.#lastChunkAt = performance.now();
    while (!this.areClosed && performance.now() < deadline) {
      const silentMs = this.#held > 0 ? 0 : performance.now() - this.#lastChunkAt;
      if (silentMs >= PIPES_SILENT_MS) break;
      await this.closedWithin(PIPES_SILENT_MS - silentMs);
    }
    for (const stream of this.#streams) stream.destroy();
  }

  #read(stream: Readable, onChunk: OutputReader): void {
    stream.on('data', (chunk: Buffer) => {
      this.#lastChunkAt = performance.now();
      const wait = onChunk(chunk);
      if (wait === undefined) {
        release(chunk);
        return;
      }
      stream.pause();
      this.#held++;
      void wait.then(() => {
        release(chunk);
        this.#held--;
        this.#lastChunkAt = performance.now();
        stream.resume();
      });
    });
    // A pipe that breaks is closed, and its process will be heard of by its exit.
    stream.on('error', () => undefined);
    stream.once('close', () => {
      this.#open--;
      if (this.#open === 0) this.#closed.resolve();
    });
  }
}

async function within(ms: number, settled: Promise<void>): Promise<void> {
  const timer = new AbortController();
  const late = delay(ms, undefined, { signal: timer.signal }).catch(() => undefined);
  await Promise.race([settled, late]);
  timer.abort();
}

// The collector frees a chunk only after tens of megabytes of them; detaching frees it at once.
function release({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
