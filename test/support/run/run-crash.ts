// Runs that are killed and resumed: each must have the same result as an undisturbed one, and repeat no answered
// request.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runJournalPath } from '@drover/coordinator/run/journal';
import type { EventType, Recorded } from '@drover/protocol/events';
import { readJournalContents } from '@drover/core/journal/file/format';
import { bundleInto } from '../bundle.ts';
import { calls, planned, RunDesk, submits, writes } from './run-desk.ts';

const CHILD = join(import.meta.dirname, 'run-crash-child.ts');
const GATE = 'test ! -e red.txt';
const ALLOW = ['--allow', 'shell(cat base.txt)'];

/** Four tasks: one depends on another, one conflicts once, one fails the gate. */
const SCRIPT = planned({
  base: { answers: [writes('base.txt', 'base\n'), submits('base')] },
  first: {
    dependsOn: ['base'],
    answers: [calls('shell', { command: 'cat base.txt' }), writes('a.txt', 'first\n'), submits('first')],
  },
  clash: {
    answers: [writes('a.txt', 'clash\n'), submits('clash')],
    again: [calls('read', { path: 'a.txt' }), writes('a.txt', 'both\n'), submits('both')],
  },
  red: { answers: [writes('red.txt', 'red\n'), submits('red')] },
});

export type Crashed = {
  readonly tree: Readonly<Record<string, string>>;
  readonly code: number | string;
  readonly statuses: Readonly<Record<string, string>>;
  /** Requests for answers that were already in the journal. */
  readonly repeated: readonly string[];
  readonly refused: number;
  readonly records: number;
  readonly wasKilled: boolean;
};

/** Killed at the nth record, or at the first of a type; 0 for never. */
export async function crashedRun(at: number | EventType, when: 'before' | 'after', workers: number): Promise<Crashed> {
  const desk = await RunDesk.with(SCRIPT);
  const argv = [
    'run',
    'do four things',
    '--model',
    'anthropic/scripted',
    '--gate',
    GATE,
    '--deliver',
    'branch',
    '--workers',
    String(workers),
    '--view',
    'silent',
    ...ALLOW,
  ];
  let code = await drover(desk, at, when, argv);
  const wasKilled = code === 'SIGKILL';
  const asked = askedBy(desk);
  const answered = wasKilled ? answeredIn(desk) : new Map<string, number>();
  if (wasKilled) {
    const id = runIn(desk);
    code = await drover(
      desk,
      0,
      when,
      id === undefined || recordsOf(desk).length === 0 ? argv : ['resume', id, '--view', 'silent', ...ALLOW],
    );
  }
  const total = askedBy(desk);
  await desk.server.close();
  const records = recordsOf(desk);
  const end = records.findLast((record) => record.type === 'run_end');
  return {
    tree: desk.delivered(runIn(desk) ?? ''),
    code,
    statuses: Object.fromEntries(end?.tasks.map(({ task, status }) => [task, status]) ?? []),
    repeated: repeatedOf({ asked, answered, total, needed: wasKilled ? NEEDED : total }),
    refused: desk.server.rejections,
    records: records.length,
    wasKilled,
  };
}

/** The number of answers that each agent needs if nothing fails. */
const NEEDED = new Map([
  ['default', 2],
  ['base', 2],
  ['clash', 2],
  ['clash again', 3],
  ['first', 3],
  ['red', 2],
]);

type Counts = ReadonlyMap<string, number>;

// An agent may repeat one request for each answer in flight, and no other.
function repeatedOf({
  asked,
  answered,
  total,
  needed,
}: Record<'asked' | 'answered' | 'total' | 'needed', Counts>): readonly string[] {
  return [...total].flatMap(([agent, count]) => {
    const underWay = (asked.get(agent) ?? 0) - (answered.get(agent) ?? 0);
    const most = (needed.get(agent) ?? 0) + Math.max(0, underWay);
    return count > most ? [`${agent} asked ${count} times, ${most} were needed`] : [];
  });
}

function askedBy({ server }: RunDesk): Counts {
  return countsOf(server.requests.map(({ agent }) => agent));
}

function answeredIn(desk: RunDesk): Counts {
  return countsOf(
    recordsOf(desk).flatMap((record) => {
      if (record.type !== 'message_end' || record.message.role !== 'assistant') return [];
      if (record.task === undefined) return ['default'];
      return [record.task === 'clash' && (record.attempt ?? 1) > 1 ? 'clash again' : record.task];
    }),
  );
}

function countsOf(names: readonly string[]): Counts {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** The run that got furthest: one killed before its first record never began, and a second one begins in its place. */
function runIn(desk: RunDesk): string | undefined {
  const ids = readdirSync(join(desk.home, 'runs'));
  return ids.toSorted((a, b) => recordsIn(desk, b).length - recordsIn(desk, a).length)[0];
}

/** The journal of the run that got furthest. */
export function recordsOf(desk: RunDesk): readonly Recorded[] {
  const id = runIn(desk);
  return id === undefined ? [] : recordsIn(desk, id);
}

function recordsIn({ home }: RunDesk, id: string): readonly Recorded[] {
  const path = runJournalPath(home, id);
  return existsSync(path) ? (readJournalContents(readFileSync(path)).records as unknown as readonly Recorded[]) : [];
}

let bundle: Promise<string> | undefined;

// Bundled and compiled once for all processes, because start-up is most of their time.
async function bundled(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'drover-crash-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  await bundleInto(folder, { child: CHILD, minify: false });
  return folder;
}

/** Runs drover in a separate process with an optional kill point; returns its exit code or signal. */
export async function drover(
  desk: RunDesk,
  at: number | EventType,
  when: 'before' | 'after',
  argv: readonly string[],
): Promise<number | string> {
  bundle ??= bundled();
  const folder = await bundle;
  const cache = { NODE_COMPILE_CACHE: join(folder, 'compiled') };
  const keys = { ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  const env = { ...process.env, ...cache, ...keys, DROVER_HOME: desk.home };
  const child = spawn(process.execPath, [join(folder, 'child.cjs'), String(at), when, ...argv], {
    cwd: desk.repository,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal ?? ''));
  });
}
