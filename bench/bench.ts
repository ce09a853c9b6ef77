// All benchmarks: the cost of each part of drover, compared with the least that its work can cost in the same run.
//
//   pnpm bench                     all parts, each in a process of its own: what one leaves in memory slows the next
//   pnpm bench run                 one of them
//   pnpm bench --record            likewise, and the figures go into bench/RESULTS.md
//   pnpm bench --peers             drover next to other agents, which are installed from npm for it

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './folder.ts';
import { type Figures, record } from './record.ts';

const PARTS = {
  agent: () => import('./agent.ts'),
  journal: () => import('./journal.ts'),
  workspaces: () => import('./workspaces.ts'),
  dependencies: () => import('./dependencies.ts'),
  git: () => import('./git.ts'),
  sandbox: () => import('./sandbox.ts'),
  run: () => import('./run/run.ts'),
  batch: () => import('./run/batch.ts'),
  waiting: () => import('./run/waiting.ts'),
  hosts: () => import('./hosts/hosts.ts'),
  scale: () => import('./hosts/scale.ts'),
  server: () => import('./server.ts'),
  peers: () => import('./peers/peers.ts'),
};

const FLAGS = ['--record', '--peers'];
const typed = process.argv.slice(2);
const isPeers = typed.includes('--peers');
const [wanted] = isPeers ? ['peers'] : typed.filter((word) => !FLAGS.includes(word));
if (!existsSync(join(import.meta.dirname, '..', 'dist', 'drover.cjs')))
  throw new Error('there is no bundle to measure: pnpm build first');
if (wanted !== undefined && !(wanted in PARTS))
  throw new Error(`there is no ${wanted}; the parts are ${Object.keys(PARTS).join(', ')}`);

if (wanted !== undefined && process.env['DROVER_BENCH_FOLDER'] !== undefined) {
  const { lines } = await PARTS[wanted as keyof typeof PARTS]();
  for (const line of await lines()) process.stdout.write(`${line}\n`);
} else {
  const names = wanted === undefined ? Object.keys(PARTS).filter((name) => name !== 'peers') : [wanted];
  const figures = names.flatMap((name) => measuredApart(name));
  if (typed.includes('--record')) record(figures);
}

/** The figures of a part that could be measured. */
function measuredApart(part: string): readonly Figures[] {
  const env = { ...process.env, DROVER_BENCH_FOLDER: root };
  const { status, stdout } = spawnSync(process.execPath, [import.meta.filename, part], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  process.stdout.write(stdout);
  if (status !== 0) process.exitCode = 1;
  const command = part === 'peers' ? 'pnpm bench --peers' : `pnpm bench ${part}`;
  return status === 0 ? [{ command, lines: stdout.trimEnd().split('\n') }] : [];
}
