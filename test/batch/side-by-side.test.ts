// Repositories of one batch run concurrently within one worker limit, one budget and one stop.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runFolder } from '@drover/coordinator/run/journal';
import type { Shown } from '@drover/core/bus';
import { Lock } from '@drover/core/journal/file/lock';
import type { Answer } from '@drover/rehearsal/script';
import { BatchDesk, type Files, SPEC, tidying } from '../support/run/batch-desk.ts';
import { calls, submits } from '../support/run/run-desk.ts';
import { drover } from '../support/run/run-crash.ts';
import { runSync } from '../support/process/run-sync.ts';

const REPOS_SPEC = SPEC.replace('select:', 'select:\n  repos: repos.yaml');
// Each test starts threads for three repositories.
vi.setConfig({ testTimeout: 90_000 });

const NAMES = ['project', 'second', 'third'];

/** Three repositories whose files have their names. */
async function desk(files: number, instead: (path: string, step: number) => Answer | undefined): Promise<BatchDesk> {
  const batch = await BatchDesk.with(tidying(instead), filesOf('project', files), REPOS_SPEC);
  for (const name of NAMES.slice(1)) {
    const folder = join(batch.desk.folder, name);
    const git = (...args: readonly string[]) => runSync('git', args, { cwd: folder });
    await mkdir(join(folder, 'src'), { recursive: true });
    for (const [path, text] of Object.entries(filesOf(name, files))) await writeFile(join(folder, path), text);
    git('init', '-q', '-b', 'main');
    git('add', '-A');
    git('-c', 'user.name=A Person', '-c', 'user.email=person@example.com', 'commit', '-q', '-m', 'first');
  }
  const list = NAMES.map((name) => `  - { path: ${name}, revision: HEAD }\n`).join('');
  await writeFile(join(batch.desk.folder, 'repos.yaml'), `repositories:\n${list}`);
  return batch;
}

function filesOf(name: string, count: number): Files {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`src/${name}${at}.ts`, `console.log(${at});\n`]));
}

/** Waits for this many requests, then answers with the task's work. */
function meeting(repositories: number): (path: string, step: number) => Answer | undefined {
  const seen = new Set<string>();
  const written = new Set<string>();
  return (path, step) => {
    seen.add(path.replace(/\d.*/, ''));
    if (seen.size < repositories) return { ...calls('read', { path, limit: step }), delayMs: 250 };
    if (written.has(path)) return submits('done');
    written.add(path);
    return calls('write', { path, content: 'log();\n' });
  };
}

/** The largest number of concurrent tasks. The event times decide, because outputs of two runs may be printed late. */
function mostAtOnce(events: readonly Shown[]): number {
  const changes = events.flatMap(({ type, at }) =>
    type === 'task_start' ? [{ at, by: 1 }] : type === 'task_end' ? [{ at, by: -1 }] : [],
  );
  let now = 0;
  return Math.max(...changes.toSorted((a, b) => a.at.localeCompare(b.at) || a.by - b.by).map(({ by }) => (now += by)));
}

test('repositories run at the same time and are reported in list order', async () => {
  const batch = await desk(1, meeting(3));
  const { code, events } = await batch.run(['--workers', '3']);
  expect([code, mostAtOnce(events)]).toEqual([0, 3]);
  const rows = (await batch.results()).map(({ repository, status }) => [repository, status]);
  expect(rows).toEqual(NAMES.map((name) => [name, 'landed']));
});

test('all repositories together use no more workers than --workers allows', async () => {
  const batch = await desk(2, () => undefined);
  const { code, events } = await batch.run(['--workers', '2']);
  expect([code, mostAtOnce(events)]).toEqual([0, 2]);
});

test('lines of a repository stay together, in list order', async () => {
  const batch = await desk(1, meeting(3));
  const { code, stdout } = await batch.drover(['--workers', '3', '--view', 'lines']);
  expect(code).toBe(0);
  const named = stdout.split('\n').flatMap((line) => /src-(project|second|third)0/.exec(line)?.[1] ?? []);
  expect(named.filter((name, at) => name !== named[at - 1])).toEqual(NAMES);
});

const REQUEST_TOKENS = 3_500;
const CAP = 40_000; // about two thirds of the cost of the whole batch

/** Each answer costs the same amount. */
function dear(path: string, step: number): Answer {
  const usage = { input: REQUEST_TOKENS - 500, output: 500, cacheRead: 0, cacheWrite: 0 };
  if (step === 1) return { ...calls('read', { path }), usage };
  if (step === 2) return { ...calls('write', { path, content: 'log();\n' }), usage };
  return { ...submits('done'), usage };
}

test('concurrent repositories stay within one budget', async () => {
  const batch = await desk(2, dear);
  const { code, events } = await batch.run(['--workers', '3', '--budget', `${CAP}tok`]);
  const held = events.flatMap((event) => (event.type === 'budget' ? [event.spent + event.reserved] : []));
  expect([code, Math.max(...held) <= CAP, batch.requests * REQUEST_TOKENS <= CAP]).toEqual([6, true, true]);
});

const DEAR_TOKENS = 8_000;
const DEAR_CAP = 140_000; // less than the cost of all 18 requests of the batch

test('runs interrupted twice stay within their budget when each is resumed', async () => {
  let isHeld = true;
  const usage = { input: DEAR_TOKENS - 500, output: 500, cacheRead: 0, cacheWrite: 0 };
  const held = (path: string, step: number) => ({ ...dear(path, step), usage, ...(isHeld && { delayMs: 600_000 }) });
  const batch = await desk(2, held);
  // Every worker waits for an answer that the provider may charge for.
  const argv = ['--workers', '3', '--budget', `${DEAR_CAP}tok`];
  const { code, events } = await batch.stopped('SIGINT', () => batch.requests === 3, argv);
  const ids = [...new Set(events.flatMap(({ type, run }) => (type === 'run_start' && run ? [run] : [])))];
  expect([code, ids.length]).toEqual([130, 3]);
  const again = await batch.desk.interrupted(['resume', ids[0] ?? '', '--json'], () => batch.requests > 3);
  expect([again.code, batch.requests]).toEqual([130, 4]);
  isHeld = false;
  const { within } = JSON.parse(await readFile(join(runFolder(batch.desk.home, ids[0] ?? ''), 'batch.json'), 'utf8'));
  const lock = Lock.take(join(runFolder(batch.desk.home, within.payers[0]), 'budget.lock'));
  const refused = await batch.desk.drover(['resume', ids[0] ?? '', '--json']);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('share one budget')]);
  lock?.release();
  for (const id of ids) await batch.desk.drover(['resume', id, '--json']);
  expect(batch.requests).toBeGreaterThan(4);
  expect(batch.requests * DEAR_TOKENS).toBeLessThanOrEqual(DEAR_CAP);
});

test('a killed batch keeps its budget on resume and can be run again', async () => {
  const batch = await desk(2, dear);
  const argv = ['batch', '../spec.yaml', '--model', 'anthropic/scripted', '--workers', '3', '--view', 'silent'];
  expect(await drover(batch.desk, 'usage', 'after', [...argv, '--budget', `${CAP}tok`])).toBe('SIGKILL');
  for (const id of await readdir(join(batch.desk.home, 'runs'))) await batch.desk.drover(['resume', id, '--json']);
  expect(batch.requests * REQUEST_TOKENS).toBeLessThanOrEqual(CAP);
  expect(await drover(batch.desk, 0, 'after', argv)).toBe(0);
  expect(new Set((await batch.results()).map(({ status }) => status))).toEqual(new Set(['landed']));
});
