// A batch of 1,000 tasks in a repository of 8,000 files: the memory of the main process, the cost of the last tasks
// beside that of early ones, and how soon the first task starts.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startRehearsal } from '@drover/rehearsal/server';
import type { Script } from '@drover/rehearsal/script';
import { newFolder } from '../folder.ts';
import { dist, projectIn } from './programs.ts';

const TASKS = Number(process.env['DROVER_BENCH_TASKS'] ?? 1_000);
const FILES = 8 * TASKS;
const GROUP = TASKS / 10;
const LOOK_MS = 100;

const spec = [
  'version: 1',
  'name: tidy',
  "select: { files: ['src/*/first.txt'] }",
  "task: { title: 'Tidy {{ path }}', prompt: 'Tidy {{ path }}.' }",
  'deliver: branch',
  '',
].join('\n');

const script: Script = {
  order: 'conversation',
  answers: [
    {
      calls: [{ name: 'shell', args: { command: 'echo tidy >> "src/$(ls src | head -n 1)/note-$RANDOM$RANDOM.txt"' } }],
    },
    { calls: [{ name: 'submit_result', args: { summary: 'tidy' } }] },
  ],
};

/** Lines to print. */
export async function lines(): Promise<readonly string[]> {
  const files: Record<string, string> = { 'tidy.yaml': spec };
  for (let n = 0; n < FILES; n++) files[`src/${n % TASKS}/${n < TASKS ? 'first' : `more-${n}`}.txt`] = `${n}\n`;
  const server = await startRehearsal(script);
  const folder = newFolder();
  const child = spawn(
    process.execPath,
    [join(dist, 'drover.cjs'), 'batch', 'tidy.yaml', '--model=anthropic/any', '--workers=8', '--sandbox=off', '--json'],
    {
      cwd: projectIn(folder, files),
      env: {
        ...process.env,
        HOME: folder,
        DROVER_HOME: join(folder, 'state'),
        ANTHROPIC_BASE_URL: server.url,
        ANTHROPIC_API_KEY: 'x',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const { firstMs, ends, mb } = await watch(child);
  await server.close();
  const [early, late] = [spanOf(ends, 1), spanOf(ends, 9)];
  return [
    `${TASKS} tasks in a repository of ${FILES} files, largest main process: ${Math.round(mb)} MB (aim 350 MB)`,
    `tasks ${GROUP} to ${2 * GROUP} take ${Math.round(early)} ms, the last ${GROUP} ${Math.round(late)} ms: ${(late / early).toFixed(2)}x (aim 1.1x)`,
    `first task started after ${Math.round(firstMs)} ms (aim 1000 ms)`,
  ];
}

/** Milliseconds of the nth tenth of the tasks. */
function spanOf(ends: readonly number[], tenth: number): number {
  return (ends[(tenth + 1) * GROUP - 1] ?? Number.NaN) - (ends[tenth * GROUP - 1] ?? Number.NaN);
}

type Watched = { readonly firstMs: number; readonly ends: readonly number[]; readonly mb: number };

async function watch(child: ChildProcess): Promise<Watched> {
  const begun = performance.now();
  let firstMs = Number.NaN;
  const ends: number[] = [];
  let mb = 0;
  const look = setInterval(() => (mb = Math.max(mb, residentMb(child.pid ?? 0))), LOOK_MS);
  if (child.stdout === null) throw new Error('the output of the batch is not read');
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { type } = JSON.parse(line) as { readonly type: string };
    if (type === 'task_start' && Number.isNaN(firstMs)) firstMs = performance.now() - begun;
    if (type === 'task_end') ends.push(performance.now());
  });
  await once(child, 'close');
  clearInterval(look);
  if (ends.length < TASKS) throw new Error(`${ends.length} of ${TASKS} tasks ended, with exit code ${child.exitCode}`);
  return { firstMs, ends, mb };
}

/** 0 if the process has ended meanwhile. */
function residentMb(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return 0;
    throw error;
  }
}
