// Work that does not fit together: conflicts, red gates and failures.

import { expect, test } from 'vitest';
import { calls, planned, RunDesk, statuses, submits, writes } from '../../support/run/run-desk.ts';

test('conflicting work is redone on the landed head, and lands', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { answers: [writes('a.txt', 'ONE\n'), submits('one')] },
      two: {
        answers: [writes('a.txt', 'TWO\n'), submits('two')],
        again: [writes('a.txt', 'ONE and TWO\n'), submits('both')],
      },
    }),
  );
  const { code, end, events } = await desk.run(['run', 'change a']);
  expect([code, statuses(end)]).toEqual([0, { one: 'landed', two: 'landed' }]);
  expect(end.run && desk.delivered(end.run)).toEqual({ 'a.txt': 'ONE and TWO' });
  const merges = events.flatMap((event) =>
    event.type === 'merge_end' ? [[event.task, event.outcome, event.again]] : [],
  );
  expect(merges).toEqual([
    ['one', 'landed', false],
    ['two', 'conflict', true],
    ['two', 'landed', false],
  ]);
  expect(end.tasks.map(({ task, attempts }) => [task, attempts])).toEqual([
    ['one', 1],
    ['two', 2],
  ]);
});

test('work that conflicts twice is kept on its own branch, and the rest is delivered', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { answers: [writes('a.txt', 'ONE\n'), submits('one')] },
      two: {
        answers: [writes('a.txt', 'TWO\n'), submits('two')],
        again: [writes('a.txt', 'ONE and TWO\n'), submits('both')],
      },
      // The second attempts of `two` and `three` begin at the same base, and `two` lands first.
      three: {
        answers: [writes('a.txt', 'THREE\n'), submits('three')],
        again: [writes('a.txt', 'ONE and THREE\n'), submits('both')],
      },
      four: { answers: [writes('b.txt', 'FOUR\n'), submits('four')] },
    }),
  );
  const { code, end, events } = await desk.run(['run', 'change a']);
  expect([code, statuses(end)]).toEqual([5, { one: 'landed', two: 'landed', three: 'conflict', four: 'landed' }]);
  const conflicts = events.flatMap((event) =>
    event.type === 'merge_end' && event.outcome === 'conflict' ? [[event.task, event.again]] : [],
  );
  expect(conflicts).toEqual([
    ['two', true],
    ['three', true],
    ['three', false],
  ]);
  const run = end.run ?? '';
  expect(desk.delivered(run)).toEqual({ 'a.txt': 'ONE and TWO', 'b.txt': 'FOUR' });
  expect(end.tasks[2]).toMatchObject({ attempts: 2, branch: `drover/${run}/three` });
  expect(desk.git('show', `drover/${run}/three:a.txt`)).toBe('ONE and THREE');
});

test('a second attempt that changes nothing has nothing to merge', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { answers: [writes('a.txt', 'ONE\n'), submits('one')] },
      two: { answers: [writes('a.txt', 'TWO\n'), submits('two')], again: [submits('one has done it')] },
      three: { answers: [writes('b.txt', 'THREE\n'), submits('three')] },
    }),
  );
  const { code, end } = await desk.run(['run', 'change a']);
  expect([code, statuses(end)]).toEqual([0, { one: 'landed', two: 'done', three: 'landed' }]);
});

test('of two changes that are red only together the later one is left out', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { answers: [writes('x.txt', '1\n'), submits('one')] },
      two: { answers: [writes('y.txt', '1\n'), submits('two')] },
      three: { answers: [writes('z.txt', '1\n'), submits('three')] },
    }),
  );
  const gate = 'test ! -e x.txt -o ! -e y.txt || { echo x and y do not go together; exit 1; }';
  const { code, end } = await desk.run(['run', 'make files', '--gate', gate]);
  expect([code, statuses(end)]).toEqual([3, { one: 'landed', two: 'gate_failed', three: 'landed' }]);
  expect(end.tasks[1]?.reason).toContain('x and y do not go together');
  expect(Object.keys(desk.delivered(end.run ?? ''))).toEqual(['a.txt', 'x.txt', 'z.txt']);
  // The failed task's work is kept.
  expect(desk.git('show', `drover/${end.run}/two:y.txt`)).toBe('1');
});

test('a failed task skips its dependents, and no other', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { answers: [{ stop: 'refusal', text: 'I will not.' }] },
      two: { dependsOn: ['one'], answers: [] },
      three: { answers: [writes('b.txt', '3\n'), submits('three')] },
    }),
  );
  const { code, end } = await desk.run(['run', 'change things']);
  expect([code, statuses(end)]).toEqual([3, { one: 'failed', two: 'skipped', three: 'landed' }]);
  expect(end.tasks[1]?.reason).toBe('it depends on one, which is failed');
});

test('tasks that read return an answer, merge nothing, and cannot write', async () => {
  const desk = await RunDesk.with(
    planned({
      look: {
        mode: 'read',
        answers: [writes('b.txt', 'no\n'), calls('read', { path: 'a.txt' }), submits('a says one')],
      },
    }),
  );
  const { code, end } = await desk.run(['run', 'what does a say?']);
  expect([code, statuses(end)]).toEqual([0, { look: 'done' }]);
  expect([end.tasks[0]?.summary, end.answer, end.delivered]).toEqual(['a says one', 'All is done.', undefined]);
});
