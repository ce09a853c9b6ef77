// The messages that a worker begins with.

import { seedAssignment, beginningOfSeed, firstSeedDifference, makeWorkerSeed } from '@drover/coordinator/plan/seed';
import type { Message } from '@drover/protocol/messages';
import type { PlannedTask } from '@drover/protocol/plan';
import { expect, test } from 'vitest';

const task: PlannedTask = {
  id: 'a',
  title: 'do a',
  prompt: 'All about a.',
  dependsOn: [],
  files: ['a.txt'],
  mode: 'write',
};
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const asked: Message = { role: 'user', content: [{ type: 'text', text: 'the goal' }] };
const call = (id: string, name: string) => ({
  type: 'tool_call' as const,
  id,
  name,
  args:
    name === 'submit_plan'
      ? {
          tasks: [
            {
              id: 'a',
              prompt: 'All about a.',
            },
          ],
        }
      : {},
});
const answered: Message = {
  role: 'assistant',
  stop: 'tool_calls',
  usage,
  content: [call('1', 'read'), call('2', 'submit_plan')],
};
const snapshot = { system: 'be good', messages: [asked, answered] };
const planned = { goal: 'the goal', tasks: [task] };

test('full: the whole conversation with every open call closed', () => {
  const { messages, summary, prompts, shared } = makeWorkerSeed('full', snapshot, planned);
  expect(messages.slice(0, 2)).toEqual(snapshot.messages);
  expect(messages[2]).toMatchObject({
    role: 'tool',
    results: [
      { id: '1', isError: false, output: 'What came of this is for the coordinator.' },
      { id: '2', isError: false, output: expect.stringContaining('one of its workers') },
    ],
  });
  expect(summary).toMatchObject({ seeding: 'full', messages: 3 });
  expect([...prompts]).toEqual(['All about a.']);
  expect(firstSeedDifference(shared ?? '', beginningOfSeed(snapshot.system, messages))).toBeUndefined();
});

test('the digest is equal for equal seeds, and different for others', () => {
  const digestOf = (...given: Parameters<typeof makeWorkerSeed>) => makeWorkerSeed(...given).summary.digest;
  const whole = digestOf('full', snapshot, planned);
  expect(digestOf('full', structuredClone(snapshot), planned)).toBe(whole);
  expect(whole).toMatch(/^[0-9a-f]{16}$/);
  const others = [
    digestOf('full', { ...snapshot, system: 'be bad' }, planned),
    digestOf('full', { ...snapshot, messages: [answered] }, planned),
    digestOf('brief', snapshot, planned),
  ];
  expect(new Set([whole, ...others]).size).toBe(4);
});

test('full without a planning conversation is a brief', () => {
  expect(makeWorkerSeed('full', undefined, planned).summary.seeding).toBe('brief');
});

test('different seeds have different digests, and the first difference is found', () => {
  const other = { ...snapshot, system: 'be bad' };
  const [one, two] = [makeWorkerSeed('full', snapshot, planned), makeWorkerSeed('full', other, planned)];
  expect(one.summary.digest).not.toBe(two.summary.digest);
  expect(firstSeedDifference(one.shared ?? '', two.shared ?? '')).toBe('"be '.length);
});

test('the task includes its prompt, unless the plan was just read', () => {
  const given = { worker: 3, task, attempt: 1, workspace: '/w' };
  expect(seedAssignment({ ...given, isPromptRead: false })).toContain('All about a.');
  const full = seedAssignment({ ...given, isPromptRead: true });
  expect([full.includes('All about a.'), full.startsWith('You are worker 3. Your task is a: do a')]).toEqual([
    false,
    true,
  ]);
});

test('a reading worker reports, and a writing one leaves its changes', () => {
  const given = { worker: 1, attempt: 1, workspace: '/w', isPromptRead: true };
  expect(seedAssignment({ ...given, task }).split('\n\n')).toEqual([
    'You are worker 1. Your task is a: do a',
    'Your workspace is /w; paths are relative to it.',
    'Leave your changes in the files: they are committed for you. Do not commit, branch or push.',
    'Keep to these files if you can: a.txt',
    'When you are done, call submit_result.',
  ]);
  expect(seedAssignment({ ...given, task: { ...task, mode: 'read' } }).split('\n\n')).toEqual([
    'You are worker 1. Your task is a: do a',
    'Your workspace is /w; paths are relative to it.',
    'Look and report: what you change is not kept. Your answer is the result.',
    'When you are done, call submit_result.',
  ]);
});

test('a further attempt is told the reason', () => {
  const again = seedAssignment({
    worker: 1,
    task,
    attempt: 2,
    workspace: '/w',
    isPromptRead: true,
    before: 'It conflicts.',
  });
  expect(again).toContain('This is attempt 2. It conflicts.');
});
