// A run with four workers in one thread, which one of them ends at a given record of the journal.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleInto } from '../bundle.ts';
import { recordsOf } from '../run/run-crash.ts';
import { calls, planned, RunDesk, submits, writes } from '../run/run-desk.ts';

export type Fault = 'throw' | 'heap' | 'loop';

const GOOD = ['one', 'two', 'three'];

export type LostThread = {
  readonly code: number | null;
  readonly tree: Readonly<Record<string, string>>;
  readonly statuses: readonly string[];
  /** Attempts at each of the tasks that are not to blame. */
  readonly attempts: readonly number[];
  /** Requests of each of them. */
  readonly requests: readonly number[];
  /** Commands that ran more than once. */
  readonly repeated: readonly string[];
  readonly moves: number;
  readonly records: number;
};

/** `at`: the record at which the thread is ended; 0 for none. */
export async function runWithLoss(at: number, fault: Fault): Promise<LostThread> {
  // The log is outside of the repository, where every run of a command shows.
  const logs = mkdtempSync(join(tmpdir(), 'drover-loss-'));
  const log = join(logs, 'log');
  const work = (id: string) => [
    calls('shell', { command: `echo ${id} first >> ${log}` }),
    writes(`${id}.txt`, `${id}\n`),
    calls('shell', { command: `echo ${id} second >> ${log}` }),
    submits(id),
  ];
  const names = ['guilty', ...GOOD];
  const desk = await RunDesk.with(planned(Object.fromEntries(names.map((id) => [id, { answers: work(id) }]))));
  const code = await drover(desk, { at, fault, logs });
  const records = recordsOf(desk);
  const end = records.findLast((record) => record.type === 'run_end');
  const rows = end?.tasks ?? [];
  const ran = existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : [];
  const innocent = ran.filter((line) => !line.startsWith('guilty'));
  rmSync(logs, { recursive: true, force: true });
  return {
    code,
    tree: desk.delivered(end?.run ?? ''),
    statuses: rows.map(({ status }) => status),
    attempts: GOOD.map((id) => rows.find(({ task }) => task === id)?.attempts ?? 0),
    requests: GOOD.map((id) => desk.server.requests.filter(({ agent }) => agent === id).length),
    repeated: innocent.filter((line, n) => innocent.indexOf(line) !== n),
    moves: records.filter(({ type }) => type === 'attempt_moved').length,
    records: records.length,
  };
}

let bundle: Promise<string> | undefined;

async function bundled(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'drover-loss-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const [child, worker] = ['thread-loss-child.ts', 'thread-loss-worker.ts'].map((name) =>
    join(import.meta.dirname, name),
  );
  if (child !== undefined && worker !== undefined) await bundleInto(folder, { child, worker, minify: false });
  return folder;
}

type Loss = { readonly at: number; readonly fault: Fault; readonly logs: string };

async function drover(desk: RunDesk, { at, fault, logs }: Loss): Promise<number | null> {
  bundle ??= bundled();
  const folder = await bundle;
  const argv = ['--model', 'anthropic/scripted', '--workers', '4', '--threads', '1', '--deliver', 'branch'];
  const more = ['--view', 'silent', '--sandbox', 'off', '--yes'];
  const child = spawn(
    process.execPath,
    [join(folder, 'child.cjs'), String(at), fault, 'run', 'do four things', ...argv, ...more],
    {
      cwd: desk.repository,
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: join(folder, 'compiled'),
        DROVER_TEST_FAULT: join(logs, 'fault'),
        DROVER_HOME: desk.home,
        ANTHROPIC_API_KEY: 'k',
        ANTHROPIC_BASE_URL: desk.server.url,
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  const [code] = (await once(child, 'close')) as [number | null];
  return code;
}
