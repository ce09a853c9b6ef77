// A run of four workers whose commands write to an outside ledger, killed repeatedly until it is done, and the result.
//
// Each worker has ten steps of three commands, and each command adds one line. A model that learns of an uncertain call
// checks it before repeating it. Printed events have been told and must never be lost.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runJournalPath } from '@drover/coordinator/run/journal';
import type { Json } from '@drover/protocol/json';
import { readJournalContents } from '@drover/core/journal/file/format';
import type { Answer } from '@drover/rehearsal/script';
import { afterAll } from 'vitest';
import { bundleInto } from '../bundle.ts';
import { planned, RunDesk, submits, writes } from './run-desk.ts';

const WORKERS = 4;
const CALLS = 3; // per step
const PROCESSES_MAX = 40;
const LINGER_MS_MAX = 20_000;

/** Killed after this many events, and this much later. */
export type Kill = { readonly events: number; readonly afterMs: number };

export type Toll = {
  readonly processes: number;
  readonly uncertain: number; // calls in progress at the kill
  readonly lost: readonly string[]; // delivered, but not in the journal
  readonly doubled: readonly string[]; // lines of the ledger
  readonly missing: readonly string[];
  readonly rejections: number;
  readonly code: number | undefined; // exit code of the last process
  readonly tree: Readonly<Record<string, string>>;
};

export async function runThroughCrashes(steps: number, kills: readonly Kill[]): Promise<Toll> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-ledger-'));
  const ledger = join(folder, 'ledger');
  await writeFile(ledger, '');
  const desk = await RunDesk.with(script(ledger, steps));
  try {
    return await lives(desk, ledger, { steps, kills });
  } finally {
    await desk.server.close();
    for (const each of [folder, desk.folder]) await rm(each, { recursive: true, force: true });
  }
}

async function lives(
  desk: RunDesk,
  ledger: string,
  { steps, kills }: { readonly steps: number; readonly kills: readonly Kill[] },
): Promise<Toll> {
  const told = new Set<string>();
  let processes = 0;
  let code: number | undefined;
  while (code === undefined && processes < PROCESSES_MAX) {
    const run = runIn(desk);
    const begin = ['run', 'fill the ledger', '--model', 'anthropic/scripted', '--workers', String(WORKERS)];
    // The sandbox shows the ledger's folder, which is outside every workspace.
    const argv = [...(run === undefined ? begin : ['resume', run]), '--writable', dirname(ledger)];
    code = await oneProcess(desk, argv, kills[processes], (line) => told.add(line));
    processes += 1;
    await untilNobodyWritesTo(ledger);
  }
  const run = runIn(desk) ?? '';
  const { records } = readJournalContents(readFileSync(runJournalPath(desk.home, run)));
  const kept = new Set(records.map(({ seq, type }) => `${Number(seq)} ${typeof type === 'string' ? type : ''}`));
  const written = (await readFile(ledger, 'utf8')).split('\n').filter(Boolean);
  const wanted = tasks().flatMap((task) => Array.from({ length: steps * CALLS }, (_, n) => lineOf(task, n)));
  return {
    processes,
    uncertain: records.filter((record) => record['type'] === 'tool_execution_end' && isUncertain(record)).length,
    lost: [...told].filter((line) => !kept.has(line)),
    doubled: written.filter((line, at) => written.indexOf(line) !== at),
    missing: wanted.filter((line) => !written.includes(line)),
    rejections: desk.server.rejections,
    code,
    tree: desk.delivered(run),
  };
}

/** The exit code, or undefined if it was killed. */
async function oneProcess(
  desk: RunDesk,
  argv: readonly string[],
  kill: Kill | undefined,
  tell: (line: string) => void,
): Promise<number | undefined> {
  program ??= bundled();
  const folder = dirname(await program);
  const keys = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  const child = spawn(process.execPath, [await program, ...argv, '--yes', '--json'], {
    cwd: desk.repository,
    env: { ...process.env, ...keys, DROVER_HOME: desk.home, NODE_COMPILE_CACHE: join(folder, 'compiled') },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let [rest, events] = ['', 0];
  child.stdout.on('data', (data: Buffer) => {
    const lines = (rest + data.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const { seq, type } = JSON.parse(line) as { readonly seq: number; readonly type: string };
      if (!type.endsWith('_delta')) tell(`${seq} ${type}`);
      events += 1;
      if (kill?.events === events) setTimeout(() => child.kill('SIGKILL'), kill.afterMs);
    }
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? undefined));
  });
}

// A command that was running when drover was killed ends with its sandbox. The resumed model must check its effect only
// after that. The sandbox's arguments name the ledger's folder.
async function untilNobodyWritesTo(ledger: string): Promise<void> {
  const isWriting = (id: string): boolean => {
    try {
      return (
        Number(id) !== process.pid && readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(`--bind\0${dirname(ledger)}`)
      );
    } catch {
      return false; // The process has ended meanwhile.
    }
  };
  const until = Date.now() + LINGER_MS_MAX;
  while (readdirSync('/proc').some((id) => /^\d+$/.test(id) && isWriting(id))) {
    if (Date.now() > until) throw new Error('a command outlives its drover');
    await sleep(10);
  }
}

function runIn({ home }: RunDesk): string | undefined {
  const folder = join(home, 'runs');
  const runs = existsSync(folder) ? readdirSync(folder) : [];
  return runs.find((id) => {
    const path = runJournalPath(home, id);
    return existsSync(path) && readJournalContents(readFileSync(path)).records.length > 0;
  });
}

// ── the model ─────────────────────────────────────────────────────────────────────────────────

const tasks = (): readonly string[] => Array.from({ length: WORKERS }, (_, n) => `task${n + 1}`);
const lineOf = (task: string, n: number): string => `${task} line ${n}`;

const isUncertain = (record: unknown): boolean => JSON.stringify(record).includes('UNCERTAIN');

type Block = {
  readonly type: string;
  readonly name?: string;
  readonly input?: { readonly command?: string };
  readonly id?: string;
  readonly tool_use_id?: string;
  readonly content?: unknown;
};

function script(ledger: string, steps: number) {
  const scripted = Object.fromEntries(tasks().map((task) => [task, { answers: [] }]));
  const agents = Object.fromEntries(
    tasks().map((task) => {
      const answer = ({ body }: { readonly body: unknown }): Answer => nextOf(task, body as Body, { ledger, steps });
      return [task, { assigned: `Your task is ${task}:`, answers: [answer] }];
    }),
  );
  return planned(scripted, { agents });
}

type Body = { readonly messages: readonly { readonly content: string | readonly Block[] }[] };

function nextOf(task: string, body: Body, { ledger, steps }: { readonly ledger: string; readonly steps: number }) {
  const blocks = body.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
  const last = body.messages.at(-1)?.content;
  const uncertain = (typeof last === 'string' || last === undefined ? [] : last)
    .filter((block) => block.type === 'tool_result' && isUncertain(block))
    .map(({ tool_use_id: id }) => /'(task\d+ line \d+)'/.exec(commandOf(blocks.find((block) => block.id === id)))?.[1])
    .filter((line) => line !== undefined);
  if (uncertain.length > 0)
    return shells(uncertain.map((line) => `grep -qx '${line}' ${ledger} || echo '${line}' >> ${ledger}`));
  const asked = blocks.filter((block) => commandOf(block).startsWith(`echo '${task} `)).length;
  if (asked < steps * CALLS)
    return shells(Array.from({ length: CALLS }, (_, n) => `echo '${lineOf(task, asked + n)}' >> ${ledger}`));
  if (!blocks.some(({ name }) => name === 'write')) return writes(`${task}.txt`, `${task}\n`);
  return blocks.some(({ name }) => name === 'submit_result') ? { text: 'ok' } : submits(task);
}

const commandOf = (block: Block | undefined): string => block?.input?.command ?? '';
const shells = (commands: readonly string[]): Answer => ({
  calls: commands.map((command): { name: string; args: Record<string, Json> } => ({
    name: 'shell',
    args: { command },
  })),
});

// A few files, compiled once for all processes, because start-up is most of their time.
let program: Promise<string> | undefined;

afterAll(async () => {
  if (program !== undefined) await rm(dirname(await program), { recursive: true, force: true });
  program = undefined;
});

async function bundled(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'drover-ledger-'));
  await bundleInto(dir, { minify: false });
  return join(dir, 'drover.cjs');
}
