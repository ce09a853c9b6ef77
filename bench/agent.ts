// Cost of one agent, compared with a bare Node program that does the same with fetch alone.
//
// Absolute times depend on the machine; the ratios hold. The programs run alternately against the same server, and
// the median is shown.

import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startRehearsal, type Rehearsal } from '@drover/rehearsal/server';
import type { Script } from '@drover/rehearsal/script';
import { newFolder } from './folder.ts';

const root = join(import.meta.dirname, '..');
const exec = [join(root, 'dist', 'drover.cjs'), 'exec', '--model', 'anthropic/any', '--json', '--yes'];
const programs = {
  bare: [join(root, 'bench', 'bare', 'agent.mjs'), 'go'],
  drover: [...exec, '--sandbox=off', 'go'],
  contained: [...exec, '--sandbox=required', 'go'],
} as const;
type Program = keyof typeof programs;

type Run = {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly firstRequestMs: number;
  readonly stepMs: number;
};

// The sandbox is probed once on a machine, not at each start.
const probed = join(newFolder(), 'sandbox');

/** The lines to print. */
export async function lines(): Promise<readonly string[]> {
  const start = await measure({ answers: [{ text: 'hi' }] }, 15);
  const step = await measure(steps(60), 5);
  const answer = await measure({ answers: [{ text: { repeat: 'word ', times: 200_000 } }], chunkChars: 5 }, 3);
  return [
    row('cold start to first request', 1.4, start, ({ firstRequestMs }) => firstRequestMs),
    row('each step, with a shell call', 1.6, step, ({ stepMs }) => stepMs),
    row('200,000-token answer, CPU', 2.2, answer, ({ cpuMs }) => cpuMs),
    row('200,000-token answer, wall', 3, answer, ({ wallMs }) => wallMs),
  ];
}

function steps(count: number): Script {
  const calls = [{ name: 'shell', args: { command: 'true' } }];
  return { answers: [...Array.from({ length: count }, () => ({ calls })), { text: 'done' }] };
}

type Runs = Readonly<Record<Program, readonly Run[]>>;

/** One line: the floor, drover with commands in the open as the floor has them, and drover in its sandbox. */
function row(what: string, aim: number, runs: Runs, figure: (run: Run) => number): string {
  const [bare, drover, contained] = (['bare', 'drover', 'contained'] as const).map((each) =>
    median(runs[each].map(figure)),
  );
  const beside = (ms = Number.NaN) => `${ms.toFixed(1).padStart(7)} ms ${(ms / (bare ?? 0)).toFixed(2)}x`;
  const verdict = (drover ?? 0) / (bare ?? 0) <= aim ? 'met' : 'missed';
  return `${what.padEnd(30)} bare ${bare?.toFixed(1).padStart(7)} ms, drover ${beside(drover)} (aim ${aim}x, ${verdict}), in the sandbox ${beside(contained)}`;
}

async function measure(script: Script, times: number): Promise<Runs> {
  const runs: Record<Program, Run[]> = { bare: [], drover: [], contained: [] };
  for (let n = 0; n <= times; n++) {
    for (const program of ['bare', 'drover', 'contained'] as const) {
      const run = await measureOnce(program, script);
      // The first run of each program warms the disk and the compile cache.
      if (n > 0) runs[program].push(run);
    }
  }
  return runs;
}

async function measureOnce(program: Program, script: Script): Promise<Run> {
  const server = await startRehearsal(script);
  const home = newFolder();
  mkdirSync(join(home, 'project'));
  if (existsSync(probed)) cpSync(probed, join(home, 'state', 'sandbox'), { recursive: true });
  try {
    const begun = Date.now();
    const cpuMs = await runTimed(program, server, home);
    const wallMs = Date.now() - begun;
    if (program === 'contained') cpSync(join(home, 'state', 'sandbox'), probed, { recursive: true });
    const [first, last] = [server.requests.at(0), server.requests.at(-1)];
    if (first === undefined || last === undefined) throw new Error(`${program} sent no request`);
    const stepMs = server.requests.length > 1 ? (last.at - first.at) / (server.requests.length - 1) : 0;
    return { wallMs, cpuMs, firstRequestMs: first.at - begun, stepMs };
  } finally {
    await server.close();
  }
}

/** The CPU time of the whole process tree, by the shell's own clock. */
function runTimed(program: Program, server: Rehearsal, home: string): Promise<number> {
  // A certificate bundle in the environment makes every Node start three times slower.
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const command = [process.execPath, ...programs[program]].map((word) => `'${word}'`).join(' ');
  const child = spawn('bash', ['-c', `TIMEFORMAT='%U %S'; time ${command} >/dev/null`], {
    cwd: join(home, 'project'),
    env: {
      ...env,
      HOME: home,
      DROVER_HOME: join(home, 'state'),
      ANTHROPIC_BASE_URL: server.url,
      ANTHROPIC_API_KEY: 'x',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const errors: Buffer[] = [];
  child.stderr.on('data', (data: Buffer) => errors.push(data));
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      const text = Buffer.concat(errors).toString().trim();
      const [user, system] = (text.split('\n').at(-1) ?? '').split(' ').map(Number);
      if (code === 0 && user !== undefined && system !== undefined) resolve((user + system) * 1_000);
      else reject(new Error(`${program} ended with ${code}: ${text}`));
    });
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
