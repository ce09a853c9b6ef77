// The conversation: estimates, snapshots, and compaction.

import { Conversation } from '@drover/core/conversation/conversation';
import {
  applyConversationCut,
  planConversationCut,
  planWishedConversationCut,
  conversationTranscript,
  type Room,
} from '@drover/core/conversation/compaction';
import type { Message } from '@drover/protocol/messages';
import { expect, test } from 'vitest';

const NONE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const says = (text: string): Message => ({
  role: 'assistant',
  content: [{ type: 'text', text }],
  stop: 'stop',
  usage: NONE,
});
const calls = (id: string): Message => ({
  role: 'assistant',
  content: [{ type: 'tool_call', id, name: 'read', args: { path: 'a' } }],
  stop: 'tool_calls',
  usage: NONE,
});
const result = (id: string): Message => ({
  role: 'tool',
  results: [{ id, name: 'read', output: 'text', isError: false }],
});

test('a snapshot is deep and frozen on both sides', () => {
  const conversation = new Conversation('be good', 4);
  conversation.append(calls('c1'));
  const snapshot = conversation.snapshot();
  conversation.append(user('later'));

  expect(snapshot).toEqual({ system: 'be good', messages: [calls('c1')] });
  const [message] = snapshot.messages;
  expect(() =>
    Object.assign((message?.role === 'assistant' ? message.content[0] : undefined) ?? {}, { name: 'write' }),
  ).toThrow(TypeError);
  expect(() => (snapshot.messages as Message[]).push(user('x'))).toThrow(TypeError);
  expect(conversation.messages[0]).toEqual(calls('c1'));
});

test('changing a held message does not change a snapshot', () => {
  const conversation = new Conversation('', 4);
  const content = [{ type: 'text' as const, text: 'as it was' }];
  conversation.append({ role: 'user', content });
  const snapshot = conversation.snapshot();
  content.push({ type: 'text', text: 'added later' });
  expect(snapshot.messages).toEqual([user('as it was')]);
});

test('the list of messages handed out does not grow with the conversation', () => {
  const conversation = new Conversation('', 4);
  const before = conversation.messages;
  conversation.append(user('one'));
  expect(before).toEqual([]);
});

test('the estimate counts code points, not UTF-16 units, by the divisor', () => {
  const conversation = new Conversation('ab', 2);
  conversation.append(user('😀😀😀😀'));
  expect(conversation.estimate(0)).toBe(3);
  expect(conversation.estimate(4)).toBe(5);
});

test('the estimate follows what is appended and what is replaced', () => {
  const conversation = new Conversation('', 1);
  conversation.append(user('12345'));
  conversation.append(calls('c1')); // read + {"path":"a"}
  conversation.append(result('c1'));
  expect(conversation.estimate(0)).toBe(5 + 4 + 12 + 4);
  conversation.replace([user('123')]);
  expect(conversation.estimate(0)).toBe(3);
});

test('a message is counted once, on arrival', () => {
  let looks = 0;
  const message: Message = {
    role: 'user',
    get content() {
      looks += 1;
      return [{ type: 'text' as const, text: '12345' }];
    },
  };
  const conversation = new Conversation('', 1);
  conversation.append(message);
  const looksToCount = looks;
  for (let step = 0; step < 10; step++) expect(conversation.estimate(0)).toBe(5);
  expect(looks).toBe(looksToCount);
});

test.each([0, 0.5, 33, Number.NaN])('a divisor of %s is refused', (divisor) => {
  expect(() => new Conversation('', divisor)).toThrow('characters per token must be between 1 and 32');
});

test('reported usage corrects the estimate as a moving average', () => {
  const conversation = new Conversation('', 1);
  conversation.append(user('x'.repeat(100)));
  expect([conversation.ratio, conversation.expectedTokens(0)]).toEqual([undefined, 100]);
  conversation.calibrate(100, 200);
  expect([conversation.ratio, conversation.expectedTokens(0)]).toEqual([2, 200]);
  conversation.calibrate(100, 100);
  expect(conversation.ratio).toBeCloseTo(1.7);
  conversation.calibrate(100, 0);
  expect(conversation.ratio).toBeCloseTo(1.7);
});

test('a changed system prompt appears in the next snapshot and estimate', () => {
  const conversation = new Conversation('old', 1);
  conversation.system = 'newer';
  expect([conversation.snapshot().system, conversation.estimate(0)]).toEqual(['newer', 5]);
});

const LONG: readonly Message[] = [
  user('the task'),
  ...Array.from({ length: 10 }, (_, n) => [calls(`c${n}`), result(`c${n}`)]).flat(),
];

/** A message counts 100 tokens, plus one for each character of its results. */
const roomOf = (limit: number): Room => ({
  tokensOf: (messages) =>
    messages.reduce(
      (sum, message) =>
        sum + 100 + (message.role === 'tool' ? message.results.reduce((all, { output }) => all + output.length, 0) : 0),
      0,
    ),
  limit,
  summaryTokens: 100,
});

test('compaction keeps the task unchanged and marks the summary as background', () => {
  const cut = planConversationCut(LONG, roomOf(1_500), 0) ?? {};
  const [task, summary, ...tail] = applyConversationCut(LONG, cut, 'it went well');
  expect(task).toEqual(user('the task'));
  expect(summary).toEqual(user('[What happened before, in short. This is background, not a request.]\n\nit went well'));
  expect(tail).toEqual(LONG.slice(-6));
});

test('the cut never separates a call from its result', () => {
  for (let length = 1; length <= LONG.length; length++) {
    for (const limit of [200, 500, 1_000, 1_500]) {
      const history = LONG.slice(0, length);
      const cut = planConversationCut(history, roomOf(limit), 0);
      if (cut?.tail === undefined) continue;
      expect(history[length - cut.tail]?.role).not.toBe('tool');
    }
  }
});

test('each consecutive compaction cuts deeper', () => {
  const tails = [0, 1, 2].map((inARow) => planConversationCut(LONG, roomOf(1_500), inARow)?.tail);
  expect(tails).toEqual([6, 2, 0]);
});

test('old results are shortened before anything is summarised, and only once', () => {
  const large = (id: string): Message => ({
    role: 'tool',
    results: [{ id, name: 'read', output: 'x'.repeat(9_000), isError: false }],
  });
  const history = [user('the task'), ...['a', 'b', 'c'].flatMap((id) => [calls(id), large(id)])];
  const cut = planConversationCut(history, roomOf(27_000), 0) ?? {};
  expect(cut).toEqual({ clip: { messages: 5, chars: 2_000 } });
  const shorter = applyConversationCut(history, cut, undefined);
  expect(roomOf(0).tokensOf(shorter)).toBeLessThanOrEqual(700 + 2 * 2_000 + 9_000);
  expect(applyConversationCut(shorter, cut, undefined)).toEqual(shorter);
});

test('a history of only the task, or task and summary, is left alone', () => {
  const once = applyConversationCut(LONG, { tail: 0 }, 'short');
  for (const history of [[], LONG.slice(0, 1), once]) {
    expect([planConversationCut(history, roomOf(50), 0), planWishedConversationCut(history)]).toEqual([
      undefined,
      undefined,
    ]);
  }
});

test('an empty summary is a failure', () => {
  expect(() => applyConversationCut(LONG, { tail: 0 }, ' \n ')).toThrow('the summary came back empty');
});

test('the transcript names each speaker and is clipped at both ends', () => {
  expect(conversationTranscript([user('do it'), calls('c'), result('c'), says('done')], 10_000)).toBe(
    'USER: do it\n\nCALL read: {"path":"a"}\n\nRESULT of read: text\n\nAGENT: done',
  );
  const long = conversationTranscript([user(`begin${'x'.repeat(9_000)}end`)], 2_000);
  expect(long.length).toBeLessThan(2_100);
  expect(long).toMatch(/^USER: begin.*left out.*end$/s);
});
