// A batch in a separate process: tests read its progress from the journal and its memory from the system, and kill it.

import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { RunDesk } from './run-desk.ts';

const LOOK_MS = 50;

export type Watched = {
  /** The exit code, or the signal that ended it. */
  readonly end: number | string;
  /** Memory in megabytes, by the number of finished tasks. */
  readonly sizes: ReadonlyMap<number, number>;
};

export type Watch = {
  readonly argv: readonly string[];
  /** Number of finished tasks at which it is killed; 0 for never. */
  readonly killAt: number;
  /** Numbers of finished tasks at which memory is measured. */
  readonly lookAt: readonly number[];
};

export function runIn({ home }: RunDesk): string | undefined {
  const runs = join(home, 'runs');
  return existsSync(runs) ? readdirSync(runs)[0] : undefined;
}

export async function watched(desk: RunDesk, { argv, killAt, lookAt }: Watch): Promise<Watched> {
  const env = { ...process.env, DROVER_HOME: desk.home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  const child = spawn(process.execPath, [resolve('bin/drover.ts'), ...argv], {
    cwd: desk.repository,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise<number | string>((done, failed) => {
    child.once('error', failed);
    child.once('close', (code, signal) => done(code ?? signal ?? ''));
  });
  const sizes = new Map<number, number>();
  const tail = new Tail(() => {
    const run = runIn(desk);
    return run === undefined ? undefined : join(desk.home, 'runs', run, 'journal.jsonl');
  });
  const look = setInterval(() => {
    const over = tail.tasksOver();
    for (const at of lookAt) if (over >= at && !sizes.has(at)) sizes.set(at, megabytesOf(child.pid));
    if (killAt > 0 && over >= killAt) child.kill('SIGKILL');
  }, LOOK_MS);
  try {
    return { end: await ended, sizes };
  } finally {
    clearInterval(look);
  }
}

/** Counts the finished tasks in a growing journal. */
class Tail {
  readonly #path: () => string | undefined;
  readonly #over = new Set<string>();
  #offset = 0;
  #rest = '';

  constructor(path: () => string | undefined) {
    this.#path = path;
  }

  tasksOver(): number {
    const path = this.#path();
    if (path === undefined || !existsSync(path)) return 0;
    const file = openSync(path, 'r');
    try {
      const buffer = Buffer.alloc(fstatSync(file).size - this.#offset);
      this.#offset += readSync(file, buffer, 0, buffer.length, this.#offset);
      const lines = (this.#rest + buffer.toString('latin1')).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.#take(line);
    } finally {
      closeSync(file);
    }
    return this.#over.size;
  }

  #take(line: string): void {
    const isEnd = /"type":"(merge_end|task_end)"/.exec(line);
    if (isEnd === null || line.includes('"again":true')) return;
    // A task with an unlanded commit is not finished.
    if (isEnd[1] === 'task_end' && line.includes('"status":"finished"') && line.includes('"commit":')) return;
    const [, task] = /"task":"([^"]+)"/.exec(line) ?? [];
    if (task !== undefined) this.#over.add(task);
  }
}

function megabytesOf(pid: number | undefined): number {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kilobytes) / 1_024);
}
