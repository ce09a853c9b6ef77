// A user at the terminal: sees and edits the plan before execution, and answers workers' questions.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, statuses, submits, writes } from '../../support/run/run-desk.ts';

const TWO = {
  one: { answers: [writes('one.txt', '1\n'), submits('one')] },
  two: { answers: [writes('two.txt', '2\n'), submits('two')] },
};

const DECLINED = 'the plan was not approved, so it was not carried out';

test('a rejected plan is not executed, and nothing more is spent', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const { code, end, stderr } = await desk.run(['run', 'make two files'], { typed: ['n'] });
  expect([code, end.outcome, end.tasks]).toEqual([8, 'cancelled', []]);
  expect([end.failure, end.reason]).toEqual([{ kind: 'plan.declined' }, DECLINED]);
  expect(stderr).toContain('  one: do one\n  two: do two\n  Carry out this plan? [y]es [n]o [e]dit: ');
  expect(desk.server.requests.map(({ agent }) => agent)).toEqual(['default']);
});

test('resume shows a rejected plan again, and then executes it', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const { end } = await desk.run(['run', 'make two files'], { typed: ['n'] });
  const shown = await desk.drover(['show', end.run ?? '']);
  expect(shown.stdout).toContain(DECLINED);
  expect(shown.stdout).toMatch(/drover resume \S+ +look at the plan again/);
  const again = await desk.run(['resume', end.run ?? ''], { typed: ['y'] });
  expect([again.code, statuses(again.end)]).toEqual([0, { one: 'landed', two: 'landed' }]);
});

test('resume shows a plan whose question was interrupted, without planning again', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const atQuestion = (_: string, stderr: string) => stderr.includes('Carry out this plan?');
  const ran = await desk.interrupted(['run', 'make two files'], atQuestion, { typed: [undefined] });
  expect(ran.code).toBe(130);
  const listed = await desk.drover(['runs'], { columns: 120 });
  expect(listed.stdout).toContain('plan waits for approval');
  const before = desk.server.requests.length;
  const again = await desk.run(['resume'], { typed: ['y'] });
  expect(again.stderr).toContain('  one: do one\n  two: do two\n  Carry out this plan?');
  expect([again.code, statuses(again.end)]).toEqual([0, { one: 'landed', two: 'landed' }]);
  const asked = desk.server.requests.slice(before).map(({ agent }) => agent);
  expect(asked.toSorted()).toEqual(['default', 'one', 'one', 'two', 'two']);
});

test('landings are delivered when a further plan is rejected', async () => {
  const [first, second] = ['one', 'two'].map((id) => ({
    id,
    title: `do ${id}`,
    prompt: `Please do ${id}.`,
    dependsOn: [],
    files: [],
    mode: 'write',
  }));
  const coordinator = [calls('submit_plan', { tasks: [first ?? {}] }), calls('submit_plan', { tasks: [second ?? {}] })];
  const { agents } = planned(TWO);
  const desk = await RunDesk.with({ answers: coordinator, ...(agents !== undefined && { agents }) });
  const { code, end } = await desk.run(['run', 'make two files'], { typed: ['y', 'n'] });
  expect([code, end.outcome, end.failure?.kind, statuses(end)]).toEqual([
    8,
    'incomplete',
    'plan.declined',
    { one: 'landed' },
  ]);
  expect(end.delivered?.branch).toMatch(/^drover\/[a-z0-9-]+-[0-9a-f]{6}$/);
});

test('a plan can be edited before execution, and workers get the new text', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const editor = `sed -i -e '/id: two/,$d' -e 's/Please do one/Please do it well/'`;
  const { code, end, stderr } = await desk.run(['run', 'make two files'], {
    typed: ['e', 'y'],
    env: { VISUAL: '', EDITOR: editor },
  });
  expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
  expect(stderr.match(/one: do one/g)).toHaveLength(2);
  const asked = JSON.stringify(desk.server.requests.find(({ agent }) => agent === 'one')?.body);
  expect(asked.split('Your task is one')[1]).toContain('Please do it well.');
});

test('an invalid edit of a plan is offered again with the error', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const editor = join(desk.folder, 'editor.sh');
  const [mend, spoil] = ["sed -i '0,/id: uno/s//id: first/'", "sed -i 's/id: [a-z]*/id: uno/'"];
  await writeFile(editor, `if grep -q uno "$1"; then ${mend} "$1"; else ${spoil} "$1"; fi\n`);
  const { stderr } = await desk.run(['run', 'make two files'], {
    typed: ['e', 'e', 'n'],
    env: { EDITOR: `sh ${editor}` },
  });
  const [, refused = '', mended = ''] = stderr.split(/\[n\]o \[e\]dit[^:]*: /);
  expect(refused).toMatch(/plan\.yaml:5:5: the id "uno" is used twice\n/);
  expect(refused).toContain('Your edit is kept: [e]dit opens it again, [y]es takes the plan above.');
  expect(mended).toContain('  first: do one\n  uno: do two\n');
});

test('a worker’s question names it, and the answer goes to that worker', async () => {
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
