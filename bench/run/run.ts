// Cost of a whole run: eight workers with twenty steps each, planned, isolated, merged and delivered. A bare process
// that runs eight such loops and does nothing else is the comparison. The run is measured twice: without a sandbox,
// like the bare process, and with every command in the sandbox. Then the memory and threads of 32 workers.

import { join } from 'node:path';
import type { AgentScript, Answer, Script } from '@drover/rehearsal/script';
import { counted, dist, measured, median, root, type Started, timed, watched } from './programs.ts';

export const WORKERS = 8;
const MANY_WORKERS = 32;
export const STEPS = 20;
const TIMES = Number(process.env['DROVER_BENCH_TIMES'] ?? 7);
const WALL_AIM = 2.5;
const MEMORY_AIM_MB = 200;
const MANY_AIM = 1.3;

const shell: Answer = { calls: [{ name: 'shell', args: { command: 'true' } }] };
const many = Array.from({ length: STEPS - 2 }, () => shell);

export function scriptFor(workers: number): Script {
  const names = Array.from({ length: workers }, (_, at) => `t${at + 1}`);
  const tasks = names.map((id) => ({ id, title: `do ${id}`, prompt: id }));
  const bare: AgentScript = { answers: [...many, shell, shell, { text: 'done' }] };
  return {
    order: 'conversation',
    answers: [{ calls: [{ name: 'submit_plan', args: { tasks } }] }, { text: 'done' }],
    agents: {
      ...Object.fromEntries(
        names.map((id): [string, AgentScript] => [id, { assigned: `Your task is ${id}:`, answers: work(id) }]),
      ),
      ...Object.fromEntries(names.map((_, at): [string, AgentScript] => [`bare-${at + 1}`, bare])),
    },
  };
}

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
      const wallMs = await measured(startOf(program, WORKERS), timed);
      // The first run of each kind warms the disk and the compile cache.
      if (n > 0) wall[program].push(wallMs);
    }
  }
  // Memory is measured in a run of its own, because reading it takes time.
  const [bareMb, droverMb] = [
    await measured(startOf('bare', WORKERS), watched),
    await measured(startOf('drover', WORKERS), watched),
  ];
  const manyMb = await measured(startOf('drover', MANY_WORKERS), watched);
  const threads = [
    await measured(startOf('drover', WORKERS), counted),
    await measured(startOf('drover', MANY_WORKERS), counted),
  ];
  const [bareMs, droverMs, containedMs] = [median(wall.bare), median(wall.drover), median(wall.contained)];
  const what = `${WORKERS} workers x ${STEPS} steps`;
  return [
    `${what}, wall: bare ${Math.round(bareMs)} ms, drover ${Math.round(droverMs)} ms: ${(droverMs / bareMs).toFixed(2)}x (aim ${WALL_AIM}x)`,
    `${what} in the sandbox, wall: ${Math.round(containedMs)} ms: ${(containedMs / bareMs).toFixed(2)}x of bare, ${(containedMs / droverMs).toFixed(2)}x of drover in the open`,
    `${what}, memory at most: bare ${Math.round(bareMb)} MB, drover ${Math.round(droverMb)} MB (aim ${MEMORY_AIM_MB} MB)`,
    `${MANY_WORKERS} workers x ${STEPS} steps, memory at most: ${Math.round(manyMb)} MB: ${(manyMb / droverMb).toFixed(2)}x of ${WORKERS} workers (aim ${MANY_AIM}x)`,
    `threads of the process, Node's own among them: ${threads[0]} with ${WORKERS} workers, ${threads[1]} with ${MANY_WORKERS}`,
  ];
}

function startOf(program: Program, workers: number): Started {
  const script = scriptFor(workers);
  if (program === 'bare') return { script, argv: [join(root, 'bench', 'bare', 'herd.mjs')] };
  const run = [join(dist, 'drover.cjs'), 'run', 'go', '--json', '--yes', '--model=anthropic/any'];
  const argv = [...run, `--workers=${workers}`, `--sandbox=${program === 'contained' ? 'auto' : 'off'}`];
  return { script, argv, probe: program === 'contained' };
}
