// The dashboard as a tool: a real run in threads, keys pressed on its terminal, and the screen that answers.

import type { Script } from '@drover/rehearsal/script';
import { expect, test, vi } from 'vitest';
import { calls, planned, submits, writes } from '../../support/run/run-desk.ts';
import { deskWith, KEY, OperatedRun, waitsFor } from './operated.ts';

vi.setConfig({ testTimeout: 180_000 });

const YES = ['--yes', '--workers', '3'];

/** alpha writes tabs, unless the user tells it to use spaces. */
function steered(folder: string): Script {
  return planned({
    alpha: {
      answers: [
        { when: { text: 'use spaces' }, text: 'Spaces it **is**.', calls: writesOf('two  spaces\n'), times: 1 },
        { when: { tool: 'write' }, ...waitsFor(folder, 'end') },
        { when: { text: 'went on' }, ...submits('done'), times: 1 },
        { text: 'I look at the tabs first.', ...waitsFor(folder, 'go') },
      ],
    },
    beta: { answers: [waitsFor(folder, 'end'), submits('done')] },
  });
}

const writesOf = (content: string) => writes('made.txt', content).calls ?? [];

const LOOKS = [
  ['without colour', { NO_COLOR: '1' }],
  ['with colour', { NO_COLOR: '', FORCE_COLOR: '1' }],
] as const;

test.each(LOOKS)('a user selects, opens, steers and reads the diff of a task, %s', async (_, env) => {
  const desk = await deskWith(steered);
  const run = await OperatedRun.start(desk, { env, argv: YES, size: { columns: 110, rows: 40 } });
  await run.see(/alpha +running/, /beta +running/, '? keys');
  await run.press('j');
  await run.see(/› . beta/);
  await run.press(`k${KEY.enter}`);
  await run.see('alpha · conversation', 'I look at the tabs first.', /▸ shell: until/);
  await run.press('suse spaces');
  await run.see('to alpha › use spaces');
  await run.press(KEY.enter);
  await run.see('queued: use spaces', 'sent to alpha', /alpha .*1 of your messages waits/);
  await run.allow('go');
  const talk = await run.see(/Spaces it (\*\*)?is/, '› use spaces', /✓ write: made\.txt/);
  expect(talk).not.toContain('queued:');
  expect(talk).toMatch(/beta +running/);
  await run.press('d');
  await run.see('alpha · changes', '+two  spaces');
  await run.press('l');
  await run.see('alpha · log', 'task_message_delivered');
  await run.press(KEY.escape);
  await run.see(/^(?![^]*alpha · log)/);
  await run.allow('end');
  expect(await run.ended).toBe(0);
  expect(desk.delivered((await run.records())[0]?.['run'] as string)).toMatchObject({ 'made.txt': 'two  spaces' });
  const told = (await run.records()).flatMap(({ type, text, task }) =>
    type === 'task_message' || type === 'task_message_delivered'
      ? [{ type, task, ...(text !== undefined && { text }) }]
      : [],
  );
  expect(told).toEqual([
    { type: 'task_message', task: 'alpha', text: 'use spaces' },
    { type: 'task_message_delivered', task: 'alpha' },
  ]);
  expect(run.terminal.raw.includes('\u001B[1m')).toBe('FORCE_COLOR' in env);
});

test('a user retries a failed task while others work, with what was skipped for it', async () => {
  const refused = { fault: { fault: 'status', status: 400, message: 'no such model' } } as const;
  const desk = await deskWith((folder) =>
    planned({
      alpha: { answers: [{ ...refused, times: 1, when: { step: 1 } }, writes('a2.txt', 'a\n'), submits('done')] },
      after: { dependsOn: ['alpha'], answers: [writes('after.txt', 'b\n'), submits('done')] },
      beta: { answers: [writes('b.txt', 'b\n'), waitsFor(folder, 'end'), submits('done')] },
    }),
  );
  const run = await OperatedRun.start(desk, { argv: YES });
  await run.see(/alpha +failed/, /after +skipped/, /beta +running/);
  await run.press('r');
  await run.see('beta has not failed');
  await run.press('jr');
  // It lands behind the tasks that are at work.
  await run.see(/alpha +merging .*attempt 2/, /after +waiting/);
  await run.allow('end');
  expect(await run.ended).toBe(0);
  expect(await run.see('3 of 3 tasks landed')).toContain('after.txt');
});

test('questions wait in a panel under live rows, each answered by its own key', async () => {
  const asks = (command: string) => calls('shell', { command });
  const desk = await deskWith((folder) =>
    planned({
      alpha: { answers: [asks('echo one && echo two'), submits('done')] },
      beta: {
        answers: [{ when: { text: 'not that file' }, ...submits('stopped') }, asks(`touch '${folder}/touched'`)],
      },
      gamma: { answers: [{ text: 'word '.repeat(400), tokensPerSecond: 60 }, submits('done')] },
    }),
  );
  const run = await OperatedRun.start(desk, {
    argv: ['--workers', '3', '--turns', '20'],
    size: { columns: 90, rows: 30 },
  });
  const first = await run.see('1 of 2 questions', /gamma +thinking/);
  expect(first).toContain('why:');
  expect(first).toContain('always: allows shell with exactly this, for every worker, until this run ends');
  const [one, two] = first.includes('echo one && echo two') ? ['alpha', 'beta'] : ['beta', 'alpha'];
  expect(first).toContain(`${one} asks`);
  // However little of the question fits, its keys are there.
  run.terminal.resize({ columns: 40, rows: 9 });
  await run.see(/ 2 mo…[^]*\ny once · a always · n no/);
  run.terminal.resize({ columns: 90, rows: 30 });
  await run.see('always: allows');
  const moved = /gamma +thinking +\d+s/.exec(first)?.[0];
  await run.see(new RegExp(`^(?![^]*${moved})[^]*1 of 2 questions`));
  const answer = async (task: string) => {
    await run.see(`${task} asks`);
    if (task === 'alpha') return run.press('yy');
    await run.press('w');
    await run.press(`not that file${KEY.enter}`);
  };
  // The second y of two does not answer the next question, which was not on the screen yet.
  await answer(one ?? '');
  await answer(two ?? '');
  await run.ended;
  const decisions = (await run.records()).filter(({ type }) => type === 'permission_decision');
  expect(Object.fromEntries(decisions.map(({ task, allowed, reason }) => [task, reason ?? allowed]))).toEqual({
    alpha: true,
    beta: 'the user said no: not that file',
  });
  expect(run.terminal.raw.split('\u0007')).toHaveLength(2);
});

test('a task that the user cancels stays cancelled, and its dependents are skipped', async () => {
  const desk = await deskWith((folder) =>
    planned({
      alpha: { answers: [waitsFor(folder, 'never'), submits('done')] },
      after: { dependsOn: ['alpha'], answers: [submits('done')] },
      beta: { answers: [writes('b.txt', 'b\n'), waitsFor(folder, 'end'), submits('done')] },
    }),
  );
  const run = await OperatedRun.start(desk, { argv: YES });
  await run.see(/alpha +running/, /beta +running/);
  await run.press('x');
  await run.see('Cancel alpha?');
  await run.press('n');
  await run.see('? keys');
  await run.press('x');
  await run.press('y');
  await run.see(/alpha +cancelled .*the user cancelled it/, /after +skipped/, /beta +running/);
  await run.allow('end');
  expect(await run.ended).toBe(3);
  const resumed = await desk.drover(['resume', '--workers', '0', '--sandbox', 'off', '--yes']);
  expect(resumed.code).toBe(2);
  expect(resumed.stderr).toContain('no run or session was interrupted');
});

test('while the user pauses the run, no task starts', async () => {
  const desk = await deskWith((folder) =>
    planned({
      alpha: { answers: [waitsFor(folder, 'go'), submits('done')] },
      beta: { answers: [submits('done')] },
    }),
  );
  const run = await OperatedRun.start(desk, { argv: ['--yes', '--workers', '1'] });
  await run.see(/alpha +running/, /beta +waiting/);
  await run.press('p');
  await run.see(/· paused ·/);
  await run.allow('go');
  await run.see(/alpha +no change/, /beta +waiting/);
  await run.press('p');
  expect(await run.ended).toBe(0);
  const order = (await run.records()).flatMap(({ type, task, paused }) => {
    if (type !== 'run_pause' && type !== 'task_start') return [];
    return [task ?? paused];
  });
  expect(order).toEqual(['alpha', true, false, 'beta']);
});

test('q asks before it stops the run', async () => {
  const desk = await deskWith((folder) => planned({ alpha: { answers: [waitsFor(folder, 'never')] } }));
  const run = await OperatedRun.start(desk, { argv: YES });
  await run.see(/alpha +running/);
  await run.press('q');
  await run.see('Stop the run?');
  await run.press('x');
  await run.see('? keys');
  await run.press('q');
  await run.press('y');
  expect(await run.ended).toBe(130);
});

test('a resize from 200x50 to 60x15 and back leaves one clean picture', async () => {
  const tasks = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`task-${at + 1}`, at]));
  const desk = await deskWith((folder) =>
    planned(
      Object.fromEntries(Object.keys(tasks).map((id) => [id, { answers: [waitsFor(folder, 'end'), submits('done')] }])),
    ),
  );
  const run = await OperatedRun.start(desk, { argv: YES, size: { columns: 200, rows: 50 } });
  await run.see(/task-3 +running/);
  await run.press(KEY.enter);
  for (const size of [
    { columns: 60, rows: 15 },
    { columns: 200, rows: 50 },
  ]) {
    run.terminal.resize(size);
    await run.see('task-1 · conversation');
    await run.terminal.until(
      (text) =>
        text.split('\n')[0]?.startsWith('drover  do it') === true &&
        text.includes('Tab next task') === (size.columns === 200),
    );
    const screen = await run.terminal.screen();
    expect(screen.length).toBeLessThanOrEqual(size.rows);
    expect(screen.filter((line) => line.startsWith('drover  '))).toHaveLength(1);
    expect(screen.filter((line) => line.includes('task-1 · conversation'))).toHaveLength(1);
    expect(screen.filter((line) => /^. . task-1 /.test(line))).toHaveLength(1);
    // The time stays beside its task at any width.
    expect(screen.find((line) => /^. . task-1 /.test(line))).toMatch(/task-1 +\w+ +\d+s/);
  }
  await run.allow('end');
  expect(await run.ended).toBe(0);
});
