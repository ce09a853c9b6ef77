// The published bundle runs tasks in threads, in little memory.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rehearsal, temporaryFolder } from '../../support/agent.ts';
import { bundleInto } from '../../support/bundle.ts';

const STEPS = 20;
const MEMORY_MB_MAX = 350;

test('eight workers take their steps within 350 MB, all in one process', async () => {
  const folder = await temporaryFolder();
  const [dist, top] = [join(folder, 'dist'), join(folder, 'repository')];
  await bundleInto(dist);
  repositoryIn(top);
  const server = await rehearsal({ order: 'conversation', answers: answers() });
  const tasks = Array.from({ length: 8 }, (_, at) => ({ id: `t${at}`, title: `T${at}`, prompt: `do ${at}` }));
  writeFileSync(join(folder, 'plan.yaml'), JSON.stringify({ tasks }));

  const args = ['run', 'much', '--plan', join(folder, 'plan.yaml'), '--workers', '8', '--yes', '--view', 'lines'];
  const child = spawn(process.execPath, [join(dist, 'drover.cjs'), ...args, '--model', 'anthropic/claude-sonnet-4-5'], {
    cwd: top,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      DROVER_HOME: join(folder, 'home'),
      ANTHROPIC_API_KEY: 'test-key',
      ANTHROPIC_BASE_URL: server.url,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let told = '';
  child.stdout.on('data', (chunk: Buffer) => (told += chunk.toString()));
  let peakMb = 0;
  const looking = setInterval(() => (peakMb = Math.max(peakMb, residentMb(child.pid))), 50);
  const [code] = (await once(child, 'close')) as [number];
  clearInterval(looking);

  expect({ code, landed: told.match(/✓ landed/g)?.length }).toEqual({ code: 0, landed: 8 });
  if (process.platform === 'linux') expect(peakMb).toBeGreaterThan(50);
  expect(peakMb).toBeLessThan(MEMORY_MB_MAX);
});

function repositoryIn(top: string): void {
  mkdirSync(top);
  writeFileSync(join(top, 'a.txt'), 'a\n');
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd: top });
  git('init', '-q');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
}

function answers() {
  const written = (step: number) => ({ path: `note-${step}.txt`, content: 'x'.repeat(4_000) });
  const steps = Array.from({ length: STEPS }, (_, step) =>
    step % 2 === 0
      ? { text: 'I write it down. '.repeat(20), calls: [{ name: 'write', args: written(step) }] }
      : {
          text: 'And now. '.repeat(20),
          calls: [{ name: 'shell', args: { command: 'cat note-0.txt | head -c 2000' } }],
        },
  );
  return [...steps, { text: 'done' }];
}

/** Peak memory; 0 if the system does not report it. */
function residentMb(id: number | undefined): number {
  if (process.platform !== 'linux') return 0;
  try {
    const status = readFileSync(`/proc/${id}/status`, 'latin1');
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  } catch (error) {
    // The process has ended meanwhile.
    if (error instanceof Error && 'code' in error) return 0;
    throw error;
  }
}
