// A session that is killed repeatedly until it is done, and the result.

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readJournalContents } from '@drover/core/journal/file/format';
import { journalPath } from '@drover/core/journal/session-journal';
import type { Answer, Script } from '@drover/rehearsal/script';
import { startRehearsal, type Rehearsal } from '@drover/rehearsal/server';
import { build } from 'rolldown';
import { afterAll } from 'vitest';

export const POINTS = [
  'before-write',
  'torn-write',
  'after-write',
  'before-sync',
  'after-sync',
  'before-effect',
  'after-effect',
  'before-request',
  'answer-half',
  'answer-whole',
  'before-recovery',
  'after-recovery',
] as const;

export type Kill = { readonly point: (typeof POINTS)[number]; readonly count: number } | { readonly afterMs: number };

export type Toll = {
  readonly processes: number;
  readonly lost: readonly string[]; // delivered, but not in the journal
  readonly doubled: readonly string[]; // lines of the ledger
  readonly missing: readonly string[];
  readonly rejections: number;
  readonly odd: readonly string[];
};

const PROCESSES_MAX = 60;

// The other events are written before they are delivered but may be unsynced; the next process repeats those that
// matter.
const SYNCED = /^\d+ (session_start|message_end|tool_execution_start|tool_execution_end|done|session_end)$/;

/** The loss at each death: the process alone, or also everything unsynced. */
export type Loses = 'process' | 'power';

/** `kills` lists how each process dies; later ones live. */
export async function liveThroughCrashes(
  steps: number,
  kills: readonly Kill[],
  loses: Loses = 'process',
): Promise<Toll> {
  const home = await mkdtemp(join(tmpdir(), 'drover-crash-'));
  const server = await startRehearsal(modelThatChecks(steps));
  // Removed at once and not after the test: one test runs hundreds of seeds.
  try {
    return await livesOn(server, home, { steps, kills, loses });
  } finally {
    await server.close();
    await rm(home, { recursive: true, force: true });
  }
}

type Life = { readonly steps: number; readonly kills: readonly Kill[]; readonly loses: Loses };

async function livesOn(server: Rehearsal, home: string, { steps, kills, loses }: Life): Promise<Toll> {
  const ledger = join(home, 'ledger');
  await writeFile(ledger, '');
  const told: string[] = [];
  const odd: string[] = [];
  let processes = 0;
  for (let isOver = false; !isOver && processes < PROCESSES_MAX; processes++) {
    const output = await oneProcess([home, server.url, ledger, loses], kills[processes]);
    const lines = output.stdout.trim().split('\n').filter(Boolean);
    isOver = lines.at(-1) === 'over';
    told.push(...lines.filter((line) => (loses === 'power' ? SYNCED : /^\d+ \w+$/).test(line)));
    odd.push(
      ...lines.filter((line) => line.startsWith('ended')),
      ...(output.stderr === '' ? [] : [output.stderr.slice(0, 500)]),
    );
  }
  const { records, damage } = readJournalContents(await readFile(journalPath(home, 's')));
  const kept = new Set(records.map(({ seq, type }) => `${Number(seq)} ${typeof type === 'string' ? type : ''}`));
  const written = (await readFile(ledger, 'utf8')).split('\n').filter(Boolean);
  const wanted = Array.from({ length: steps * 3 }, (_, n) => lineOf(n));
  return {
    processes,
    lost: told.filter((line) => !kept.has(line)),
    doubled: written.filter((line, at) => written.indexOf(line) !== at),
    missing: wanted.filter((line) => !written.includes(line)),
    rejections: server.rejections,
    odd: damage === undefined ? odd : [...odd, `damaged at line ${damage.line}`],
  };
}

// One file, compiled once for all processes, because start-up is most of their time.
let program: Promise<string> | undefined;

afterAll(async () => {
  if (program !== undefined) await rm(dirname(await program), { recursive: true, force: true });
  program = undefined;
});

async function bundled(): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), 'drover-crash-child-')), 'crash-child.mjs');
  await build({
    input: join(import.meta.dirname, 'crash-child.ts'),
    platform: 'node',
    logLevel: 'silent',
    output: { file, format: 'esm', codeSplitting: false },
  });
  return file;
}

async function oneProcess(
  args: readonly string[],
  kill: Kill | undefined,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const point = kill !== undefined && 'point' in kill ? [kill.point, `${kill.count}`] : [];
  program ??= bundled();
  const child = spawn(process.execPath, [await program, ...args, ...point], {
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'drover-test-compiled'), ...process.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const timer =
    kill !== undefined && 'afterMs' in kill ? setTimeout(() => child.kill('SIGKILL'), kill.afterMs) : undefined;
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  return new Promise((resolve) => {
    child.on('close', () => {
      clearTimeout(timer);
      resolve({ stdout, stderr });
    });
  });
}

const lineOf = (n: number): string => `line ${n}`;

type Block = {
  readonly type: string;
  readonly name?: string;
  readonly input?: { readonly line?: string };
  readonly id?: string;
  readonly tool_use_id?: string;
  readonly content?: unknown;
};

/** Three lines per step. If a call is uncertain, the model checks its effect before it repeats it. */
function modelThatChecks(steps: number): Script {
  const answer = (body: { readonly messages: readonly { readonly content: string | readonly Block[] }[] }): Answer => {
    const blocks = body.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
    const last = body.messages.at(-1)?.content;
    const uncertain = (typeof last === 'string' || last === undefined ? [] : last)
      .filter(({ type, content }) => type === 'tool_result' && JSON.stringify(content).includes('UNCERTAIN'))
      .map(({ tool_use_id: id }) => blocks.find((block) => block.id === id)?.input?.line ?? '');
    if (uncertain.length > 0) return { calls: uncertain.map((line) => ({ name: 'ensure', args: { line } })) };
    const asked = blocks.filter(({ name }) => name === 'ledger').length;
    if (asked >= steps * 3) return { text: 'All lines are written.' };
    return {
      text: `Lines ${asked} to ${asked + 2}.`,
      calls: [0, 1, 2].map((n) => ({ name: 'ledger', args: { line: lineOf(asked + n) } })),
    };
  };
  return { answers: [(request) => answer(request.body as unknown as Parameters<typeof answer>[0])] };
}
