// The base and start of a task: with its dependencies' work, after tasks on the same files, and after the first answer
// has warmed the cache.

import { globSync } from 'node:fs';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, says, statuses, submits, told, writes } from '../../support/run/run-desk.ts';

const results = (events: Awaited<ReturnType<RunDesk['run']>>['events'], task: string): readonly string[] =>
  events.flatMap((event) =>
    event.type === 'tool_execution_end' && event.task === task && event.name === 'read' ? [event.output] : [],
  );

test('a task finds the work of its dependency, and no other work', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { answers: [writes('one.txt', 'made by one\n'), submits('one')] },
      builds: { dependsOn: ['one'], answers: [calls('read', { path: 'one.txt' }), submits('builds')] },
      alone: { answers: [calls('read', { path: 'one.txt' }), submits('alone')] },
    }),
  );
  const { events } = await desk.run(['run', 'do it']);
  expect(results(events, 'builds')[0]).toContain('made by one');
  expect(results(events, 'alone')[0]).not.toContain('made by one');
});

test('two tasks on the same file run in sequence, the second on the first’s result', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { files: ['a.txt'], answers: [writes('a.txt', 'one was here\n'), submits('one')] },
      two: { files: ['a.txt'], answers: [calls('read', { path: 'a.txt' }), writes('a.txt', 'both\n'), submits('two')] },
    }),
  );
  const { end, events } = await desk.run(['run', 'do it', '--workers', '2']);
  expect(results(events, 'two')[0]).toContain('one was here');
  expect([statuses(end), events.some((event) => event.type === 'merge_end' && event.outcome === 'conflict')]).toEqual([
    { one: 'landed', two: 'landed' },
    false,
  ]);
});

test('the other workers start only when the first worker’s answer has begun', async () => {
  const slow = { ...says('nothing to do'), delayMs: 700 };
  const desk = await RunDesk.with(
    planned({ one: { answers: [slow] }, two: { answers: [says('no')] }, three: { answers: [says('no')] } }),
  );
  const { events } = await desk.run(['run', 'do it', '--workers', '3']);
  const started = (task: string) => events.findIndex((event) => event.type === 'task_start' && event.task === task);
  const begun = events.findIndex(
    (event) => event.type === 'message_start' && event.task === 'one' && event.role === 'assistant',
  );
  const timeOf = (task: string) => Date.parse(events[started(task)]?.at ?? '');
  // Tasks wait for at most five seconds, and a busy machine may need longer for the first answer.
  const early = ['two', 'three'].filter((task) => started(task) < begun && timeOf(task) - timeOf('one') < 4_000);
  expect(early).toEqual([]);
});

test('money spent before an interruption stays spent after it', async () => {
  const dear = { ...writes('b.txt', 'b\n'), usage: { input: 30_000 } };
  const desk = await RunDesk.with(planned({ dear: { answers: [dear, dear, { ...says('done'), delayMs: 1_500 }] } }));
  const isThird = () => desk.server.requests.filter(({ agent }) => agent === 'dear').length === 3;
  const argv = ['run', 'do it', '--workers', '0', '--budget', '900ktok', '--json'];
  const first = told(await desk.interrupted(argv, isThird));
  expect([first.code, first.end.usage.input]).toEqual([130, 60_000]);
  const { events } = await desk.run(['resume', first.end.run ?? '']);
  const spent = events.flatMap((event) => (event.type === 'budget' ? [event.spent] : []));
  expect(Math.min(...spent)).toBeGreaterThan(60_000);
});

test('workspaces are prepared while the coordinator still plans', async () => {
  const slowly = { ...planned({ one: { answers: [] } }), answers: [{ ...says('hm'), delayMs: 600_000 }] };
  const desk = await RunDesk.with(slowly);
  const ready = () => globSync('workspaces/*/slots/*/tree/a.txt', { cwd: desk.home }).length;
  // The coordinator gets no answer, so there is never a plan.
  const ran = told(await desk.interrupted(['run', 'do it', '--workers', '3', '--json'], () => ready() === 3));
  expect([ran.code, ran.events.filter(({ type }) => type === 'plan_ready')]).toEqual([130, []]);
});
