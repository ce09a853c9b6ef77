// What a whole run costs: eight workers with twenty steps each, planned, isolated, merged and delivered, next
// to a bare process that runs eight such loops and does nothing else.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRehearsal } from '@drover/rehearsal/server';
import type { AgentScript, Answer, Script } from '@drover/rehearsal/script';

const WORKERS = 8;
const STEPS = 20;
const TIMES = 5;
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

type Measured = { readonly wallMs: number; readonly memoryMb: number };

/** Lines to print. */
export async function runLines(): Promise<readonly string[]> {
  const bare: Measured[] = [];
  const drover: Measured[] = [];
  for (let n = 0; n <= TIMES; n++) {
    const floor = await measured([join(root, 'bench', 'bare', 'herd.mjs')]);
    const whole = await measured([join(root, 'dist', 'drover.cjs'), ...RUN]);
    // The first of each warms the disk and the compile cache.
    if (n > 0) {
      bare.push(floor);
      drover.push(whole);
    }
  }
  const [floorMs, wholeMs] = [bare, drover].map((runs) => median(runs.map(({ wallMs }) => wallMs)));
  const memory = Math.max(...drover.map(({ memoryMb }) => memoryMb));
  const ratio = (wholeMs ?? 0) / (floorMs ?? 1);
  return [
    `${WORKERS} workers x ${STEPS} steps, wall: bare ${Math.round(floorMs ?? 0)} ms, drover ${Math.round(wholeMs ?? 0)} ms: ${ratio.toFixed(2)}x (aim ${WALL_AIM}x)`,
    `${WORKERS} workers x ${STEPS} steps, memory at most: bare ${Math.round(Math.max(...bare.map(({ memoryMb }) => memoryMb)))} MB, drover ${Math.round(memory)} MB (aim ${MEMORY_AIM_MB} MB)`,
  ];
}

const RUN = ['run', 'go', '--model', 'anthropic/any', '--workers', String(WORKERS), '--json', '--yes'];

async function measured(argv: readonly string[]): Promise<Measured> {
  const server = await startRehearsal(script);
  const folder = mkdtempSync(join(tmpdir(), 'drover-bench-'));
  try {
    return await timed(argv, repositoryIn(folder), { home: folder, url: server.url });
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
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

function timed(argv: readonly string[], cwd: string, { home, url }: { home: string; url: string }): Promise<Measured> {
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const begun = performance.now();
  const child = spawn(process.execPath, argv, {
    cwd,
    env: { ...env, HOME: home, DROVER_HOME: join(home, 'state'), ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'x' },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  let memoryMb = 0;
  const look = setInterval(() => (memoryMb = Math.max(memoryMb, memoryOf(child.pid ?? 0))), LOOK_MS);
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      clearInterval(look);
      if (code === 0) resolve({ wallMs: performance.now() - begun, memoryMb });
      else reject(new Error(`${argv.join(' ')} ended with ${code}`));
    });
  });
}

/** Of the process and all that it has started; 0 where the system doesn't tell. */
function memoryOf(pid: number): number {
  try {
    // What is shared counts once: a child that has just been forked still has all of its parent's pages.
    const memory = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    const own = Number(/^Pss:\s+(\d+)/m.exec(memory)?.[1] ?? 0) / 1024;
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim().split(' ').filter(Boolean),
    );
    return children.reduce((sum, each) => sum + memoryOf(Number(each)), own);
  } catch (error) {
    // It has ended meanwhile.
    if (error instanceof Error && 'code' in error) return 0;
    throw error;
  }
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? 0;
}

if (import.meta.main) for (const line of await runLines()) process.stdout.write(`${line}\n`);
