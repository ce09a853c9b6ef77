// A user at the terminal: sees and edits the plan before execution, and answers workers' questions.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, says, statuses, submits, writes } from '../../support/run/run-desk.ts';

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
  expect(stderr).toContain('  one: do one\n  two: do two\n  Carry out this plan? [y]es [n]o [e]dit [c]omment: ');
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

test('resume without a terminal does not execute a rejected plan unless --yes is given', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const { end } = await desk.run(['run', 'make two files'], { typed: ['n'] });
  const before = desk.server.requests.length;
  const refused = await desk.drover(['resume']);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringMatching(/the plan of run \S+ was declined, .*no terminal.*: drover resume \S+ --yes\n/),
  ]);
  expect(desk.server.requests).toHaveLength(before);
  const again = await desk.run(['resume', end.run ?? '', '--yes']);
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

test('an invalid edit of a plan reopens the editor with the text as typed', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const editor = join(desk.folder, 'editor.sh');
  const [mend, spoil] = ["sed -i '0,/id: uno/s//id: first/'", "sed -i 's/id: [a-z]*/id: uno/'"];
  const seen = join(desk.folder, 'seen');
  await writeFile(
    editor,
    `head -n 1 "$1" >> ${seen}\nif grep -q 'id: uno' "$1"; then ${mend} "$1"; else ${spoil} "$1"; fi\n`,
  );
  const { stderr } = await desk.run(['run', 'make two files'], { typed: ['e', 'n'], env: { EDITOR: `sh ${editor}` } });
  expect(await readFile(seen, 'utf8')).toMatch(/^# The plan.*\n# plan\.yaml:6:5: the id "uno" is used twice\n$/);
  expect(stderr).toContain('  first: do one\n  uno: do two\n');
});

test('an edit that stays invalid is kept, and can be opened again', async () => {
  const desk = await RunDesk.with(planned(TWO));
  const { stderr } = await desk.run(['run', 'make two files'], {
    typed: ['e', 'n'],
    env: { EDITOR: "sed -i 's/id: [a-z]*/id: uno/'" },
  });
  expect(stderr).toContain('the id "uno" is used twice\n');
  expect(stderr).toContain('Your edit is kept: [e]dit opens it again, [y]es takes the plan above.');
});

test('a comment goes back to the coordinator, which submits a new plan', async () => {
  const { agents } = planned(TWO);
  const task = (id: string) => ({ id, title: `do ${id}`, prompt: `Please do ${id}.` });
  const desk = await RunDesk.with({
    order: 'conversation',
    answers: [
      calls('submit_plan', { tasks: [task('one')] }),
      calls('submit_plan', { tasks: [task('two')] }),
      says('Done.'),
    ],
    ...(agents !== undefined && { agents }),
  });
  const { code, end, events, stderr } = await desk.run(['run', 'make two files'], {
    typed: ['c', 'rather do two', 'y'],
  });
  expect([code, statuses(end)]).toEqual([0, { two: 'landed' }]);
  expect(stderr).toContain('What should change?');
  const told = events.flatMap((event) => {
    if (event.type === 'plan_proposed') return [event.tasks.map(({ id }) => id).join()];
    return event.type === 'plan_comment'
      ? [event.comment]
      : event.type === 'plan_ready'
        ? [`round ${event.round}`]
        : [];
  });
  expect(told).toEqual(['one', 'rather do two', 'two', 'round 1']);
  const second = desk.server.requests.filter(({ agent }) => agent === 'default')[1];
  expect(JSON.stringify(second?.body)).toContain('The user says:\\nrather do two');
});

test('resume continues after a comment without asking for the first plan again', async () => {
  const { agents } = planned(TWO);
  const task = (id: string) => ({ id, title: `do ${id}`, prompt: `Please do ${id}.` });
  const desk = await RunDesk.with({
    order: 'conversation',
    answers: [
      calls('submit_plan', { tasks: [task('one')] }),
      calls('submit_plan', { tasks: [task('two')] }),
      says('Done.'),
    ],
    ...(agents !== undefined && { agents }),
  });
  const atSecond = (_: string, stderr: string) => stderr.includes('two: do two');
  const cut = await desk.interrupted(['run', 'make it', '--workers', '0'], atSecond, { typed: ['c', 'no', undefined] });
  expect(cut.code).toBe(130);
  const before = desk.server.requests.length;
  const { code, end } = await desk.run(['resume'], { typed: ['y'] });
  expect([code, statuses(end)]).toEqual([0, { two: 'landed' }]);
  expect(
    desk.server.requests
      .slice(before)
      .map(({ agent }) => agent)
      .toSorted(),
  ).toEqual(['default', 'two', 'two']);
});

test('a plan from a file offers no comment, since no coordinator would hear it', async () => {
  const desk = await RunDesk.with(planned(TWO));
  await writeFile(join(desk.folder, 'plan.yaml'), 'tasks: [{id: one, prompt: Please do one.}]\n');
  const { stderr } = await desk.run(['run', 'go', '--plan', '../plan.yaml'], { typed: ['c', 'n'] });
  expect(stderr).toContain('[y]es [n]o [e]dit: ');
  expect(stderr).not.toContain('[c]omment');
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
