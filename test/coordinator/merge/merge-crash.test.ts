// The merge train after a crash: a second train with the first one's journal ends in the same commit.

import type { Git } from '@drover/coordinator/git/git';
import type { Arrival, Landing, MergeTrain } from '@drover/coordinator/merge/train';
import { DroverError } from '@drover/core/errors';
import { expect, test } from 'vitest';
import { type Changes, gatesOf, planned, run, RUN, story, type Told, type Yard, yard } from './merge-yard.ts';

const GATES = ['[ ! -e bad ]'];
const TASKS = planned('a', 'b', ['after-b', 'b'], 'bad', 'c');
const ENDLESS = new Promise<never>(() => undefined);

/** Kills a train at its nth move of the branch, before or after the move. */
type Kill = { readonly move: number; readonly when: 'before' | 'after' };
/** The history is the journal's. Gates with a known result are not run again, because they cost time. */
type Drive = { readonly past: readonly Told[]; readonly known: readonly Told[]; readonly kill?: Kill };
type Driven = { readonly head: string; readonly told: Told[]; readonly durable: Told[]; readonly isKilled: boolean };

// A small coordinator: five tasks, of which one conflicts once, one depends on it, and one fails the gate.
async function drive({ place, work }: Site, { past, known, kill }: Drive): Promise<Driven> {
  const killed = Promise.withResolvers<void>();
  let moves = 0;
  const git: Git = async (args, options) => {
    if (args[0] !== 'update-ref' || kill === undefined || moves++ !== kill.move) return place.git(args, options);
    if (kill.when === 'after') await place.git(args, options);
    killed.resolve();
    return ENDLESS;
  };
  const ends = past.flatMap((event) => (event.type === 'merge_end' ? [event] : []));
  const head = ends.findLast(({ commit }) => commit !== undefined)?.commit ?? place.base;
  let durable: Told[] = [];
  const settled = () => Promise.resolve(void (durable = [...events]));
  const { train, events } = place.train({ gates: GATES, git, head, known: gatesOf([...known, ...past]), settled });
  train.expect(TASKS);
  for (const { task = '', again } of ends) if (again) train.sendBack(task);
  for (const { task = '', again } of ends) if (!again) train.withdraw(task);

  const landed = new Map(ends.map(({ task, commit }) => [task, Promise.resolve(commit)]));
  const over = new Set(ends.flatMap(({ task, again }) => (again ? [] : [task])));
  const conflict = ends.find(({ again }) => again);
  const once = (arrival: Arrival) => (over.has(arrival.task) ? undefined : train.land(arrival));
  const all = async () => {
    void once(work.a());
    void once(work.bad());
    void once(work.c());
    const first = conflict === undefined ? await once(work.b(place.base)) : undefined;
    const onto = conflict?.onto ?? (first?.outcome === 'conflict' ? first.onto : '');
    const second = await once(work.b(onto));
    const b = commitOf(second) ?? (await landed.get('b'));
    const last = await once(work['after-b'](b ?? ''));
    expect(last?.outcome ?? 'landed').toBe('landed');
  };
  const isKilled = await Promise.race([all().then(() => false), killed.promise.then(() => true)]);
  return { head: train.head, told: [...past, ...events], durable: [...past, ...durable], isKilled };
}

type Site = { readonly place: Yard; readonly work: ReturnType<typeof workIn> };

function workIn({ work }: Yard) {
  const made = new Map<string, Arrival>();
  const once = (task: string, changes: Changes, from?: string): Arrival => {
    const arrival = made.get(`${task} ${from}`) ?? work(task, changes, from);
    made.set(`${task} ${from}`, arrival);
    return arrival;
  };
  return {
    a: () => once('a', { 'a.txt': 'A' }),
    b: (from: string) => once('b', { 'a.txt': 'A and B' }, from),
    'after-b': (from: string) => once('after-b', { 'b.txt': 'b' }, from),
    bad: () => once('bad', { bad: '' }),
    c: () => once('c', { c: 'c' }),
  };
}

function commitOf(landing: Landing | undefined): string | undefined {
  return landing?.outcome === 'landed' ? landing.commit : undefined;
}

test('killed around any branch move, a second train ends in the same commit', async () => {
  const place = await yard();
  const work = workIn(place);
  const whole = await drive({ place, work }, { past: [], known: [] });
  const known = whole.told;
  expect(place.subjects(whole.head)).toEqual(['Do a', 'Do c', 'Do b', 'Do after-b']);

  const ends: string[] = [];
  let kills = 0;
  for (let move = 0; move < 10; move++) {
    for (const when of ['before', 'after'] as const) {
      for (const kept of ['durable', 'told'] as const) {
        run(['-C', place.store, 'update-ref', '-d', `refs/heads/drover/${RUN}/merged`]);
        const first = await drive({ place, work }, { past: [], known, kill: { move, when } });
        if (first.isKilled) kills++;
        ends.push((await drive({ place, work }, { past: first[kept], known })).head, place.ref());
      }
    }
    if (kills < 4 * (move + 1)) break;
  }
  expect(kills).toBeGreaterThanOrEqual(12);
  expect(new Set(ends)).toEqual(new Set([whole.head]));
}, 60_000);

test('a batch that had landed at a power loss is recognised without running gates', async () => {
  const { works, train, git, ref, subjects } = await yard();
  const arrivals = works({ a: { a: '' }, none: {}, b: { b: '' }, c: { c: '' } });
  const gone = Promise.withResolvers<void>();
  const killing: Git = async (args, options) => {
    const answer = await git(args, options);
    if (args[0] !== 'update-ref') return answer;
    gone.resolve();
    return ENDLESS;
  };
  const first = train({ gates: ['true'], git: killing });
  first.train.expect(planned('a', 'none', 'b', 'c'));
  for (const arrival of arrivals) void first.train.land(arrival);
  await gone.promise;

  const second = train({ gates: ['true'] });
  second.train.expect(planned('a', 'none', 'b', 'c'));
  // Drover recognizes its commits by their trailers, not by their texts.
  const landings = arrivals.map((arrival) => second.train.land({ ...arrival, title: `${arrival.task}, otherwise` }));
  await Promise.all(landings);
  expect(second.train.head).toBe(ref());
  expect(subjects(ref())).toEqual(['Do a', 'Do b', 'Do c']);
  expect(story(second.events)).toEqual(['a', 'none', 'b', 'c'].flatMap((task) => [`${task} starts`, `${task} landed`]));
});

test('gates with a recorded result are not run again', async () => {
  const { works, train, store, checkouts } = await yard();
  const arrivals = works({ bad: { bad: '' }, good: { good: '' } });
  const finish = async (it: MergeTrain) => {
    it.expect(planned('bad', 'good'));
    await Promise.all(arrivals.map((arrival) => it.land(arrival)));
    return it.head;
  };
  const first = train({ gates: GATES });
  const head = await finish(first.train);
  const count = checkouts.length;
  run(['-C', store, 'update-ref', '-d', `refs/heads/drover/${RUN}/merged`]);

  const second = train({ gates: GATES, known: gatesOf(first.events) });
  expect(await finish(second.train)).toBe(head);
  expect(checkouts).toHaveLength(count);
  expect(story(second.events)).toEqual(['bad starts', 'good starts', 'bad gate_failed', 'good landed']);
});

test('a gate with only half a record is run from its first command', async () => {
  const { work, train } = await yard();
  const gates = ['touch built', '[ -e built ]'];
  const first = train({ gates });
  first.train.expect(planned('a'));
  const arrival = work('a', { a: '' });
  await first.train.land(arrival);
  const half = new Map([...gatesOf(first.events)].filter(([key]) => key.endsWith('touch built')));

  const again = await yard();
  const second = again.train({ gates, known: half });
  second.train.expect(planned('a'));
  expect(await second.train.land(again.work('a', { a: '' }))).toMatchObject({ outcome: 'landed' });
});

test.each([
  ['moved to a commit of somebody else', (place: Yard) => place.work('x', { x: 'x' }).commit],
  [
    'moved to where no batch of ours could be',
    (place: Yard) => {
      let commit = place.base;
      for (let at = 0; at < 6; at++) commit = place.work('x', { [`x${at}`]: 'x' }, commit).commit;
      return commit;
    },
  ],
])('a branch that was %s ends the train and stays as it is', async (_, foreign) => {
  const place = await yard();
  const commit = foreign(place);
  run(['-C', place.store, 'update-ref', `refs/heads/drover/${RUN}/merged`, commit]);
  const { train: it } = place.train();
  it.expect(planned('a'));
  const landing = it.land(place.work('a', { a: '' }));
  await expect(landing).rejects.toMatchObject({ failure: { kind: 'store.failed' } });
  await expect(landing).rejects.toThrow('another process moved');
  expect(place.ref()).toBe(commit);
});

test('a branch that the user moves between two landings ends the train, unchanged', async () => {
  const place = await yard();
  const { train: it } = place.train();
  it.expect(planned('a', 'b'));
  await it.land(place.work('a', { a: '' }));
  const foreign = place.work('x', { x: 'x' }).commit;
  run(['-C', place.store, 'update-ref', `refs/heads/drover/${RUN}/merged`, foreign]);
  await expect(it.land(place.work('b', { b: '' }))).rejects.toBeInstanceOf(DroverError);
  expect(place.ref()).toBe(foreign);
});

test('a missing branch ends the train if the journal has landings', async () => {
  const place = await yard();
  const { train: it } = place.train({ head: place.work('x', { x: 'x' }).commit });
  it.expect(planned('a'));
  await expect(it.land(place.work('a', { a: '' }))).rejects.toThrow('it is gone');
});
