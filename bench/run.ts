// Cost of a whole run: eight workers with twenty steps each, planned, isolated, merged and delivered. A bare process
// that runs eight such loops and does nothing else is the comparison. The run is measured twice: without a sandbox,
// like the bare process, and with every command in the sandbox.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startRehearsal } from '@drover/rehearsal/server';
import type { AgentScript, Answer, Script } from '@drover/rehearsal/script';
import { newFolder } from './folder.ts';

const WORKERS = 8;
const STEPS = 20;
const TIMES = 7;
const WALL_AIM = 3;
const MEMORY_AIM_MB = 350;
const LOOK_MS = 50;

const root = join(import.meta.dirname, '..');
const names = Array.from({ length: WORKERS }, (_, at) => `t${at + 1}`);
const shell: Answer = { calls: [{ name: 'shell', args: { command: 'true' } }] };
const many = Array.from({ length: STEPS - 2 }, () => shell);

const script: Script = {
  order: 'conversation',
  answers: [
    { calls: [{ name: 'submit_plan', args: { tasks: names.map((id) => ({ id, title: `do ${id}`, prompt: id })) } }] },
    { text: 'done' },
  ],
  agents: {
    ...Object.fromEntries(
      names.map((id): [string, AgentScript] => [id, { assigned: `Your task is ${id}:`, answers: work(id) }]),
    ),
    ...Object.fromEntries(
      names.map((_, at): [string, AgentScript] => [
        `bare-${at + 1}`,
        { answers: [...many, shell, shell, { text: 'done' }] },
      ]),
    ),
  },
};

function work(id: string): readonly Answer[] {
  const write: Answer = { calls: [{ name: 'write', args: { path: `${id}.txt`, content: `${id}\n` } }] };
  return [...many, write, { calls: [{ name: 'submit_result', args: { summary: id } }] }];
}

type Program = 'bare' | 'drover' | 'contained';

/** The lines to print. */
export async function lines(): Promise<readonly string[]> {
  const wall: Record<Program, number[]> = { bare: [], drover: [], contained: [] };
  for (let n = 0; n <= TIMES; n++) {
    for (const program of ['bare', 'drover', 'contained'] as const) {
      const wallMs = await measured(program, timed);
      // The first run of each kind warms the disk and the compile cache.
      if (n > 0) wall[program].push(wallMs);
    }
  }
  // Memory is measured in a run of its own, because reading it takes time.
  const [bareMb, droverMb] = [await measured('bare', watched), await measured('drover', watched)];
  const [bareMs, droverMs, containedMs] = [median(wall.bare), median(wall.drover), median(wall.contained)];
  const what = `${WORKERS} workers x ${STEPS} steps`;
  return [
    `${what}, wall: bare ${Math.round(bareMs)} ms, drover ${Math.round(droverMs)} ms: ${(droverMs / bareMs).toFixed(2)}x (aim ${WALL_AIM}x)`,
    `${what} in the sandbox, wall: ${Math.round(containedMs)} ms: ${(containedMs / bareMs).toFixed(2)}x of bare, ${(containedMs / droverMs).toFixed(2)}x of drover in the open`,
    `${what}, memory at most: bare ${Math.round(bareMb)} MB, drover ${Math.round(droverMb)} MB (aim ${MEMORY_AIM_MB} MB)`,
  ];
}

const DROVER = [
  join(root, 'dist', 'drover.cjs'),
  'run',
  'go',
  '--json',
  '--yes',
  '--model=anthropic/any',
  `--workers=${WORKERS}`,
];

const PROGRAMS: Readonly<Record<Program, readonly string[]>> = {
  bare: [join(root, 'bench', 'bare', 'herd.mjs')],
  drover: [...DROVER, '--sandbox=off'],
  contained: [...DROVER, '--sandbox=auto'],
};

// The sandbox probe is cached between runs, as on a user's machine.
const probed = join(newFolder(), 'sandbox');

/** One measured value of a run, from its start to its end. */
async function measured(program: Program, figure: (child: ChildProcess) => Promise<number>): Promise<number> {
  const server = await startRehearsal(script);
  const folder = newFolder();
  const cwd = repositoryIn(folder);
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const own = {
    HOME: folder,
    DROVER_HOME: join(folder, 'state'),
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: 'x',
  };
  if (program === 'contained' && existsSync(probed))
    cpSync(probed, join(own.DROVER_HOME, 'sandbox'), { recursive: true });
  try {
    const child = spawn(process.execPath, PROGRAMS[program], {
      cwd,
      env: { ...env, ...own },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const ended = await figure(child);
    if (child.exitCode !== 0) throw new Error(`${program} ended with ${child.exitCode}`);
    if (program === 'contained') cpSync(join(own.DROVER_HOME, 'sandbox'), probed, { recursive: true });
    return ended;
  } finally {
    await server.close();
  }
}

async function timed(child: ChildProcess): Promise<number> {
  const begun = performance.now();
  await once(child, 'close');
  return performance.now() - begun;
}

async function watched(child: ChildProcess): Promise<number> {
  let memoryMb = 0;
  const look = setInterval(() => (memoryMb = Math.max(memoryMb, memoryOf(child.pid ?? 0))), LOOK_MS);
  await once(child, 'close');
  clearInterval(look);
  return memoryMb;
}

function repositoryIn(folder: string): string {
  const top = join(folder, 'project');
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: top });
  mkdirSync(top);
  git('init', '--quiet');
  for (let n = 0; n < 50; n++) writeFileSync(join(top, `file-${n}.txt`), `${n}\n`.repeat(100));
  git('add', '.');
  git('commit', '--quiet', '-m', 'first');
  return top;
}

/** Memory of the process and its descendants; 0 if the system does not report it. */
function memoryOf(pid: number): number {
  try {
    // Shared pages count once: a child that was just forked still shares all pages of its parent.
    const memory = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const own = Number(/^Pss:\s+(\d+)/m.exec(memory)?.[1] ?? 0) / 1024;
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim().split(' ').filter(Boolean),
    );
    return children.reduce((sum, each) => sum + memoryOf(Number(each)), own);
  } catch (error) {
    // The process has ended meanwhile.
    if (error instanceof Error && 'code' in error) return 0;
    throw error;
  }
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? 0;
}
