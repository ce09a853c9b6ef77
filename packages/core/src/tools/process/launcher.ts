// The launcher: a small process that starts processes for a large one. This file holds client and server.
//
// Purpose: starting a process copies the page tables of its parent. A run with many threads has large ones, which
// costs milliseconds per command. The launcher is started early, while its owner is still small.
//
// Protocol: a Unix socket in a folder of the owner. Each thread has one connection for lines of JSON: requests go out,
// process ids and exit codes come back. Each pipe of a process is a connection too. Its first line names the process,
// which then inherits the connection. So output goes straight to the thread, with its backpressure.
//
// Guarantees
//   1. The first line of every connection must hold a secret, which the owner writes to the launcher's stdin. A
//      connection without it is closed, and nothing is started.
//   2. The launcher exits when its owner exits. Processes it started are not touched.
//   3. Processes of a thread that is lost are killed.
//
// Failure: if the launcher is lost, waiting callers get LauncherLost. From then on, threads start processes directly.

import { type ChildProcess, spawn } from 'node:child_process';
import { timingSafeEqual } from 'node:crypto';
import { closeSync, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { threadId } from 'node:worker_threads';
import { handled } from '../../promises.ts';

// A launcher that does not reply in this time counts as lost. Long enough for an overloaded machine.
const REPLY_MS_MAX = 10_000;
// Delay before processes of a lost thread are killed. If the owner has exited, the launcher exits first.
const THREAD_LOST_MS = 50;
const CONNECTIONS_WAITING_MAX = 1_024;
const REPORT_CHARS_MAX = 4_096;
const SECRET_CHARS_MAX = 256;

/** The socket of a launcher, and the secret it expects. */
export type LauncherAddress = { readonly path: string; readonly secret: string };

export type ProcessSpec = {
  readonly file: string;
  /** Name of the process (default: `file`). */
  readonly argv0?: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly detached: boolean; // in a group and a session of its own
  /** Allows stderr to be merged into stdout. */
  readonly together?: boolean;
  /** Files to open for reading, as descriptors from 3 on. */
  readonly files?: readonly string[];
  /** Adds a descriptor after `files`. Its output is returned in `ProcessEnd`. */
  readonly report?: boolean;
};

/** Standard input. A promise must not reject. */
export type ProcessInput = string | Buffer | Promise<string>;

export type ProcessEnd = {
  readonly exitCode?: number;
  readonly signal?: NodeJS.Signals;
  readonly report?: string;
};

export type StartedProcess = {
  readonly pid: number;
  readonly stdout: Readable;
  readonly stderr?: Readable; // absent if merged into stdout
  /** Rejects with LauncherLost if the launcher is lost before the process ends. */
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

/** The launcher is lost, so the state of a process is unknown. */
export class LauncherLost extends Error {
  override readonly name = 'LauncherLost';
}

type Open = {
  readonly started: PromiseWithResolvers<number>;
  readonly ended: PromiseWithResolvers<ProcessEnd>;
};

/** The client, used by a thread. */
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

  /** Starts a process. Resolves to undefined if the launcher is not available; the caller then starts it directly. */
  async start(spec: ProcessSpec, input: ProcessInput | undefined): Promise<StartedProcess | undefined> {
    const line = await this.#connected();
    if (line === undefined) return undefined;
    const id = `${threadId}.${this.#count++}`;
    const numbers = [1, ...(spec.together === true ? [] : [2]), ...(input === undefined ? [] : [0])];
    const pipes = await Promise.all(
      numbers.map((number) => connectToLauncher(this.#address, { pipe: `${id}/${number}` })),
    );
    const [stdout, stderr, stdin] = [1, 2, 0].map((number) => pipes[numbers.indexOf(number)]);
    if (stdout === undefined || pipes.includes(undefined) || line.destroyed) {
      for (const pipe of pipes) pipe?.destroy();
      return undefined;
    }
    const call: Open = { started: Promise.withResolvers(), ended: Promise.withResolvers() };
    // Callers that await `ended` get the error. Without one, the rejection must not stay unhandled.
    handled(call.ended.promise);
    this.#open.set(id, call);
    line.ref();
    line.write(`${JSON.stringify({ ...spec, id, pipes: numbers } satisfies Request)}\n`);
    const late = setTimeout(() => line.destroy(), this.#replyMs);
    try {
      const pid = await call.started.promise;
      if (stdin !== undefined) giveLaunchedInput(stdin, input ?? '', call.ended.promise);
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

  // A launcher that does not listen yet is retried with the next process; a lost one is not.
  async #connected(): Promise<Socket | undefined> {
    if (this.#lost) return undefined;
    if (this.#line !== undefined) return this.#line;
    const line = await connectToLauncher(this.#address);
    if (line === undefined || this.#line !== undefined) {
      line?.destroy();
      return this.#line;
    }
    this.#line = line;
    line.unref();
    readLauncherLines(line, (text) => this.#hear(JSON.parse(text) as Reply));
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

/** The server. The owner writes the secret as first line to `owner`; the server exits when `owner` closes. */
export function serveProcessLaunches(path: string, owner: Socket, exit: () => void): void {
  const end = () => {
    rmSync(dirname(path), { recursive: true, force: true });
    exit();
  };
  let server: Server | undefined;
  readLauncherLines(owner, (secret) => {
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
  readonly #waiting = new Map<string, () => void>(); // requests that wait for their pipes, by id
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  welcome(connection: Socket): void {
    const running = new Set<ChildProcess>();
    connection.on('error', () => connection.destroy());
    connection.once('close', () => {
      if (running.size > 0) setTimeout(() => endLaunchedGroups(running), THREAD_LOST_MS);
    });
    let isKnown = false;
    readLauncherLines(connection, (text) => {
      if (!isKnown) {
        const hello = helloToLauncher(text);
        isKnown = hello !== undefined && isSameLauncherSecret(hello.secret, this.#secret);
        if (!isKnown) connection.destroy();
        else if (hello !== undefined && 'pipe' in hello) this.#keep(hello.pipe, connection);
        return;
      }
      const asked = JSON.parse(text) as Request;
      const begin = () => this.#begin(asked, connection, running);
      this.#waiting.set(asked.id, begin);
      // Defer: the owner or the thread may have closed already, and then nothing must be started.
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
      using files = openLauncherFiles(request.files ?? []);
      const [stdout, stderr = stdout, stdin = 'ignore'] = [1, 2, 0].map((number) => pipes[numbers.indexOf(number)]);
      const child = spawn(request.file, request.args, {
        argv0: request.argv0,
        cwd: request.cwd,
        env: request.env,
        detached: request.detached,
        stdio: [stdin, stdout, stderr, ...files.descriptors, ...(request.report === true ? ['pipe' as const] : [])],
      });
      child.once('error', (error) => tell(launcherRefusal(id, error)));
      if (child.pid === undefined) return;
      tell({ id, pid: child.pid });
      running.add(child);
      child.once('exit', () => running.delete(child));
      void launchedProcessEnd(child, request).then((end) => tell({ id, end }));
    } catch (error) {
      tell(launcherRefusal(id, error));
    } finally {
      // The process has inherited them.
      for (const pipe of pipes) pipe.destroy();
    }
  }
}

/** Opens files for a process to inherit. Dispose after the start to close them here. Throws the errors of open. */
export function openLauncherFiles(paths: readonly string[]): Disposable & { readonly descriptors: readonly number[] } {
  const descriptors = paths.map((path) => openSync(path, 'r'));
  return { descriptors, [Symbol.dispose]: () => descriptors.forEach((each) => closeSync(each)) };
}

/** Resolves to how a process ended, with its report if `report` is set. */
export async function launchedProcessEnd(
  child: ChildProcess,
  { files = [], report }: Pick<ProcessSpec, 'files' | 'report'>,
): Promise<ProcessEnd> {
  const pipe = report === true ? child.stdio[3 + files.length] : undefined;
  const told = pipe instanceof Socket ? readLauncherReport(pipe) : undefined;
  const end = await new Promise<ProcessEnd>((resolve) => {
    child.once('exit', (exitCode, signal) => {
      resolve({ ...(exitCode !== null && { exitCode }), ...(signal !== null && { signal }) });
    });
  });
  return told === undefined ? end : { ...end, report: await told };
}

function readLauncherReport(pipe: Socket): Promise<string> {
  let told = '';
  pipe.setEncoding('utf8');
  pipe.on('data', (text: string) => void (told = (told + text).slice(0, REPORT_CHARS_MAX)));
  // A broken pipe is closed, which ends the report.
  pipe.on('error', () => undefined);
  return new Promise((resolve) => {
    pipe.once('close', () => resolve(told));
  });
}

function helloToLauncher(text: string): Hello | Pipe | undefined {
  try {
    const hello = JSON.parse(text) as Partial<Pipe> | null;
    return typeof hello?.secret === 'string' ? (hello as Hello | Pipe) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isSameLauncherSecret(given: string, secret: string): boolean {
  const [a, b] = [given, secret].map((text) => Buffer.from(text.slice(0, SECRET_CHARS_MAX).padEnd(SECRET_CHARS_MAX)));
  return a !== undefined && b !== undefined && a.length === b.length && secret !== '' && timingSafeEqual(a, b);
}

function launcherRefusal(id: string, error: unknown): Reply {
  const message = error instanceof Error ? error.message : String(error);
  return { id, refused: { code: error instanceof Error && 'code' in error ? String(error.code) : message, message } };
}

function endLaunchedGroups(children: ReadonlySet<ChildProcess>): void {
  for (const { pid } of children) {
    for (const id of pid === undefined ? [] : [-pid, pid]) {
      try {
        process.kill(id, 'SIGKILL');
      } catch (error) {
        // The process has no group, or has ended.
        if (!(error instanceof Error && 'code' in error)) throw error;
      }
    }
  }
}

/** Connects to the launcher. Resolves to undefined if it does not listen. */
function connectToLauncher(
  { path, secret }: LauncherAddress,
  first: { readonly pipe?: string } = {},
): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('error', () => resolve(undefined));
    socket.once('connect', () => {
      // Later errors are handled by the close event.
      socket.on('error', () => undefined);
      resolve(socket);
    });
    socket.write(`${JSON.stringify({ ...first, secret })}\n`);
  });
}

function giveLaunchedInput(stdin: Socket, input: ProcessInput, ended: Promise<unknown>): void {
  stdin.resume();
  endWithLauncher(stdin, input);
  const close = () => stdin.destroy();
  ended.then(close, close);
}

export function endWithLauncher(stdin: Writable, input: ProcessInput): void {
  if (input instanceof Promise) void input.then((text) => stdin.end(text));
  else stdin.end(input);
}

function readLauncherLines(socket: Socket, onLine: (text: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
}
