// One run of a program against a scripted model, in a repository of its own: how long it takes, and its memory.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { startRehearsal } from '@drover/rehearsal/server';
import type { Script } from '@drover/rehearsal/script';
import { newFolder } from '../folder.ts';

const LOOK_MS = 50;
const TICK_MS = 10; // of the kernel's clock of processes

export const root = join(import.meta.dirname, '..', '..');
/** Another bundle can be measured by the same bench, for example that of an older version. */
export const dist = process.env['DROVER_BENCH_DIST'] ?? join(root, 'dist');

export type Started = {
  readonly script: Script;
  readonly argv: readonly string[];
  readonly probe?: boolean; // it looks for a sandbox
  readonly files?: Readonly<Record<string, string>>;
};

// The sandbox probe is cached between runs, as on a user's machine.
const probed = join(newFolder(), 'sandbox');

/** One measured value of a run, from its start to its end. */
export async function measured<Figure>(
  { script, argv, probe = false, files = {} }: Started,
  figure: (child: ChildProcess) => Promise<Figure>,
): Promise<Figure> {
  const server = await startRehearsal(script);
  const folder = newFolder();
  const cwd = projectIn(folder, files);
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const own = {
    HOME: folder,
    DROVER_HOME: join(folder, 'state'),
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: 'x',
  };
  if (probe && existsSync(probed)) cpSync(probed, join(own.DROVER_HOME, 'sandbox'), { recursive: true });
  try {
    const child = spawn(process.execPath, argv, {
      cwd,
      env: { ...env, ...own },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const ended = await figure(child);
    if (child.exitCode !== 0) throw new Error(`${argv.join(' ')} ended with ${child.exitCode}`);
    if (probe) cpSync(join(own.DROVER_HOME, 'sandbox'), probed, { recursive: true });
    return ended;
  } finally {
    await server.close();
  }
}

/** Milliseconds. */
export async function timed(child: ChildProcess): Promise<number> {
  const begun = performance.now();
  await once(child, 'close');
  return performance.now() - begun;
}

/** Megabytes at most, of the process and all that it has started. */
export async function watched(child: ChildProcess): Promise<number> {
  let memoryMb = 0;
  const look = setInterval(() => (memoryMb = Math.max(memoryMb, memoryOf(child.pid ?? 0))), LOOK_MS);
  await once(child, 'close');
  clearInterval(look);
  return memoryMb;
}

/** Threads of the process at most. */
export async function counted(child: ChildProcess): Promise<number> {
  let threads = 0;
  const look = setInterval(() => (threads = Math.max(threads, threadsOf(child.pid ?? 0))), LOOK_MS);
  await once(child, 'close');
  clearInterval(look);
  return threads;
}

export function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? 0;
}

/** A repository of these files and fifty others. */
export function projectIn(folder: string, files: Readonly<Record<string, string>>): string {
  const top = join(folder, 'project');
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: top });
  mkdirSync(top);
  git('init', '--quiet');
  for (let n = 0; n < 50; n++) writeFileSync(join(top, `file-${n}.txt`), `${n}\n`.repeat(100));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(top, name)), { recursive: true });
    writeFileSync(join(top, name), content);
  }
  git('add', '.');
  git('commit', '--quiet', '-m', 'first');
  return top;
}

/** Memory of the process and its descendants; 0 if the system does not report it. */
function memoryOf(pid: number): number {
  return gone(() => {
    // Shared pages count once: a child that was just forked still shares all pages of its parent.
    const memory = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const own = Number(/^Pss:\s+(\d+)/m.exec(memory)?.[1] ?? 0) / 1024;
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim().split(' ').filter(Boolean),
    );
    return children.reduce((sum, each) => sum + memoryOf(Number(each)), own);
  });
}

/** Processor time of a process, without that of its children; 0 if it is gone. */
export function cpuMsOf(pid: number): number {
  return gone(() => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  });
}

function threadsOf(pid: number): number {
  return gone(() => readdirSync(`/proc/${pid}/task`).length);
}

/** 0 if the process has ended meanwhile. */
function gone(figure: () => number): number {
  try {
    return figure();
  } catch (error) {
    if (error instanceof Error && 'code' in error) return 0;
    throw error;
  }
}
