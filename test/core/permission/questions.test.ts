// Questions to the user: in order, one at a time, each answered once.

import type { Question } from '@drover/core/agent/calls/calls';
import { Questions } from '@drover/core/permission/questions';
import { expect, test } from 'vitest';
import { shell, toolNamed } from './tools.ts';

const never = new AbortController().signal;

function question(requestId: string, subject: string, tool = shell): Question {
  const label = { callId: requestId, toolUseId: requestId, callIndex: 0, index: 0, name: tool.name, summary: subject };
  return {
    requestId,
    tool: tool.name,
    input: subject,
    subject,
    why: 'it would run outside a sandbox',
    label,
  };
}

/** Questions with a log of those that were shown. */
function asked(): { readonly questions: Questions; readonly shown: readonly string[] } {
  const shown: string[] = [];
  return { questions: new Questions(({ requestId }) => shown.push(requestId)), shown };
}

const yes = { allowed: true, always: false };
const no = { allowed: false, always: false };

test('questions are shown one at a time, in order of arrival', async () => {
  const { questions, shown } = asked();
  const decisions = ['a', 'b', 'c'].map((id) => questions.ask(question(id, id), never));
  const seen = [[...shown]];
  for (const id of ['a', 'b', 'c']) {
    questions.answer(id, id === 'b' ? no : yes);
    seen.push([...shown]);
  }
  expect(seen).toEqual([['a'], ['a', 'b'], ['a', 'b', 'c'], ['a', 'b', 'c']]);
  expect(await Promise.all(decisions)).toEqual([
    { allowed: true, by: 'user', always: false },
    { allowed: false, by: 'user', always: false },
    { allowed: true, by: 'user', always: false },
  ]);
});

test('a question is answered once', async () => {
  const { questions } = asked();
  const decision = questions.ask(question('a', 'make'), never);
  expect([questions.answer('a', no), questions.answer('a', yes), questions.answer('unknown', yes)]).toEqual([
    true,
    false,
    false,
  ]);
  expect(await decision).toEqual({ allowed: false, by: 'user', always: false });
});

test('a permanent answer settles the same question wherever it waits or returns', async () => {
  const { questions, shown } = asked();
  const waiting = ['a', 'b', 'c'].map((id) => questions.ask(question(id, id === 'b' ? 'other' : 'make'), never));
  questions.answer('a', { allowed: true, always: true });
  questions.answer('b', yes);
  const later = await questions.ask(question('d', 'make'), never);
  const forGood = { allowed: true, by: 'user', always: true };
  expect(await Promise.all(waiting)).toEqual([forGood, { allowed: true, by: 'user', always: false }, forGood]);
  expect([later, shown, [...questions.remembered]]).toEqual([forGood, ['a', 'b'], [['shell make', true]]]);
});

test('a permanent answer applies to exactly that tool and subject', async () => {
  const { questions, shown } = asked();
  const first = questions.ask(question('a', 'make'), never);
  questions.answer('a', { allowed: true, always: true });
  await first;
  const others = [
    questions.ask(question('b', 'make all'), never),
    questions.ask(question('c', 'make', toolNamed('deploy', 'run')), never),
  ];
  questions.answer('b', no);
  questions.answer('c', no);
  expect((await Promise.all(others)).map(({ allowed }) => allowed)).toEqual([false, false]);
  expect(shown).toEqual(['a', 'b', 'c']);
});

test('a permanent no is remembered as a no', async () => {
  const { questions } = asked();
  const first = questions.ask(question('a', 'make'), never);
  questions.answer('a', { allowed: false, always: true });
  await first;
  expect(await questions.ask(question('b', 'make'), never)).toEqual({ allowed: false, by: 'user', always: true });
});

test('an aborted call withdraws only its own question', async () => {
  const { questions, shown } = asked();
  const [first, second] = [new AbortController(), new AbortController()];
  const decisions = [
    questions.ask(question('a', 'a'), first.signal),
    questions.ask(question('b', 'b'), second.signal),
    questions.ask(question('c', 'c'), never),
  ];
  second.abort();
  first.abort();
  expect([questions.answer('a', yes), questions.answer('b', yes), questions.answer('c', yes)]).toEqual([
    false,
    false,
    true,
  ]);
  const cancelled = { allowed: false, by: 'cancel', always: false, reason: 'interrupted before it was allowed' };
  expect(await Promise.all(decisions)).toEqual([cancelled, cancelled, { allowed: true, by: 'user', always: false }]);
  expect(shown).toEqual(['a', 'c']);
  expect((await questions.ask(question('d', 'd'), first.signal)).by).toBe('cancel');
});

test('close releases all waiting and later questions', async () => {
  const { questions, shown } = asked();
  const decisions = ['a', 'b'].map((id) => questions.ask(question(id, id), never));
  questions.close();
  const late = await questions.ask(question('c', 'c'), never);
  expect([...(await Promise.all(decisions)), late].map(({ by, allowed }) => [by, allowed])).toEqual([
    ['cancel', false],
    ['cancel', false],
    ['cancel', false],
  ]);
  expect([shown, questions.current]).toEqual([['a'], undefined]);
});

test('an answer given while the question is shown counts', async () => {
  const questions: Questions = new Questions(({ requestId }) => questions.answer(requestId, yes));
  const decisions = await Promise.all(['a', 'b', 'c'].map((id) => questions.ask(question(id, id), never)));
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true]);
});

test.each([
  [shell, 'pnpm build', "--allow 'shell(pnpm build)'"],
  [shell, 'curl -s http://x | head', "--allow 'shell(curl -s http://x)' --allow 'shell(head)'"],
  [shell, 'make && make', "--allow 'shell(make)'"],
  [shell, 'cd src && make > log', undefined],
  [shell, 'make $X', undefined],
  [shell, 'CI=1 make', undefined],
  [shell, 'echo "a b"', undefined],
  [shell, 'a;b;c;d;e', undefined],
  [toolNamed('write', 'write'), "src/it's.ts", String.raw`--allow 'write(src/it'\''s.ts)'`],
  [toolNamed('deploy', 'run'), '', "--allow 'deploy'"],
])('with no terminal to ask on, the answer is no, with a hint: %#', async (tool, subject, flag) => {
  const questions = new Questions(undefined);
  expect(await questions.ask(question('a', subject, tool), never)).toEqual({
    allowed: false,
    by: 'nobody',
    always: false,
    reason: `it would run outside a sandbox, and there is no terminal to ask on; ${flag === undefined ? '' : `${flag} or `}--yes would allow it`,
  });
});
