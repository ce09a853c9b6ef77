// Comparison of drover with pi, codex and opencode, each at work on the same scripted answers. They are installed from
// npm into a temporary folder. A program that cannot be installed or run here has a line that says so.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startRehearsal } from '@drover/rehearsal/server';
import type { Answer, Script } from '@drover/rehearsal/script';
import { newFolder } from '../folder.ts';
import { median } from '../run/programs.ts';
import { type Peer, PEERS } from './programs.ts';

const TIMES = Number(process.env['DROVER_BENCH_TIMES'] ?? 3);
const STEPS = 50;
const TOKENS = 200_000;
const RUN_MS_MAX = 180_000;
const INSTALL_MS_MAX = 600_000;
const ERROR_CHARS = 160;

type Figures = { readonly startMs: number; readonly stepMs: number; readonly late: number; readonly answer: Answered };
type Answered = { readonly wallS: number; readonly cpuS: number; readonly mb: number };

/** Lines to print. */
export async function lines(): Promise<readonly string[]> {
  const bin = installed();
  const runs = new Map<string, Figures[]>();
  const failed = new Map<string, string>();
  for (let n = 0; n < TIMES; n++) {
    // In turns, so that what else the machine does meets all of them.
    for (const peer of PEERS) {
      if (failed.has(peer.name)) continue;
      try {
        if (peer.from !== undefined && bin.folder === undefined) throw new Error(`npm: ${bin.problem}`);
        const before = runs.get(peer.name) ?? [];
        runs.set(peer.name, [...before, await figuresOf(peer, bin.folder ?? '')]);
      } catch (error) {
        failed.set(peer.name, `cannot be measured here: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
  return [...table(runs), ...[...failed].map(([name, why]) => `${name} ${why}`)];
}

/** The folder of their programs, or why there is none. */
function installed(): { readonly folder?: string; readonly problem?: string } {
  const folder = newFolder();
  writeFileSync(join(folder, 'package.json'), '{}');
  const packages = PEERS.flatMap(({ from }) => (from === undefined ? [] : [from]));
  const { status, stderr, error } = spawnSync('npm', ['install', '--no-audit', '--no-fund', ...packages], {
    cwd: folder,
    encoding: 'utf8',
    timeout: INSTALL_MS_MAX,
  });
  if (status === 0) return { folder: join(folder, 'node_modules', '.bin') };
  return { problem: oneLine(error?.message ?? stderr) };
}

async function figuresOf(peer: Peer, bin: string): Promise<Figures> {
  const call: Answer = { calls: [{ name: peer.tool, args: peer.args as never }] };
  const steps: Script = { answers: [...Array.from({ length: STEPS }, () => call), { text: 'done' }] };
  const begun = await runOf(peer, bin, steps);
  const whole = await runOf(peer, bin, { answers: [{ text: { repeat: 'word ', times: TOKENS } }], chunkChars: 5 });
  const [first, last] = [begun.at[0], begun.at[STEPS]];
  if (first === undefined || last === undefined)
    throw new Error(`${begun.at.length} of ${STEPS + 1} requests came; ${begun.said}`);
  const early = (begun.at[11] ?? last) - (begun.at[1] ?? first);
  const late = last - (begun.at[STEPS - 10] ?? first);
  return { startMs: first - begun.from, stepMs: (last - first) / STEPS, late: late / early, answer: whole };
}

type Ran = Answered & { readonly from: number; readonly at: readonly number[]; readonly said: string };

/** One run, with the times of its requests. */
async function runOf(peer: Peer, bin: string, script: Script): Promise<Ran> {
  const server = await startRehearsal(script);
  const home = newFolder();
  const cwd = join(home, 'project');
  mkdirSync(cwd);
  const { argv, env } = peer.start({ home, url: server.url, bin });
  const [program = '', ...args] = argv;
  const { PATH = '' } = process.env;
  const from = Date.now();
  const child = spawn('/bin/bash', ['-c', `TIMEFORMAT='cpu %U %S'; time "$@" >/dev/null`, 'bash', program, ...args], {
    cwd,
    env: { PATH, HOME: home, LANG: 'C.UTF-8', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const said: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (text: string) => void said.push(text));
  let mb = 0;
  const look = setInterval(() => (mb = Math.max(mb, peakMb(child.pid ?? 0))), 100);
  const late = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), RUN_MS_MAX);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    const text = said.join('');
    const cpu = /cpu ([\d.]+) ([\d.]+)\s*$/.exec(text);
    if (code !== 0 || cpu === null) throw new Error(`it ended with ${code}: ${oneLine(text)}`);
    const at = server.requests.map((request) => request.at);
    const cpuS = Number(cpu[1]) + Number(cpu[2]);
    return { from, at, said: oneLine(text), wallS: (Date.now() - from) / 1_000, cpuS, mb };
  } finally {
    clearInterval(look);
    clearTimeout(late);
    await server.close();
  }
}

/** Memory of the largest process of the group; 0 if the system does not report it. */
function peakMb(group: number): number {
  const { stdout } = spawnSync('ps', ['-o', 'rss=', '-g', String(group)], { encoding: 'utf8' });
  return Math.max(0, ...(stdout ?? '').trim().split(/\s+/).map(Number)) / 1024;
}

function table(runs: ReadonlyMap<string, readonly Figures[]>): readonly string[] {
  const names = [...runs.keys()];
  const row = (what: string, figure: (figures: Figures) => number, digits: number) =>
    [
      what.padEnd(34),
      ...names.map((name) =>
        median((runs.get(name) ?? []).map(figure))
          .toFixed(digits)
          .padStart(10),
      ),
    ].join('');
  return [
    [''.padEnd(34), ...names.map((name) => name.padStart(10))].join(''),
    row('start to first request, ms', ({ startMs }) => startMs, 0),
    row(`per step over ${STEPS} steps, ms`, ({ stepMs }) => stepMs, 1),
    row('last 10 steps / first 10 steps', ({ late }) => late, 2),
    row('200,000-token answer, wall s', ({ answer }) => answer.wallS, 2),
    row('200,000-token answer, CPU s', ({ answer }) => answer.cpuS, 2),
    row('200,000-token answer, largest MB', ({ answer }) => answer.mb, 0),
  ];
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(-ERROR_CHARS);
}
