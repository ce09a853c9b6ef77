// One task, in this thread and in a worker thread, with equal results.

import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DroverError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import { foldSessionHistory } from '@drover/core/journal/history';
import type { JsonObject } from '@drover/protocol/json';
import type { Message } from '@drover/protocol/messages';
import { parsePermissionRule } from '@drover/core/permission/rules';
import { runWorkerTask } from '@drover/worker/task';
import type { Answer, Script } from '@drover/rehearsal/script';
import { expect, test } from 'vitest';
import { never, rehearsal } from '../support/agent.ts';
import { story } from '../support/story.ts';
import { ended, comparable, listener, poolOf, scripted, taskOn } from '../support/task.ts';

const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const OUT_OF_TIME: Failure = { kind: 'limit.reached', limit: 'time', message: 'the run is out of time' };
const KEPT = new Set(
  'session_start message_end tool_execution_start tool_execution_end usage done session_end'.split(' '),
);
const isAnswer = ({ type, message }: JsonObject): boolean =>
  type === 'message_end' && (message as unknown as Message).role === 'assistant';

const WRITES: Script = {
  answers: [
    { text: 'I write it.', calls: [{ name: 'write', args: { path: 'a.txt', content: 'hello\n' }, id: 'toolu_1' }] },
    { calls: [{ name: 'shell', args: { command: 'cat a.txt; sleep 0.01; echo there' }, id: 'toolu_2' }] },
    { calls: [{ name: 'submit_result', args: { summary: 'wrote a.txt', files: ['a.txt'] }, id: 'toolu_3' }] },
  ],
};

test('a task in this thread and one in a worker thread have equal events and outcomes', async () => {
  const [here, there] = [listener(), listener()];
  const hereSpec = await taskOn(await rehearsal(WRITES), 'write a.txt');
  const thereSpec = await taskOn(await rehearsal(WRITES), 'write a.txt', {
    workspace: hereSpec.workspace,
    outputFolder: hereSpec.outputFolder,
  });

  const outcome = await runWorkerTask(hereSpec, here.link, never);
  expect(await readFile(join(hereSpec.workspace, 'a.txt'), 'utf8')).toBe('hello\n');
  await rm(join(hereSpec.workspace, 'a.txt'));
  expect(await poolOf().run(thereSpec, there.link, never)).toEqual(outcome);

  expect(comparable(there.told)).toEqual(comparable(here.told));
  expect(there.settlements.map(({ usage }) => usage)).toEqual(here.settlements.map(({ usage }) => usage));
  expect(outcome).toEqual({ status: 'finished', summary: 'wrote a.txt', usage: outcome.usage, refused: [] });
  expect(story(there.events())).toMatchInlineSnapshot(`
    [
      "session starts",
      "user says write a.txt",
      "model says I write it., calls write (tool_calls)",
      "0 starts write: a.txt",
      "0 ends: created a.txt (1 line)",
      "results write ok",
      "model calls shell (tool_calls)",
      "0 starts shell: cat a.txt; sleep 0.01; echo there",
      "0 ends: hello there",
      "results shell ok",
      "model calls submit_result (tool_calls)",
      "0 starts submit_result {"summary":"wrote a.txt","files":["a.txt"]}",
      "0 ends: received",
      "results submit_result ok",
      "done",
      "session ends: done",
    ]
  `);
});

test('a worker’s events carry their turn and step', async () => {
  const { link, told } = listener();
  await runWorkerTask(await taskOn(await rehearsal(WRITES), 'write a.txt'), link, never);
  const kinds = new Set(['session_start', 'message_end', 'tool_execution_end', 'usage', 'done', 'session_end']);
  const places = told.filter(({ event }) => kinds.has(event.type)).map(({ event, at }) => [event.type, at]);
  const step = (number: number) => ({ turn: 1, step: number });
  expect(places).toEqual([
    ['session_start', { turn: 0, step: 0 }],
    ['message_end', step(0)],
    ...[1, 2, 3].flatMap((each) => [
      ['usage', step(each)],
      ['message_end', step(each)],
      ['tool_execution_end', step(each)],
      ['message_end', step(each)],
    ]),
    ['done', step(3)],
    ['session_end', step(3)],
  ]);
});

test('a worker is refused plans, and a reading task also writes; it may continue', async () => {
  const plan = { tasks: [{ id: 'a', title: 'A', prompt: 'do' }] };
  const server = await rehearsal({
    answers: [
      {
        calls: [
          { name: 'submit_plan', args: plan },
          { name: 'write', args: { path: 'a.txt', content: 'x' } },
          { name: 'edit', args: { path: 'a.txt', old: 'x', new: 'y' } },
          { name: 'list', args: {} },
        ],
      },
      { text: 'I only looked.' },
    ],
  });
  const spec = await taskOn(server, 'look', { mode: 'read' });
  const run = listener();
  expect(await runWorkerTask(spec, run.link, never)).toMatchObject({ status: 'finished', summary: 'I only looked.' });
  const outputs = run.events().flatMap((event) => (event.type === 'tool_execution_end' ? [event] : []));
  outputs.sort((a, b) => a.callIndex - b.callIndex);
  expect(outputs.map(({ name, output, isError }) => [name, isError ? output : 'ok'])).toEqual([
    ['submit_plan', 'Not allowed: workers cannot plan; do the task yourself'],
    ['write', 'Not allowed: this task is to look, and to change nothing'],
    ['edit', 'Not allowed: this task is to look, and to change nothing'],
    ['list', 'ok'],
  ]);
});

test('an outcome names the denied calls that stopped the worker', async () => {
  const shell = (command: string) => ({ name: 'shell', args: { command } });
  const rules = [parsePermissionRule('shell(curl*)', 'deny'), parsePermissionRule('shell(ls)', 'allow')];
  const policy = { rules, yes: false, contained: false };
  const run = async (...answers: readonly Answer[]) => {
    const spec = await taskOn(await rehearsal({ answers }), 'go', { policy });
    return (await runWorkerTask(spec, listener().link, never)).refused;
  };
  const curl = { calls: [shell('curl -s http://127.0.0.1:9'), shell('ls')] };
  expect(await run(curl, { calls: [shell('curl b'), shell('node c')] }, { text: 'I cannot.' })).toEqual([
    'curl b',
    'node c',
  ]);
  expect(await run(curl, { calls: [shell('ls')] }, { text: 'I went another way.' })).toEqual([]);
});

test('the outcome reports any provider failure', async () => {
  const server = await rehearsal({ answers: [{ text: 'x', fault: { fault: 'status', status: 401 } }] });
  expect(await runWorkerTask(await taskOn(server, 'go'), listener().link, never)).toMatchObject({
    status: 'failed',
    failure: { kind: 'provider.rejected', status: 401 },
    summary: '',
  });
});

test('a stopped task is cancelled; one that reaches its own limit has failed', async () => {
  const sleeping: Script = { answers: [{ calls: [{ name: 'shell', args: { command: 'sleep 1000' } }] }] };
  const limited = { limits: { stepsMax: 5, textCallRetriesMax: 0, timeoutMs: 200 } };
  const run = listener();
  const stop = new AbortController();
  void run.heard('tool_execution_start').then(() => stop.abort(new DroverError(OUT_OF_TIME)));
  const spec = await taskOn(await rehearsal(sleeping), 'go');
  expect(await runWorkerTask(spec, run.link, stop.signal)).toMatchObject({ status: 'cancelled', failure: OUT_OF_TIME });
  const other = await taskOn(await rehearsal(sleeping), 'go', limited);
  expect(await runWorkerTask(other, listener().link, never)).toMatchObject({
    status: 'failed',
    failure: { kind: 'limit.reached', limit: 'time' },
  });
});

test('a task begins with its seed: shared bytes first, then its own text', async () => {
  const seed: readonly Message[] = [
    { role: 'user', content: [{ type: 'text', text: 'The goal.' }] },
    { role: 'assistant', content: [{ type: 'text', text: 'The plan.' }], stop: 'stop', usage: NOTHING },
  ];
  const server = await rehearsal({
    answers: [{ text: 'x', fault: { fault: 'status', status: 400 } }, { text: 'Mine.' }],
  });
  const spec = await taskOn(server, 'your part', { seed });
  expect((await runWorkerTask(spec, listener().link, never)).summary).toBe('');
  expect((await runWorkerTask(spec, listener().link, never)).summary).toBe('Mine.');
  const [one, two] = server.requests.map(
    ({ body }) => body as { readonly messages: readonly { readonly content: unknown }[] },
  );
  expect(two).toEqual(one);
  expect(JSON.stringify(one?.messages).match(/The goal\.|The plan\.|your part/g)).toEqual([
    'The goal.',
    'The plan.',
    'your part',
  ]);
});

test('a question crosses the wire, and the run decides if the call runs', async () => {
  const server = await rehearsal({
    answers: [
      {
        calls: ['touch a', 'touch b'].map((command) => ({ name: 'shell', args: { command: `node -e 1; ${command}` } })),
      },
      { text: 'done' },
    ],
  });
  const spec = await taskOn(server, 'go', { policy: { rules: [], yes: false, contained: false } });
  const run = listener({
    question: async ({ subject }) => ({ allowed: subject.endsWith('touch a'), by: 'user', always: false }),
  });
  expect(await poolOf().run(spec, run.link, never)).toMatchObject({
    status: 'finished',
    refused: ['node -e 1; touch b'],
  });
  expect([existsSync(join(spec.workspace, 'a')), existsSync(join(spec.workspace, 'b'))]).toEqual([true, false]);
  expect(story(run.events()).filter((line) => /is (?:allowed|denied)/.test(line))).toEqual([
    '0 is allowed by user',
    '1 is denied by user',
  ]);
});

test('with a history a task resumes after its last completed step', async () => {
  const server = await rehearsal({ ...WRITES, order: 'conversation' });
  const first = listener();
  const spec = await taskOn(server, 'write a.txt');
  const whole = await runWorkerTask(spec, first.link, never);
  const records = first.told.map(({ event, at }, seq) => ({ seq, ...at, ...event }) as unknown as JsonObject);
  const answered = (count: number) => records.slice(0, count).filter(isAnswer).length;
  const pool = poolOf({ threadsMax: 1 });

  // Deltas are not stored, so only stored events are places to cut.
  const cuts = first.told.flatMap(({ event: { type } }, at) => (KEPT.has(type) ? [at + 1] : []));
  for (const cut of cuts) {
    const past = foldSessionHistory(records.slice(0, cut));
    if (past === undefined || past.turn === 0) continue;
    const before = server.requests.length;
    const run = cut % 5 === 0 ? pool.run : runWorkerTask;
    const outcome = await ended(run({ ...spec, begin: { resume: true }, past }, listener().link, never));
    expect({ status: outcome.status, summary: outcome.summary }).toEqual({
      status: 'finished',
      summary: whole.summary,
    });
    expect(server.requests.length - before).toBe(3 - answered(cut));
  }
  expect(server.rejections).toBe(0);
});

test('a resumed task knows which calls were refused', async () => {
  const answers = [{ calls: [{ name: 'shell', args: { command: 'curl b' } }] }, { text: 'I cannot.' }];
  const policy = { rules: [parsePermissionRule('shell(curl*)', 'deny')], yes: false, contained: false };
  const spec = await taskOn(await rehearsal({ answers, order: 'conversation' }), 'go', { policy });
  const first = listener();
  await runWorkerTask(spec, first.link, never);
  const records = first.told.map(({ event, at }, seq) => ({ seq, ...at, ...event }) as unknown as JsonObject);
  const counts = new Set<number>();
  for (const cut of records.keys()) {
    const type = records[cut]?.['type'];
    if (typeof type !== 'string' || !KEPT.has(type)) continue;
    const past = foldSessionHistory(records.slice(0, cut + 1));
    if (past === undefined || past.turn === 0) continue;
    const { refused } = await runWorkerTask({ ...spec, begin: { resume: true }, past }, listener().link, never);
    counts.add(refused.length);
  }
  expect([...counts]).toEqual([1]);
});

test('a task with few large results finishes, and its assignment stays unchanged', async () => {
  const counts = { calls: Array.from({ length: 12 }, () => ({ name: 'shell', args: { command: 'seq 1 6100' } })) };
  const summary = { when: { system: 'condense the history' }, text: 'Numbers were counted.' };
  const submits = { calls: [{ name: 'submit_result', args: { summary: 'counted' } }] };
  const seed: readonly Message[] = [{ role: 'user', content: [{ type: 'text', text: 'the goal of all' }] }];
  const server = await rehearsal({
    answers: [summary, counts, counts, counts, submits],
    contextTokens: 40_000,
  });
  const spec = await taskOn(server, 'the very assignment', { seed, model: scripted(40_000) });
  const outcome = await runWorkerTask(spec, listener().link, never);
  expect([outcome.status, outcome.summary, outcome.failure]).toEqual(['finished', 'counted', undefined]);
  const last = JSON.stringify(server.requests.at(-1)?.body);
  expect([last.includes('the goal of all'), last.includes('the very assignment')]).toEqual([true, true]);
});
