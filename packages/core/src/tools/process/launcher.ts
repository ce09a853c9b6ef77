// The launcher: a small process that starts processes for a big one. Both ends of the wire between them.
//
// WHY
//   Starting a process copies the page tables of whoever starts it, and a run with many threads has many:
//   milliseconds for each command. The launcher has few, and is started while its owner is still small.
//
// THE WIRE
//   A socket in a folder of the owner's. Every thread has one connection for lines of JSON: what to start goes
//   over, its process id, and then how it ended, come back. Each pipe of a process is a connection too. Its
//   first line says whose it is; then the process itself gets it, so that what it writes goes straight to the
//   thread, and nothing is read that the thread doesn't want yet.
//
// WHO MAY ASK
//   The first line of every connection carries a secret that the owner gave the launcher on its standard input. A
//   connection without it is closed, and nothing is started for it.
//
// WHO DIES FIRST
//   The owner: the launcher ends with it, and what it had started is left as it is. A thread: what it had
//   started, or was about to, is ended. The launcher: whoever waits for a process is told so, and from then
//   on threads start their processes themselves, as they do where there is none.

import { type ChildProcess, spawn } from 'node:child_process';
import { timingSafeEqual } from 'node:crypto';
import { closeSync, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { threadId } from 'node:worker_threads';

// Long enough for a machine that is overloaded; one that is silent for longer is taken for lost.
const REPLY_MS_MAX = 10_000;
// An owner that has died takes its threads along; the launcher has gone with it before this is over.
const THREAD_LOST_MS = 50;
const CONNECTIONS_WAITING_MAX = 1_024;
const REPORT_CHARS_MAX = 4_096;
const SECRET_CHARS_MAX = 256;

/** Where a launcher listens, and what it wants to hear first. */
export type LauncherAddress = { readonly path: string; readonly secret: string };

export type ProcessSpec = {
  readonly file: string;
  /** What it is called, where that isn't the file. */
  readonly argv0?: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly detached: boolean; // in a group and a session of its own
  /** What it writes to stderr may come with what it writes to stdout. */
  readonly together?: boolean;
  /** Opened for reading as descriptor 3 and those that follow. */
  readonly files?: readonly string[];
  /** What it writes to the descriptor behind those comes with its end. */
  readonly report?: boolean;
};

/** A promise must not reject. */
export type ProcessInput = string | Buffer | Promise<string>;

export type ProcessEnd = {
  readonly exitCode?: number;
  readonly signal?: NodeJS.Signals;
  readonly report?: string;
};

export type StartedProcess = {
  readonly pid: number;
  readonly stdout: Readable;
  readonly stderr?: Readable; // absent where it comes with stdout
  /** Rejects with LauncherLost where nobody can tell. */
  readonly ended: Promise<ProcessEnd>;
};

type Request = ProcessSpec & { readonly id: string; readonly pipes: readonly number[] };
type Hello = { readonly secret: string };
type Pipe = Hello & { readonly pipe: string };
type Reply = { readonly id: string } & (
  | { readonly pid: number }
  | { readonly refused: { readonly code: string; readonly message: string } }
  | { readonly end: ProcessEnd }
);

/** What becomes of a process is not known, since the launcher is gone. */
export class LauncherLost extends Error {
  override readonly name = 'LauncherLost';
}

type Open = {
  readonly started: PromiseWithResolvers<number>;
  readonly ended: PromiseWithResolvers<ProcessEnd>;
};

/** A thread's end. */
export class Launcher {
  readonly #address: LauncherAddress;
  readonly #replyMs: number;
  readonly #open = new Map<string, Open>();
  #line: Socket | undefined;
  #lost = false;
  #count = 0;

  constructor(address: LauncherAddress, { replyMs }: { readonly replyMs: number } = { replyMs: REPLY_MS_MAX }) {
    this.#address = address;
    this.#replyMs = replyMs;
  }

  /** Undefined where nothing was started, and the caller has to do it himself. */
  async start(spec: ProcessSpec, input: ProcessInput | undefined): Promise<StartedProcess | undefined> {
    const line = await this.#connected();
    if (line === undefined) return undefined;
    const id = `${threadId}.${this.#count++}`;
    const numbers = [1, ...(spec.together === true ? [] : [2]), ...(input === undefined ? [] : [0])];
    const pipes = await Promise.all(numbers.map((number) => connected(this.#address, { pipe: `${id}/${number}` })));
    const [stdout, stderr, stdin] = [1, 2, 0].map((number) => pipes[numbers.indexOf(number)]);
    if (stdout === undefined || pipes.includes(undefined) || line.destroyed) {
      for (const pipe of pipes) pipe?.destroy();
      return undefined;
    }
    const call: Open = { started: Promise.withResolvers(), ended: Promise.withResolvers() };
    // Whoever waits hears of it; one that has stopped waiting need not.
    call.ended.promise.catch(() => undefined);
    this.#open.set(id, call);
    line.ref();
    line.write(`${JSON.stringify({ ...spec, id, pipes: numbers } satisfies Request)}\n`);
    const late = setTimeout(() => line.destroy(), this.#replyMs);
    try {
      const pid = await call.started.promise;
      if (stdin !== undefined) give(stdin, input ?? '', call.ended.promise);
      return { pid, stdout, ...(stderr !== undefined && { stderr }), ended: call.ended.promise };
    } catch (error) {
      for (const pipe of pipes) pipe?.destroy();
      throw error;
    } finally {
      clearTimeout(late);
    }
  }

  close(): void {
    this.#line?.destroy();
  }

  // One that is not there yet is tried again with the next process; one that was lost is not.
  async #connected(): Promise<Socket | undefined> {
    if (this.#lost) return undefined;
    if (this.#line !== undefined) return this.#line;
    const line = await connected(this.#address);
    if (line === undefined || this.#line !== undefined) {
      line?.destroy();
      return this.#line;
    }
    this.#line = line;
    line.unref();
    readLines(line, (text) => this.#hear(JSON.parse(text) as Reply));
    line.once('close', () => this.#lose());
    return line;
  }

  #hear(reply: Reply): void {
    const call = this.#open.get(reply.id);
    if (call === undefined) return;
    if ('pid' in reply) return call.started.resolve(reply.pid);
    if ('end' in reply) call.ended.resolve(reply.end);
    else call.started.reject(Object.assign(new Error(reply.refused.message), { code: reply.refused.code }));
    this.#open.delete(reply.id);
    if (this.#open.size === 0) this.#line?.unref();
  }

  #lose(): void {
    this.#lost = true;
    const error = new LauncherLost('the process that starts commands was lost');
    for (const { started, ended } of this.#open.values()) {
      started.reject(error);
      ended.reject(error);
    }
    this.#open.clear();
  }
}

/** The launcher's end. The owner's first line is the secret; the owner is there for as long as `owner` is open. */
export function serveLaunches(path: string, owner: Socket, exit: () => void): void {
  const end = () => {
    rmSync(dirname(path), { recursive: true, force: true });
    exit();
  };
  let server: Server | undefined;
  readLines(owner, (secret) => {
    if (server !== undefined) return;
    const launches = new Launches(secret);
    server = createServer((connection) => launches.welcome(connection));
    server.once('error', end);
    server.listen({ path, backlog: CONNECTIONS_WAITING_MAX });
  });
  owner.on('error', end);
  owner.once('close', end);
}

class Launches {
  readonly #pipes = new Map<string, Socket>();
  readonly #waiting = new Map<string, () => void>(); // for pipes, by the process
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  welcome(connection: Socket): void {
    const running = new Set<ChildProcess>();
    connection.on('error', () => connection.destroy());
    connection.once('close', () => {
      if (running.size > 0) setTimeout(() => endGroups(running), THREAD_LOST_MS);
    });
    let isKnown = false;
    readLines(connection, (text) => {
      if (!isKnown) {
        const hello = helloIn(text);
        isKnown = hello !== undefined && isSame(hello.secret, this.#secret);
        if (!isKnown) connection.destroy();
        else if (hello !== undefined && 'pipe' in hello) this.#keep(hello.pipe, connection);
        return;
      }
      const asked = JSON.parse(text) as Request;
      const begin = () => this.#begin(asked, connection, running);
      this.#waiting.set(asked.id, begin);
      // The owner's end, or the thread's, may be there already, and then nothing is to be started.
      setImmediate(begin);
    });
  }

  #keep(name: string, connection: Socket): void {
    this.#pipes.set(name, connection);
    connection.once('close', () => this.#pipes.delete(name));
    this.#waiting.get(name.slice(0, name.indexOf('/')))?.();
  }

  #begin(request: Request, line: Socket, running: Set<ChildProcess>): void {
    const { id, pipes: numbers } = request;
    const pipes = numbers.map((number) => this.#pipes.get(`${id}/${number}`)).filter((pipe) => pipe !== undefined);
    if (!this.#waiting.has(id) || (pipes.length < numbers.length && !line.destroyed)) return;
    this.#waiting.delete(id);
    if (!line.readable || line.destroyed) return;
    const tell = (reply: Reply) => line.write(`${JSON.stringify(reply)}\n`);
    try {
      using files = openFiles(request.files ?? []);
      const [stdout, stderr = stdout, stdin = 'ignore'] = [1, 2, 0].map((number) => pipes[numbers.indexOf(number)]);
      const child = spawn(request.file, request.args, {
        argv0: request.argv0,
        cwd: request.cwd,
        env: request.env,
        detached: request.detached,
        stdio: [stdin, stdout, stderr, ...files.descriptors, ...(request.report === true ? ['pipe' as const] : [])],
      });
      child.once('error', (error) => tell(refusal(id, error)));
      if (child.pid === undefined) return;
      tell({ id, pid: child.pid });
      running.add(child);
      child.once('exit', () => running.delete(child));
      void processEnd(child, request).then((end) => tell({ id, end }));
    } catch (error) {
      tell(refusal(id, error));
    } finally {
      // The process has them now.
      for (const pipe of pipes) pipe.destroy();
    }
  }
}

/** Opened for a process that is about to start, and closed here when it has them. Throws what opening does. */
export function openFiles(paths: readonly string[]): Disposable & { readonly descriptors: readonly number[] } {
  const descriptors = paths.map((path) => openSync(path, 'r'));
  return { descriptors, [Symbol.dispose]: () => descriptors.forEach((each) => closeSync(each)) };
}

/** How a process ended, with what it reported, where it was to report. */
export async function processEnd(
  child: ChildProcess,
  { files = [], report }: Pick<ProcessSpec, 'files' | 'report'>,
): Promise<ProcessEnd> {
  const pipe = report === true ? child.stdio[3 + files.length] : undefined;
  const told = pipe instanceof Socket ? reportFrom(pipe) : undefined;
  const end = await new Promise<ProcessEnd>((resolve) => {
    child.once('exit', (exitCode, signal) => {
      resolve({ ...(exitCode !== null && { exitCode }), ...(signal !== null && { signal }) });
    });
  });
  return told === undefined ? end : { ...end, report: await told };
}

function reportFrom(pipe: Socket): Promise<string> {
  let told = '';
  pipe.setEncoding('utf8');
  pipe.on('data', (text: string) => void (told = (told + text).slice(0, REPORT_CHARS_MAX)));
  // A pipe that breaks is closed.
  pipe.on('error', () => undefined);
  return new Promise((resolve) => {
    pipe.once('close', () => resolve(told));
  });
}

function helloIn(text: string): Hello | Pipe | undefined {
  try {
    const hello = JSON.parse(text) as Partial<Pipe> | null;
    return typeof hello?.secret === 'string' ? (hello as Hello | Pipe) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isSame(given: string, secret: string): boolean {
  const [a, b] = [given, secret].map((text) => Buffer.from(text.slice(0, SECRET_CHARS_MAX).padEnd(SECRET_CHARS_MAX)));
  return a !== undefined && b !== undefined && a.length === b.length && secret !== '' && timingSafeEqual(a, b);
}

function refusal(id: string, error: unknown): Reply {
  const message = error instanceof Error ? error.message : String(error);
  return { id, refused: { code: error instanceof Error && 'code' in error ? String(error.code) : message, message } };
}

function endGroups(children: ReadonlySet<ChildProcess>): void {
  for (const { pid } of children) {
    for (const id of pid === undefined ? [] : [-pid, pid]) {
      try {
        process.kill(id, 'SIGKILL');
      } catch (error) {
        // It has no group of its own, or has ended.
        if (!(error instanceof Error && 'code' in error)) throw error;
      }
    }
  }
}

/** Undefined where nobody listens. */
function connected(
  { path, secret }: LauncherAddress,
  first: { readonly pipe?: string } = {},
): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('error', () => resolve(undefined));
    socket.once('connect', () => {
      // What breaks later is heard of by its close.
      socket.on('error', () => undefined);
      resolve(socket);
    });
    socket.write(`${JSON.stringify({ ...first, secret })}\n`);
  });
}

function give(stdin: Socket, input: ProcessInput, ended: Promise<unknown>): void {
  stdin.resume();
  endWith(stdin, input);
  const close = () => stdin.destroy();
  ended.then(close, close);
}

export function endWith(stdin: Writable, input: ProcessInput): void {
  if (input instanceof Promise) void input.then((text) => stdin.end(text));
  else stdin.end(input);
}

function readLines(socket: Socket, onLine: (text: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
}
