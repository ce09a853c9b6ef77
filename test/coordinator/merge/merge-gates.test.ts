// Gates on the merge train: tasks tested together, tasks left out, and how a gate ends.

import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from '@drover/coordinator/git/git';
import { DroverError } from '@drover/core/errors';
import { describe, expect, test } from 'vitest';
import { planned, story, type Told, yard } from './merge-yard.ts';
import { proves } from '../../support/proves.ts';
import { until } from '../../support/until.ts';

// Passes on each task alone, and fails on both together.
const NOT_BOTH = '! { [ -e left ] && [ -e right ]; }';

const gateEnds = (events: readonly Told[]) => events.flatMap((event) => (event.type === 'gate_end' ? [event] : []));

// A dead process may still wait to be reaped.
const isAlive = (id: string) =>
  existsSync(`/proc/${id}/stat`) && !readFileSync(`/proc/${id}/stat`, 'latin1').includes(') Z ');

describe('tasks that are tested together', () => {
  test('five tasks that are green together take one gate run', async () => {
    const { works, train, checkouts } = await yard();
    const { train: it, events } = train({ gates: ['true'] });
    const tasks = ['a', 'b', 'c', 'd', 'e', 'f'];
    it.expect(planned(...tasks));
    const arrivals = works(Object.fromEntries(tasks.map((task) => [task, { [task]: task }])));
    await Promise.all(arrivals.map((arrival) => it.land(arrival)));
    expect(story(events).filter((line) => line.startsWith('gate'))).toEqual([
      'gate on [a b c d e]',
      'gate green [a b c d e]',
      'gate on [f]',
      'gate green [f]',
    ]);
    expect(checkouts.map((path) => existsSync(path))).toEqual([false, false]);
  });

  test('of two halves that are red only together the later one is left out', async () => {
    const { works, train, files, subjects } = await yard();
    const { train: it, events } = train({ gates: [`echo looking; ${NOT_BOTH}`] });
    it.expect(planned('a', 'left', 'b', 'right', 'c'));
    const arrivals = works({ a: { a: '' }, left: { left: '' }, b: { b: '' }, right: { right: '' }, c: { c: '' } });
    const landings = await Promise.all(arrivals.map((arrival) => it.land(arrival)));
    expect(landings.map(({ outcome }) => outcome)).toEqual(['landed', 'landed', 'landed', 'gate_failed', 'landed']);
    expect(landings[3]).toEqual({
      outcome: 'gate_failed',
      reason: `the gate 'echo looking; ${NOT_BOTH}' fails with this task merged:\nlooking\nexit code 1`,
    });
    expect(subjects(it.head)).toEqual(['Do a', 'Do left', 'Do b', 'Do c']);
    expect(Object.keys(files(it.head))).toEqual(['a', 'a.txt', 'b', 'c', 'left']);
    expect(story(events)).toEqual([
      'a starts',
      'left starts',
      'b starts',
      'right starts',
      'c starts',
      'gate on [a left b right c]',
      'gate red [a left b right c]',
      'gate on []',
      'gate green []',
      'gate on [a left]',
      'gate green [a left]',
      'gate on [a left b]',
      'gate green [a left b]',
      'gate on [a left b right]',
      'gate red [a left b right]',
      'a landed',
      'left landed',
      'b landed',
      'right gate_failed',
      'gate on [c]',
      'gate green [c]',
      'c landed',
    ]);
  });

  test.each([
    { tasks: ['bad'] },
    { tasks: ['bad', 'ok1', 'ok2'] },
    { tasks: ['ok1', 'ok2', 'bad'] },
    { tasks: ['bad', 'ok1', 'bad2', 'ok2', 'bad3', 'bad4', 'ok3'] },
  ])('exactly the bad tasks are left out, with bad $tasks', async ({ tasks }) => {
    const { works, train, files } = await yard();
    const { train: it } = train({ gates: ['! ls bad* 2>/dev/null'] });
    it.expect(planned(...tasks));
    const arrivals = works(Object.fromEntries(tasks.map((task) => [task, { [task]: '' }])));
    const landings = await Promise.all(arrivals.map((arrival) => it.land(arrival)));
    expect(landings.map(({ outcome }) => outcome)).toEqual(
      tasks.map((task) => (task.startsWith('bad') ? 'gate_failed' : 'landed')),
    );
    expect(Object.keys(files(it.head))).toEqual(['a.txt', ...tasks.filter((task) => task.startsWith('ok'))]);
  });

  proves('merge.green-only', 'the branch moves only to a tree that every gate passed on', async () => {
    const { works, train, git, ref } = await yard();
    const tasks = ['bad', 'a', 'bad2', 'b', 'c', 'bad3', 'd', 'e'];
    const gates = ['true', '! ls bad* 2>/dev/null'];
    const moves: string[][] = [];
    const watching: Git = async (args, options) => {
      if (args[0] === 'update-ref') {
        const tree = (await git(['rev-parse', `${args[2]}^{tree}`])).out.trim();
        moves.push(gateEnds(events).flatMap((end) => (end.passed && end.tree === tree ? [end.command] : [])));
      }
      return git(args, options);
    };
    const { train: it, events } = train({ gates, git: watching });
    it.expect(planned(...tasks));
    const arrivals = works(Object.fromEntries(tasks.map((task) => [task, { [task]: '' }])));
    await Promise.all(arrivals.map((arrival) => it.land(arrival)));
    expect(moves.length).toBeGreaterThan(1);
    expect(moves).toEqual(moves.map(() => gates));
    expect(ref()).toBe(it.head);
  });

  test('a red head is blamed on no task, and all are told so', async () => {
    const { works, train, base, ref } = await yard({ broken: 'yes' });
    const { train: it, events } = train({ gates: ['echo it is broken; [ ! -e broken ]'] });
    it.expect(planned('a', 'b'));
    const landings = await Promise.all(works({ a: { a: '' }, b: { b: '' } }).map((arrival) => it.land(arrival)));
    const reason = `the gate 'echo it is broken; [ ! -e broken ]' fails on ${base} already, without this task:\nit is broken\nexit code 1`;
    expect(landings).toEqual(Array(2).fill({ outcome: 'gate_failed', reason }));
    expect(ref()).toBe('');
    expect(story(events).filter((line) => line.startsWith('gate on'))).toEqual(['gate on [a b]', 'gate on []']);
  });

  test('a task that fixes a red head lands', async () => {
    const { work, train } = await yard({ broken: 'yes' });
    const { train: it } = train({ gates: ['[ ! -e broken ]'] });
    it.expect(planned('mend'));
    expect(await it.land(work('mend', { broken: undefined }))).toEqual({ outcome: 'landed', commit: it.head });
  });
});

describe('one gate', () => {
  test('red then green counts as green, and is reported as flaky', async () => {
    const { work, train, folder } = await yard();
    const mark = join(folder, 'tried');
    const { train: it, events } = train({ gates: [`echo try; [ -e ${mark} ] || { touch ${mark}; false; }`] });
    it.expect(planned('a'));
    expect(await it.land(work('a', { a: '' }))).toMatchObject({ outcome: 'landed' });
    expect(gateEnds(events)).toMatchObject([
      { passed: true, flaky: true, output: 'red at first, then green; when it was red:\ntry\nexit code 1' },
    ]);
  });

  test('the first red gate ends the list, and later gates see what earlier ones built', async () => {
    const { works, train } = await yard();
    const { train: it, events } = train({ gates: ['echo built > built', '[ -e built ] && [ ! -e bad ]', 'true'] });
    it.expect(planned('a', 'bad'));
    const landings = await Promise.all(works({ a: { a: '' }, bad: { bad: '' } }).map((arrival) => it.land(arrival)));
    expect(landings.map(({ outcome }) => outcome)).toEqual(['landed', 'gate_failed']);
    expect(
      gateEnds(events).map(({ command, passed, tasks }) => [tasks.join(' '), command.slice(0, 4), passed]),
    ).toEqual([
      ['a bad', 'echo', true],
      ['a bad', '[ -e', false],
      ['', 'echo', true],
      ['', '[ -e', true],
      ['', 'true', true],
      ['a', 'echo', true],
      ['a', '[ -e', true],
      ['a', 'true', true],
    ]);
  });

  test('a missing command is named', async () => {
    const { work, train } = await yard();
    const { train: it } = train({ gates: ['no-such-command --all'] });
    it.expect(planned('a'));
    const landing = await it.land(work('a', { a: '' }));
    expect(landing).toMatchObject({ outcome: 'gate_failed' });
    const reason = landing.outcome === 'gate_failed' ? landing.reason : '';
    expect(reason).toContain('already, without this task');
    expect(reason).toContain('no-such-command: command not found');
    expect(reason).toContain('a command was not found (exit code 127)');
  });

  test('the reason is the end of a long output, and the whole is on disk', async () => {
    const { work, train, folder } = await yard();
    const { train: it, events } = train({ gates: ['seq 100000; [ ! -e bad ]'] });
    it.expect(planned('bad'));
    const landing = await it.land(work('bad', { bad: '' }));
    const reason = landing.outcome === 'gate_failed' ? landing.reason : '';
    expect(reason.length).toBeLessThan(5_000);
    expect(reason.endsWith('\n99999\n100000\nexit code 1')).toBe(true);
    const [red] = gateEnds(events);
    expect(red?.output.length).toBeLessThan(40_000);
    const file = new RegExp(`${folder}/output/call_\\w+\\.txt`).exec(red?.output ?? '')?.[0] ?? '';
    expect(await readFile(file, 'utf8')).toHaveLength(588_895);
  });

  test('the signal ends a hanging gate with its processes, and no result is stored', async () => {
    const { work, works, train, folder, ref } = await yard();
    const stop = new AbortController();
    const pid = join(folder, 'pid');
    const gate = `sleep 1000 & echo $! > ${pid}.new; mv ${pid}.new ${pid}; wait`;
    const { train: it, events } = train({ gates: [gate], signal: stop.signal });
    it.expect(planned('a', 'b', 'c'));
    const landings = works({ a: { a: '' }, c: { c: '' } }).map((arrival) => it.land(arrival));
    await until(() => existsSync(pid));
    stop.abort(new DroverError({ kind: 'aborted', by: 'shutdown' }));
    const ends = await Promise.allSettled(landings);
    expect(ends).toMatchObject(Array(2).fill({ status: 'rejected', reason: { failure: { by: 'shutdown' } } }));
    expect(isAlive((await readFile(pid, 'utf8')).trim())).toBe(false);
    expect(story(events)).toEqual(['a starts', 'gate on [a]']);
    expect(ref()).toBe('');
    await expect(it.land(work('b', {}))).rejects.toBeInstanceOf(DroverError);
  });

  test('a caller that only waits learns of the end at once', async () => {
    const { work, train } = await yard();
    const stop = new AbortController();
    const { train: it } = train({ signal: stop.signal });
    it.expect(planned('a', 'b'));
    const landing = it.land(work('b', { b: '' }));
    stop.abort();
    await expect(landing).rejects.toMatchObject({ failure: { kind: 'aborted', by: 'user' } });
  });
});
