// All benchmarks: the cost of each part of drover, compared with the least that its work can cost in the same run.
//
//   node bench/bench.ts            all parts, each in its own process, so that none slows the next by its memory
//   node bench/bench.ts run        one of them

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './folder.ts';

const PARTS = {
  agent: () => import('./agent.ts'),
  journal: () => import('./journal.ts'),
  workspaces: () => import('./workspaces.ts'),
  dependencies: () => import('./dependencies.ts'),
  git: () => import('./git.ts'),
  sandbox: () => import('./sandbox.ts'),
  run: () => import('./run.ts'),
  server: () => import('./server.ts'),
};

const [wanted] = process.argv.slice(2);
if (!existsSync(join(import.meta.dirname, '..', 'dist', 'drover.cjs')))
  throw new Error('there is no bundle to measure: pnpm build first');
if (wanted === undefined) {
  const env = { ...process.env, DROVER_BENCH_FOLDER: root };
  for (const part of Object.keys(PARTS)) {
    const { status } = spawnSync(process.execPath, [import.meta.filename, part], { env, stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
} else if (wanted in PARTS) {
  const { lines } = await PARTS[wanted as keyof typeof PARTS]();
  for (const line of await lines()) process.stdout.write(`${line}\n`);
} else throw new Error(`there is no ${wanted}; the parts are ${Object.keys(PARTS).join(', ')}`);
