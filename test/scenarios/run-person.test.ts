// A person at the terminal: sees the plan before anything is spent on it, may change it, and is asked for
// what workers may not do by themselves.

import { expect, test } from 'vitest';
import { calls, planned, RunDesk, statuses, submits, writes } from '../support/run-desk.ts';

const TWO = {
  one: { answers: [writes('one.txt', '1\n'), submits('one')] },
  two: { answers: [writes('two.txt', '2\n'), submits('two')] },
};

test('a plan that is not approved is not carried out, and nothing is spent on it', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const { code, end, stderr } = await desk.run(['run', 'make two files'], { typed: ['n'] });
  expect([code, end.outcome, end.tasks]).toEqual([130, 'cancelled', []]);
  expect(stderr).toContain('  one: do one\n  two: do two\n  Carry out this plan? [y]es [n]o [e]dit: ');
  expect(desk.server.requests.map(({ agent }) => agent)).toEqual(['default']);
});

test('a plan can be changed before it is carried out, and workers are told the new words', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const editor = `sed -i -e '/id: two/,$d' -e 's/Please do one/Please do it well/'`;
  const { code, end, stderr } = await desk.run(['run', 'make two files'], {
    typed: ['e', 'y'],
    env: { EDITOR: editor },
  });
  expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
  expect(stderr.match(/one: do one/g)).toHaveLength(2);
  const asked = JSON.stringify(desk.server.requests.find(({ agent }) => agent === 'one')?.body);
  expect(asked.split('Your task is one')[1]).toContain('Please do it well.');
});

test('a changed plan that makes no sense is refused with its line, and can be changed again', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const { code, stderr } = await desk.run(['run', 'make two files'], {
    typed: ['e', 'n'],
    env: { EDITOR: `sed -i 's/id: two/id: one/'` },
  });
  expect([code, stderr]).toEqual([130, expect.stringContaining('plan.yaml:5:5: the id "one" is used twice')]);
});

test('a worker’s question says whose it is, and its answer goes to that worker', async () => {
  const desk = await RunDesk.with(
    planned({ one: { answers: [calls('shell', { command: 'make it' }), writes('one.txt', '1\n'), submits('one')] } }),
  );
  const { end, stderr, events } = await desk.run(['run', 'make it', '--sandbox', 'off'], { typed: ['y', 'n'] });
  expect(stderr).toContain('Allow one to use shell: make it? ');
  expect(statuses(end)).toEqual({ one: 'landed' });
  const decisions = events.flatMap((event) =>
    event.type === 'permission_decision' ? [[event.task, event.allowed]] : [],
  );
  expect(decisions).toEqual([['one', false]]);
});
