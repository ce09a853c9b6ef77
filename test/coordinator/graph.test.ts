// The plan as a graph: problems, landing order, dependencies.

import { planInOrder, planProblems, waitsOfPlan } from '@drover/coordinator/plan/graph';
import type { PlannedTask } from '@drover/protocol/plan';
import { expect, test } from 'vitest';

const task = (id: string, more: Partial<PlannedTask> = {}): PlannedTask => ({
  id,
  title: id,
  prompt: id,
  dependsOn: [],
  files: [],
  mode: 'write',
  ...more,
});
const limits = { tasksMax: 4, done: new Set<string>() };
const told = (tasks: readonly PlannedTask[], done: readonly string[] = []) =>
  planProblems(tasks, { agents: [], ...limits, done: new Set(done) }).map(({ at, message }) => `${at}: ${message}`);

test('a valid plan has no problems', () => {
  expect(told([task('a'), task('b', { dependsOn: ['a'] }), task('c', { dependsOn: ['a', 'b'] })])).toEqual([]);
});

test.each<[string, readonly PlannedTask[], readonly string[]]>([
  ['none at all', [], ['0: the plan has no tasks']],
  ['too many', ['a', 'b', 'c', 'd', 'e'].map((id) => task(id)), ['4: the plan has 5 tasks; at most 4 are allowed']],
  ['an id twice', [task('a'), task('a')], ['1: the id "a" is used twice']],
  ['an id that is no name', [task('../a')], ['0: "../a" is no id: use letters, digits, - and _, at most 64']],
  ['an id git has no branch for', [task('a.lock')], ['0: "a.lock" is no id: use letters, digits, - and _, at most 64']],
  ['an id that ends in a dot', [task('a.')], ['0: "a." is no id: use letters, digits, - and _, at most 64']],
  ['the id of the result', [task('merged')], ['0: the id "merged" is the name of the result; choose another']],
  ['a dependency that is not there', [task('a', { dependsOn: ['b'] })], ['0: "a" depends on "b", which isn\'t there']],
  ['a task that waits for itself', [task('a', { dependsOn: ['a'] })], ['0: "a" depends on itself']],
  [
    'a ring',
    [task('x'), task('a', { dependsOn: ['c'] }), task('b', { dependsOn: ['a'] }), task('c', { dependsOn: ['b'] })],
    ['1: these tasks wait for each other: a → c → b → a'],
  ],
])('a plan with %s is refused with the problem and its place', (_, tasks, expected) => {
  expect(told(tasks)).toEqual(expected);
});

test('tasks of an earlier plan can be dependencies and are not repeated', () => {
  expect(told([task('b', { dependsOn: ['a'] })], ['a'])).toEqual([]);
  expect(told([task('a')], ['a'])).toEqual(['0: "a" is done already; give new work a new id']);
});

test('tasks land in plan order, each after its dependencies', () => {
  const plan = [task('d', { dependsOn: ['b'] }), task('a'), task('b', { dependsOn: ['c'] }), task('c')];
  expect(planInOrder(plan).map(({ id }) => id)).toEqual(['c', 'b', 'd', 'a']);
});

test.each<[string, string, boolean]>([
  ['src/a.ts', 'src/a.ts', true],
  ['./src/a.ts', 'src/a.ts', true],
  ['src', 'src/a.ts', true],
  ['src/', 'src/deep/a.ts', true],
  ['src/*.ts', 'src/a.ts', true],
  ['src/**', 'src/b/*.ts', true],
  ['**/*.md', 'docs/a.md', true],
  ['src/a.ts', 'src/b.ts', false],
  ['src/a', 'src/ab', false],
  ['src/*.ts', 'test/a.ts', false],
  ['src/[id]/page.ts', 'src/other/page.ts', false],
  ['src/[id]/page.ts', 'src/[id]', true],
])('%s and %s overlap: %s', (one, other, expected) => {
  const plan = [task('a', { files: [one] }), task('b', { files: [other] })];
  expect(waitsOfPlan(plan).get('b')?.follows).toEqual(expected ? ['a'] : []);
});

test('ordered or read-only tasks get no extra dependency', () => {
  const plan = [
    task('a', { files: ['x'] }),
    task('b', { files: ['x'], dependsOn: ['a'] }),
    task('c', { files: ['x'], mode: 'read' }),
    task('d', { files: ['x'] }),
  ];
  expect([...waitsOfPlan(plan).values()].map(({ follows }) => follows)).toEqual([[], [], [], ['a', 'b']]);
});
