// Child processes: each runs in its own process group and is ended, with all its descendants, when its call ends.
//
// Guarantees
//   1. A child ends by itself, by timeout or by abort. On timeout and abort, and if descendants outlive it, all its
//      processes get TERM and, after a grace period, KILL.
//   2. A grandchild that keeps the pipes open cannot block the call: silent pipes are closed.
//   3. A child that reads stdin cannot block the call: without `input`, its stdin is empty.
//
// Uses Node's spawn without a library, because starting a process is most of the cost of a small call.

import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { ToolError } from '../../errors.ts';
import { LauncherLost, type ProcessEnd, type ProcessInput, type ProcessSpec, type StartedProcess } from './launcher.ts';
import { startProcess } from './start.ts';
import { endOrphanProcesses, MARK, markedProcesses, processMarkOf, ProcessTree, sendSignalToProcess } from './tree.ts';
import { pause } from '../../promises.ts';

// Time between TERM and KILL. Short, because a cancel must be quick.
const TERM_GRACE_MS = 1_000;
const KILL_ROUNDS_MAX = 20;
const LOOK_AGAIN_FIRST_MS = 5;
const LOOK_AGAIN_LAST_MS = 100;
// Limits after the process has ended: how long its pipes may stay open, and stay silent.
const PIPES_OPEN_MS = 100;
const PIPES_SILENT_MS = 250;
const PIPES_DRAIN_MS_MAX = 5_000;
// Time to wait for the exit code of a process that was ended.
const WORD_MS_MAX = 1_000;

/** A returned promise pauses the output until it settles; it must not reject. Do not use the chunk after that. */
export type OutputReader = (chunk: Buffer) => Promise<void> | undefined;

export type ChildStart = {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly callId: string;
  readonly files?: ProcessSpec['files'];
  readonly report?: ProcessSpec['report'];
  /** The process is a sandbox. Killing it kills all processes inside at once, so those get TERM first. */
  readonly contains?: boolean;
  /** Standard input, which may be a promise (default: empty). */
  readonly input?: ProcessInput;
};

export type ChildReaders = {
  readonly timeoutMs: number;
  readonly onStdout: OutputReader;
  /** Omit to merge stderr into stdout. */
  readonly onStderr?: OutputReader;
};

export type ChildSpec = ChildStart & ChildReaders;

/** A running process whose output has not been read yet. */
export type StartedChild = { readonly spec: ChildStart; readonly process: StartedProcess };

export type ChildEnd = {
  readonly endedBy: 'itself' | 'timeout' | 'abort';
  readonly exitCode?: number;
  readonly signal?: NodeJS.Signals;
  readonly durationMs: number;
  /** Number of processes that outlived the child and had to be ended. */
  readonly leftBehind: number;
  readonly report?: string;
};

/** Runs a process to its end. Throws ToolError if it can't be started. */
export async function runChildProcess(spec: ChildSpec, signal: AbortSignal): Promise<ChildEnd> {
  if (signal.aborted) throw new ToolError('interrupted before it was started');
  const startedAt = performance.now();
  const child = await startChildProcess(spec, spec.onStderr === undefined);
  const end = await attendChildProcess(child, spec, signal);
  return { ...end, durationMs: Math.round(performance.now() - startedAt) };
}

/** Reads a child's output and ends it on timeout or abort. Throws ToolError if its launcher is lost. */
export async function attendChildProcess(
  { spec, process: child }: StartedChild,
  readers: ChildReaders,
  signal: AbortSignal,
): Promise<ChildEnd> {
  const startedAt = performance.now();
  let end: ProcessEnd | undefined;
  const exited = child.ended.then((told) => void (end = told));
  const pipes = new Pipes(child, readers);
  const stop = stopRequestOfChild(readers.timeoutMs, signal);
  const tree = new ProcessTree(child.pid, spec.callId, spec.contains === true);

  try {
    await Promise.race([exited, stop.asked]);
    const endedBy = end === undefined ? stop.why() : 'itself';
    if (endedBy === 'itself') await pipes.closedWithin(PIPES_OPEN_MS);
    const isClean = endedBy === 'itself' && pipes.areClosed && !tree.groupMayLive;
    const ended = isClean ? 0 : await endAllProcessGroups(tree);
    await pipes.drain();
    if (end === undefined) await childSettledWithin(WORD_MS_MAX, exited);
    return {
      endedBy,
      ...end,
      durationMs: Math.round(performance.now() - startedAt),
      leftBehind: endedBy === 'itself' ? ended : 0,
    };
  } catch (error) {
    if (!(error instanceof LauncherLost)) throw error;
    await endAllProcessGroups(tree);
    await pipes.drain();
    throw childProcessLost(spec, error);
  } finally {
    stop.forget();
    groups.delete(child.pid);
  }
}

/** Kills the group of a child whose output is not being read. */
export function killChildProcess({ process: { pid, stdout, stderr } }: StartedChild): void {
  sendSignalToProcess(-pid, 'SIGKILL');
  stdout.destroy();
  stderr?.destroy();
  groups.delete(pid);
}

const groups = new Set<number>();

/** Returns the running process groups of this thread. */
export function runningProcessGroups(): readonly number[] {
  return [...groups];
}

/**
 * Sends a signal to all children, for a process that is about to exit. On Linux this includes children of other
 * threads and children that left their group.
 */
export function endAllChildProcesses(signal: NodeJS.Signals): void {
  for (const group of groups) sendSignalToProcess(-group, signal);
  // Scan twice, because a process that is just starting has no readable environment yet.
  for (let look = 0; look < 2; look++) for (const id of markedProcesses()) sendSignalToProcess(id, signal);
}

/** Starts a process. `together`: stderr may be merged into stdout. Throws ToolError if it can't be started. */
export async function startChildProcess(spec: ChildStart, together: boolean): Promise<StartedChild> {
  const { file, args, cwd, files, report, input } = spec;
  const env = { ...spec.env, [MARK]: processMarkOf(spec.callId) };
  try {
    const further = { ...(files && { files }), ...(report && { report }) };
    const started = await startProcess({ file, args, cwd, env, detached: true, together, ...further }, input);
    groups.add(started.pid);
    return { spec, process: started };
  } catch (error) {
    if (error instanceof LauncherLost) {
      // The launcher may have started it before it was lost.
      endOrphanProcesses(spec.callId);
      throw childProcessLost(spec, error);
    }
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new ToolError(`${file} could not be started in ${cwd}: ${why}`, { cause: error });
  }
}

function childProcessLost({ file }: ChildStart, cause: LauncherLost): ToolError {
  return new ToolError(`${cause.message}, and ${file} was ended before it was done`, { cause });
}

function stopRequestOfChild(timeoutMs: number, signal: AbortSignal) {
  const asked = Promise.withResolvers<void>();
  const timer = setTimeout(asked.resolve, timeoutMs);
  const onAbort = () => asked.resolve();
  signal.addEventListener('abort', onAbort, { once: true });
  // The abort may have come during the start of the process.
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

// Ends all processes of a tree. Returns how many were alive.
async function endAllProcessGroups(tree: ProcessTree): Promise<number> {
  let alive = tree.look();
  const count = alive.length;
  tree.signal(alive, 'SIGTERM');
  const deadline = performance.now() + TERM_GRACE_MS;
  for (let pauseMs = LOOK_AGAIN_FIRST_MS; alive.length > 0 && performance.now() < deadline;) {
    await delay(pauseMs);
    pauseMs = Math.min(2 * pauseMs, LOOK_AGAIN_LAST_MS);
    alive = tree.look();
  }
  // Repeat, because a process may fork between the scan and the kill.
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
    if (!this.areClosed) await childSettledWithin(ms, this.#closed.promise);
  }

  /** Reads the rest of the pipes, then closes them. */
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
        releaseChildOutput(chunk);
        return;
      }
      stream.pause();
      this.#held++;
      void wait.then(() => {
        releaseChildOutput(chunk);
        this.#held--;
        this.#lastChunkAt = performance.now();
        stream.resume();
      });
    });
    // A broken pipe is closed; the exit of the process is reported separately.
    stream.on('error', () => undefined);
    stream.once('close', () => {
      this.#open--;
      if (this.#open === 0) this.#closed.resolve();
    });
  }
}

async function childSettledWithin(ms: number, settled: Promise<void>): Promise<void> {
  const timer = new AbortController();
  const late = pause(ms, timer.signal);
  await Promise.race([settled, late]);
  timer.abort();
}

// Detaching frees a chunk at once; the garbage collector waits for tens of megabytes.
function releaseChildOutput({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
