// Cost of one agent, compared with a bare Node program that does the same with fetch alone.
//
// Absolute times depend on the machine; the ratios hold. The programs run alternately against the same server, and
// the median is shown.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { startRehearsal, type Rehearsal } from '@drover/rehearsal/server';
import type { Script } from '@drover/rehearsal/script';
import { newFolder } from './folder.ts';

const root = join(import.meta.dirname, '..');
const bundle = join(root, 'dist', 'drover.cjs');
const programs = {
  bare: [join(root, 'bench', 'bare', 'agent.mjs'), 'go'],
  drover: [bundle, 'exec', '--model', 'anthropic/any', '--json', '--yes', 'go'],
} as const;
type Program = keyof typeof programs;

type Run = {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly firstRequestMs: number;
  readonly stepMs: number;
};

/** The lines to print. */
export async function lines(): Promise<readonly string[]> {
  const rows = [
    await compare(
      'cold start to first request',
      'ms',
      2,
      15,
      { answers: [{ text: 'hi' }] },
      ({ firstRequestMs }) => firstRequestMs,
    ),
    await compare('added per step with a shell call', 'ms', 2, 5, steps(60), ({ stepMs }) => stepMs),
    ...(await streaming()),
  ];
  return rows.map(told);
}

function steps(count: number): Script {
  const calls = [{ name: 'shell', args: { command: 'true' } }];
  return { answers: [...Array.from({ length: count }, () => ({ calls })), { text: 'done' }] };
}

async function streaming(): Promise<Row[]> {
  const script: Script = { answers: [{ text: { repeat: 'word ', times: 200_000 } }], chunkChars: 5 };
  const runs = await measure(script, 3);
  return [
    row('200,000-token answer, CPU', 'ms', 3, runs, ({ cpuMs }) => cpuMs),
    row('200,000-token answer, wall', 'ms', 3, runs, ({ wallMs }) => wallMs),
  ];
}

type Row = {
  readonly what: string;
  readonly unit: string;
  readonly aim: number;
  readonly bare: number;
  readonly drover: number;
};
type Runs = Readonly<Record<Program, readonly Run[]>>;

async function compare(
  what: string,
  unit: string,
  aim: number,
  times: number,
  script: Script,
  figure: (run: Run) => number,
): Promise<Row> {
  return row(what, unit, aim, await measure(script, times), figure);
}

function row(what: string, unit: string, aim: number, runs: Runs, figure: (run: Run) => number): Row {
  return { what, unit, aim, bare: median(runs.bare.map(figure)), drover: median(runs.drover.map(figure)) };
}

async function measure(script: Script, times: number): Promise<Runs> {
  const runs: Record<Program, Run[]> = { bare: [], drover: [] };
  for (let n = 0; n <= times; n++) {
    for (const program of ['bare', 'drover'] as const) {
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
  try {
    const begun = Date.now();
    const cpuMs = await runTimed(program, server, home);
    const wallMs = Date.now() - begun;
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
    cwd: home,
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

function told({ what, unit, aim, bare, drover }: Row): string {
  const ratio = drover / bare;
  const verdict = ratio <= aim ? 'ok' : 'OVER';
  return `${what.padEnd(36)} bare ${bare.toFixed(1).padStart(8)} ${unit}   drover ${drover.toFixed(1).padStart(8)} ${unit}   ${ratio.toFixed(2)}x (aim ${aim}x) ${verdict}`;
}
