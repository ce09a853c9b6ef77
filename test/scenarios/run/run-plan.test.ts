// Plans: submitted, refused, replaced, saved, and executed from a file.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, says, statuses, submits, writes } from '../../support/run/run-desk.ts';

const task = (id: string, more: object = {}) => ({ id, title: `do ${id}`, prompt: `Please do ${id}.`, ...more });
const worker = (id: string, path: string) => ({
  [id]: { assigned: `Your task is ${id}:`, answers: [writes(path, `${id}\n`), submits(id)] },
});

test('an invalid plan is returned with its problems, and the next one is executed', async () => {
  const desk = await RunDesk.with({
    order: 'conversation',
    answers: [
      calls('submit_plan', { tasks: [task('a', { dependsOn: ['b'] })] }),
      calls('submit_plan', { tasks: [task('a')] }),
      says('done'),
    ],
    agents: worker('a', 'b.txt'),
  });
  const { code, end, events } = await desk.run(['run', 'do it']);
  expect([code, statuses(end)]).toEqual([0, { a: 'landed' }]);
  const refused = events.find((event) => event.type === 'tool_execution_end' && event.isError);
  expect(refused).toMatchObject({
    output: 'The plan can\'t be carried out:\n- "a" depends on "b", which isn\'t there',
  });
});

test('after three invalid plans the whole goal is one task, with a note', async () => {
  const senseless = calls('submit_plan', { tasks: [task('a', { dependsOn: ['a'] })] });
  const desk = await RunDesk.with({
    order: 'conversation',
    answers: [senseless, senseless, senseless, says('done')],
    agents: worker('goal', 'b.txt'),
  });
  const { code, end, events } = await desk.run(['run', 'do it all']);
  expect([code, statuses(end)]).toEqual([0, { goal: 'landed' }]);
  expect(events.filter(({ type }) => type === 'warning')).toHaveLength(1);
  expect(events.find((event) => event.type === 'plan_ready')).toMatchObject({ by: 'fallback' });
});

test('a further plan retries a failed task under the same id', async () => {
  const desk = await RunDesk.with({
    order: 'conversation',
    answers: [
      calls('submit_plan', { tasks: [task('a'), task('b')] }),
      calls('submit_plan', { tasks: [task('b', { title: 'do b better', dependsOn: ['a'] })] }),
      says('both are done'),
    ],
    agents: {
      ...worker('a', 'a2.txt'),
      better: { assigned: 'Your task is b: do b better', answers: [writes('b2.txt', 'b\n'), submits('b')] },
      b: { assigned: 'Your task is b:', answers: [{ stop: 'refusal', text: 'no' }] },
    },
  });
  const { code, end, events } = await desk.run(['run', 'do it']);
  expect([code, statuses(end)]).toEqual([0, { a: 'landed', b: 'landed' }]);
  expect(events.flatMap((event) => (event.type === 'plan_ready' ? [event.round] : []))).toEqual([1, 2]);
  // The call that submitted the first plan gets that plan's outcome as its result.
  const result = events.find((event) => event.type === 'tool_execution_end' && event.name === 'submit_plan');
  expect(result).toMatchObject({
    isError: false,
    output: expect.stringContaining('b: failed\n  because the model declined: '),
  });
});

test('no more plans are made than --rounds allows', async () => {
  const desk = await RunDesk.with({
    order: 'conversation',
    answers: [
      calls('submit_plan', { tasks: [task('a')] }),
      calls('submit_plan', { tasks: [task('b')] }),
      says('so be it'),
    ],
    agents: { ...worker('a', 'x.txt'), ...worker('b', 'y.txt') },
  });
  const { code, end } = await desk.run(['run', 'do it', '--rounds', '1']);
  expect([code, statuses(end), end.answer]).toEqual([0, { a: 'landed' }, 'so be it']);
});

test('a question is answered without a plan', async () => {
  const desk = await RunDesk.with({ order: 'conversation', answers: [says('It says one.')] });
  const { code, end } = await desk.run(['run', 'what does a.txt say?']);
  expect([code, end.outcome, end.answer, end.tasks]).toEqual([0, 'done', 'It says one.', []]);
});

test('if the final report fails, the results are the report', async () => {
  const { answers: [plan] = [], ...script } = planned({ a: { answers: [writes('b.txt', 'b\n'), submits('a')] } });
  const desk = await RunDesk.with({
    ...script,
    answers: [plan ?? says(''), { fault: { fault: 'status', status: 400 } }],
  });
  const { code, end } = await desk.run(['run', 'do it']);
  expect([code, statuses(end), end.delivered?.branch]).toEqual([
    0,
    { a: 'landed' },
    expect.stringMatching(/^drover\/[a-z0-9-]+-[0-9a-f]{6}$/),
  ]);
});

test('drover plan saves a plan that drover run executes without a planning request', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { answers: [writes('one.txt', '1\n'), submits('one')], files: ['one.txt'] },
      two: { dependsOn: ['one'], answers: [writes('two.txt', '2\n'), submits('two')] },
    }),
  );
  const saved = await desk.drover(['plan', 'make two files', '--out', '../plan.yaml']);
  expect([saved.code, saved.stdout]).toEqual([0, '']);
  expect(await readFile(join(desk.folder, 'plan.yaml'), 'utf8')).toBe(
    'goal: make two files\ntasks:\n  - id: one\n    title: do one\n    prompt: Please do one.\n    files:\n      - one.txt\n  - id: two\n    title: do two\n    prompt: Please do two.\n    dependsOn:\n      - one\n',
  );
  const before = desk.server.requests.length;
  const { code, end } = await desk.run(['run', '--plan', '../plan.yaml']);
  expect([code, statuses(end)]).toEqual([0, { one: 'landed', two: 'landed' }]);
  expect(desk.server.requests.slice(before).map(({ agent }) => agent)).toEqual(['one', 'one', 'two', 'two']);
});

test('drover plan on a terminal ends with the plan, not as interrupted', async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [] }, two: { answers: [] } }));
  const { code, stderr } = await desk.drover(['plan', 'do both', '--out', '../plan.yaml'], { columns: 80 });
  expect(code).toBe(0);
  expect(stderr).toContain('submit_plan');
  expect(stderr).toMatch(/\n2 tasks; run them with: drover run --plan \.\.\/plan\.yaml\n$/);
  expect(stderr).not.toMatch(/interrupted|incomplete/);
});

test.each([
  ['tasks: [{id: a, prompt: x, dependsOn: [b]}]', 'plan.yaml:1:9: "a" depends on "b", which isn\'t there'],
  [
    'tasks:\n  - {id: a, prompt: x, dependsOn: [b]}\n  - {id: b, prompt: x, dependsOn: [a]}',
    'plan.yaml:2:5: these tasks wait for each other: a → b → a',
  ],
  ['tasks:\n  - {id: a, promt: x}', "plan.yaml:2:13: unknown key 'promt'; did you mean prompt?"],
  ['', 'plan.yaml:1:1: the plan is empty; it needs tasks'],
  ['tasks: [', 'plan.yaml:1:9: '],
])('an invalid plan file is refused with its line: %j', async (text, expected) => {
  const desk = await RunDesk.with({ answers: [] });
  await writeFile(join(desk.repository, 'plan.yaml'), text);
  const { code, stderr } = await desk.drover(['run', 'x', '--plan', 'plan.yaml']);
  expect([code, stderr]).toEqual([2, expect.stringContaining(expected)]);
  expect(desk.server.requests).toEqual([]);
});
