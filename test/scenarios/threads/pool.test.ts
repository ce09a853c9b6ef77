// The pool: real threads that are stopped, lost and reused.

import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { openPool } from '@drover/coordinator/pool/pool';
import { DroverError } from '@drover/core/errors';
import { markedProcesses } from '@drover/core/tools/process/tree';
import type { Script } from '@drover/rehearsal/script';
import { runWorkerTask } from '@drover/worker/task';
import { afterAll, expect, test } from 'vitest';
import { never, rehearsal, temporaryFolder } from '../../support/agent.ts';
import { story } from '../../support/story.ts';
import { comparable, ended, listener, poolOf, taskOn } from '../../support/task.ts';
import { proves } from '../../support/proves.ts';
import { until } from '../../support/until.ts';

const faulty = fileURLToPath(new URL('../../support/run/faulty-worker.ts', import.meta.url));
const DEFAULTS = { entry: faulty, onDiagnostic: () => undefined };

// Starting a thread takes most of the time here, so most tests share these.
const pool = openPool({ ...DEFAULTS, threadsMax: 8, heapMb: 96, silentMs: 4_000, graceMs: 20_000 });
const hasty = openPool({ ...DEFAULTS, threadsMax: 1, graceMs: 100 });
const watchful = openPool({ ...DEFAULTS, threadsMax: 2, silentMs: 1_500 });
afterAll(() => Promise.all([pool, hasty, watchful].map((each) => each.close())));

const shell = (command: string): Script => ({
  answers: [{ calls: [{ name: 'shell', args: { command } }] }, { text: 'done' }],
  order: 'conversation',
});
const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const NO_SERVER = { baseUrlFor: () => 'http://127.0.0.1:9' };

test('a task that is asked to stop ends its processes and reports its end', async () => {
  const server = await rehearsal(shell(`trap '' TERM; echo ready; while :; do sleep 0.1; done`));
  const spec = await taskOn(server, 'wait');
  const run = listener();
  const stop = new AbortController();
  const outcome = pool.run(spec, run.link, stop.signal);

  await run.heard('tool_execution_delta');
  stop.abort(new DroverError({ kind: 'aborted', by: 'user' }));
  expect(await outcome).toMatchObject({ status: 'cancelled', failure: { kind: 'aborted', by: 'user' } });

  expect(markedProcesses()).toEqual([]);
  expect(existsSync(join(spec.workspace, 'finally'))).toBe(true);
  expect(story(run.events()).slice(-4)).toEqual([
    expect.stringMatching(/^0 fails: ready/),
    'results shell failed',
    'incomplete: aborted',
    'session ends: incomplete',
  ]);
});

test('a task that ignores a stop is ended with its thread, and its end is reported', async () => {
  const spec = await taskOn(await rehearsal(shell('touch now; sleep 1000')), 'wait', { task: 'deaf' });
  const run = listener();
  const stop = new AbortController();
  const outcome = hasty.run(spec, run.link, stop.signal);

  await run.heard('tool_execution_start');
  await until(() => existsSync(join(spec.workspace, 'now')));
  stop.abort();
  expect(await outcome).toMatchObject({ status: 'cancelled', failure: { kind: 'aborted', by: 'user' } });
  expect(markedProcesses()).toEqual([]);
  expect(story(run.events()).slice(-3)).toEqual([
    expect.stringMatching(/^0 fails: UNCERTAIN: interrupted/),
    'incomplete: aborted',
    'session ends: incomplete',
  ]);
});

proves(
  'worker.lost-alone',
  'a thread that throws, exits, loops, hangs or exhausts its heap loses one attempt',
  async () => {
    const lost = await rehearsal(shell('touch now; sleep 1000'));
    const well = await rehearsal(shell('sleep 0.2; echo fine'));
    const kinds = ['throw', 'exit', 'heap', 'loop', 'deaf'];
    const poolFor = (kind: string | undefined) => (kind === 'loop' || kind === 'deaf' ? watchful : pool);
    const runs = kinds.map(() => listener());
    const specs = await Promise.all(kinds.map((task) => taskOn(lost, 'go wrong', { task })));

    const lostOutcomes = Promise.all(
      specs.map((spec, at) => ended(poolFor(kinds[at]).run(spec, runs[at]!.link, never))),
    );
    const others = await Promise.all(
      [1, 2].map(async () => pool.run(await taskOn(well, 'go well'), listener().link, never)),
    );
    expect(others.map(({ status }) => status)).toEqual(['finished', 'finished']);
    expect((await lostOutcomes).map(({ status, failure }) => ({ status, failure }))).toEqual(
      [/thrown on purpose/, /exited with code: 3/, /out of memory/, /no sign of life/, /no sign of life/].map(
        (message) => ({
          status: 'failed',
          failure: { kind: 'worker.lost', message: expect.stringMatching(message) },
        }),
      ),
    );
    expect(markedProcesses()).toEqual([]);
    for (const run of runs)
      expect(story(run.events()).slice(-4)).toEqual([
        '0 starts shell: touch now; sleep 1000',
        expect.stringMatching(/^0 fails: UNCERTAIN: the worker was lost/),
        'incomplete: worker.lost',
        'session ends: incomplete',
      ]);
    const again = await pool.run(await taskOn(well, 'go on'), listener().link, never);
    expect(again.status).toBe('finished');
  },
);

test('an exception in a task loses the attempt, and its thread is not reused', async () => {
  for (let time = 0; time < 2; time++) {
    const run = listener();
    expect(await hasty.run(await taskOn(NO_SERVER, 'x', { task: 'reject' }), run.link, never)).toEqual({
      status: 'failed',
      failure: { kind: 'worker.lost', message: 'rejection 1 of this thread' },
      summary: '',
      usage: NOTHING,
      refused: [],
    });
    expect(run.told).toEqual([]);
  }
});

test('a lost worker’s reservations are returned, charged with an estimate', async () => {
  const server = await rehearsal({
    answers: [{ text: { repeat: 'word ', times: 400 }, fault: { fault: 'silence', after: 100 } }],
  });
  const price = { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 };
  const spec = await taskOn(server, 'go', { task: 'throw' });
  const run = listener({ price: { price } });
  const outcome = ended(pool.run({ ...spec, model: { ...spec.model, price } }, run.link, never));
  await run.heard('text_delta');
  await writeFile(join(spec.workspace, 'now'), '');
  const { status, usage, cost } = await outcome;

  const { input } = usage;
  expect(status).toBe('failed');
  expect(usage).toEqual({ input, output: usage.output, cacheRead: 0, cacheWrite: 0, estimated: true });
  expect(input).toBeGreaterThan(0);
  expect(usage.output).toBeGreaterThan(0);
  expect(cost).toBeCloseTo((input + 2 * usage.output) / 1_000_000, 9);
  expect(run.settlements).toEqual([
    { usage, seen: { failure: { kind: 'worker.lost', message: 'thrown on purpose' } } },
  ]);
  expect(story(run.events()).slice(-3)).toEqual([
    'discards an attempt: worker.lost',
    'error: worker.lost',
    'session ends: error',
  ]);
});

test('eight threads with a thousand events a second are received whole and in order', async () => {
  const count = 1_000;
  const expected = Array.from({ length: count }, (_, at) => String(at));
  const runs = Array.from({ length: 8 }, () => listener());
  await Promise.all(
    runs.map(async ({ link }) =>
      pool.run(await taskOn(NO_SERVER, '', { task: 'flood', system: String(count) }), link, never),
    ),
  );
  for (const run of runs)
    expect(run.events().map((event) => (event.type === 'warning' ? event.message : event.type))).toEqual(expected);
});

test('no event of an attempt arrives after its end', async () => {
  const run = listener();
  const stop = new AbortController();
  const endless = await taskOn(NO_SERVER, '', { task: 'flood', mode: 'read' });
  const outcome = hasty.run(endless, run.link, stop.signal);
  await run.heard('warning');
  stop.abort();
  expect((await outcome).status).toBe('cancelled');
  const told = run.told.length;
  expect(story(run.events()).at(-1)).toBe('session ends: cancelled');
  await delay(100);
  expect(run.told.length).toBe(told);
});

test('a reused thread sends nothing from its previous task', async () => {
  const script = shell('cat note.txt; touch note.txt; pwd');
  const [first, second] = [await rehearsal(script), await rehearsal(script)];
  const single = poolOf({ threadsMax: 1 });
  await single.run(
    await taskOn(await rehearsal(shell('export A=1; echo first > note.txt')), 'leave something'),
    listener().link,
    never,
  );
  const workspace = await temporaryFolder();
  const folders = { workspace, outputFolder: join(workspace, '.outputs') };
  const [used, fresh] = [listener(), listener()];

  const outcome = await single.run(await taskOn(first, 'look', folders), used.link, never);
  await rm(join(workspace, 'note.txt'));
  expect(await runWorkerTask(await taskOn(second, 'look', folders), fresh.link, never)).toEqual(outcome);
  expect(comparable(used.told)).toEqual(comparable(fresh.told));
  expect(first.requests.map(({ rawBody }) => rawBody)).toEqual(second.requests.map(({ rawBody }) => rawBody));
});

test('tasks beyond the threads wait; those cancelled meanwhile never start', async () => {
  const single = poolOf({ threadsMax: 1 });
  const server = await rehearsal(shell('until [ -e go ]; do sleep 0.02; done'));
  const stop = new AbortController();
  const names = ['one', 'two', 'three', 'four', 'five'];
  const runs = await Promise.all(
    names.map(async (name) => ({ name, spec: await taskOn(server, name), ...listener() })),
  );
  const ends: string[] = [];
  const all = runs.map(async ({ name, spec, link }, at) => {
    const signal = at === 1 || at === 3 ? stop.signal : never;
    ends.push(`${name} ${(await single.run(spec, link, signal)).status}`);
  });
  await runs[0]?.heard('session_start');
  stop.abort();
  await Promise.all([all[1], all[3]]);
  for (const { spec } of runs) await writeFile(join(spec.workspace, 'go'), '');
  await Promise.all(all);
  expect(ends.toSorted()).toEqual([
    'five finished',
    'four cancelled',
    'one finished',
    'three finished',
    'two cancelled',
  ]);
  expect(ends.slice(0, 2).toSorted()).toEqual(['four cancelled', 'two cancelled']);
  expect([runs[1]?.told, runs[3]?.told]).toEqual([[], []]);
});

test('closing the pool cancels running tasks and waits for their end', async () => {
  const other = poolOf({ graceMs: 20_000 });
  const run = listener();
  const outcome = other.run(await taskOn(await rehearsal(shell('sleep 1000')), 'wait'), run.link, never);
  await run.heard('tool_execution_start');
  let isOver = false;
  void outcome.then(() => (isOver = true));
  await other.close();
  expect(isOver).toBe(true);
  expect(await outcome).toMatchObject({ status: 'cancelled', failure: { kind: 'aborted', by: 'shutdown' } });
  expect(markedProcesses()).toEqual([]);
});

test('a thread that cannot start is a lost worker, not an endless wait', async () => {
  const diagnoses: string[] = [];
  const broken = poolOf({
    entry: join(await temporaryFolder(), 'gone.ts'),
    onDiagnostic: (words, fields, level) => void diagnoses.push(`${level}: ${words} (${Object.keys(fields).join()})`),
  });
  const { status, failure } = await ended(broken.run(await taskOn(NO_SERVER, ''), listener().link, never));
  expect({ status, kind: failure?.kind }).toEqual({ status: 'failed', kind: 'worker.lost' });
  expect(diagnoses).toContain('warn: a thread without a task was lost (error)');
});
