// The page's list of an agent's messages and calls: it grows with deltas, retracts, and stays bounded.

import type { Event } from '@drover/protocol/events';
import type { AssistantPart } from '@drover/protocol/messages';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import { Conversation } from '@drover/server/page/conversation';
import { expect, test } from 'vitest';
import { label, Teller } from '../../support/run/sample-run.ts';

const asked = (text: string): Event => ({
  type: 'message_end',
  message: { role: 'user', content: [{ type: 'text', text }] },
});
const answered = (...content: readonly AssistantPart[]): Event => ({
  type: 'message_end',
  message: { role: 'assistant', content, stop: 'stop', usage: NO_USAGE },
});
const begins: Event = { type: 'message_start', role: 'assistant' };
const text = (words: string): AssistantPart => ({ type: 'text', text: words });

/** The list after these events, one per second. */
function listed(...events: readonly Event[]): Conversation {
  const teller = new Teller();
  for (const event of events) teller.tell(event, {}, 1_000);
  const conversation = new Conversation();
  teller.events.forEach((event, at) => conversation.take(event, at * 1_000));
  return conversation;
}

const lines = ({ entries }: Conversation): readonly string[] =>
  entries.map((entry) => `${entry.kind} ${entry.state}: ${[entry.title, entry.text].filter(Boolean).join(' | ')}`);

test('an answer grows with its deltas, and its end repeats it', () => {
  const deltas: Event[] = [
    asked('Hello'),
    begins,
    { type: 'thinking_start', part: 0 },
    { type: 'thinking_delta', part: 0, delta: 'Hm' },
    { type: 'text_start', part: 1 },
    { type: 'text_delta', part: 1, delta: 'Good ' },
    { type: 'text_delta', part: 1, delta: 'mor' },
  ];
  expect(lines(listed(...deltas))).toEqual(['user ok: Hello', 'thinking open: Hm', 'said open: Good mor']);
  expect(lines(listed(...deltas, answered({ type: 'thinking', text: 'Hmm' }, text('Good morning'))))).toEqual([
    'user ok: Hello',
    'thinking ok: Hmm',
    'said ok: Good morning',
  ]);
});

test('a reader of durable events only sees the same', () => {
  expect(lines(listed(asked('Hello'), answered(text('Good morning'))))).toEqual([
    'user ok: Hello',
    'said ok: Good morning',
  ]);
});

test('a call is announced, runs, prints, and ends with its result', () => {
  const call = label(0, 'shell: make');
  const before: Event[] = [
    begins,
    { type: 'toolcall_start', part: 0, callIndex: 0, id: call.toolUseId, name: 'shell' },
    answered({ type: 'tool_call', id: call.toolUseId, name: 'shell', args: { command: 'make' } }),
    { type: 'tool_execution_start', args: { command: 'make' }, ...call },
    { type: 'tool_execution_delta', delta: 'cc a.c\n', ...call },
  ];
  expect(lines(listed(...before))).toEqual(['call open: shell: make | cc a.c\n']);
  const ended: Event = { type: 'tool_execution_end', output: 'cc a.c\nno', outputSummary: '', isError: true, ...call };
  expect(listed(...before, ended).entries).toEqual([
    {
      id: 1,
      kind: 'call',
      title: 'shell: make',
      text: 'cc a.c\nno',
      args: '{\n  "command": "make"\n}',
      state: 'bad',
      callId: call.callId,
      name: 'shell',
      fromMs: 3_000,
      toMs: 5_000,
      version: 4,
    },
  ]);
});

test('a retracted answer removes its entries', () => {
  const seen = listed(
    asked('Hello'),
    begins,
    { type: 'text_start', part: 0 },
    { type: 'text_delta', part: 0, delta: 'Goo' },
    { type: 'attempt_discarded', reason: 'the stream was cut' },
    begins,
    answered(text('Good morning')),
  );
  expect(lines(seen)).toEqual([
    'user ok: Hello',
    'note held: The answer was taken back: the stream was cut',
    'said ok: Good morning',
  ]);
});

test('a cut-off answer keeps its marked text and loses the calls it announced', () => {
  const seen = listed(
    asked('Hello'),
    begins,
    { type: 'text_start', part: 0 },
    { type: 'text_delta', part: 0, delta: 'Goo' },
    { type: 'toolcall_start', part: 1, callIndex: 0, id: 'call_1', name: 'shell' },
    { type: 'text_end', part: 0, text: 'Goo', cutOff: true },
    { type: 'message_end', message: { role: 'assistant', content: [text('Goo')], stop: 'aborted', usage: NO_USAGE } },
    { type: 'cancelled' },
  );
  expect(lines(seen)).toEqual([
    'user ok: Hello',
    'said bad: Goo',
    'note bad: The answer above was cut off',
    'note bad: Cancelled',
  ]);
});

test('single-line events appear between the others', () => {
  const failure = { kind: 'provider.garbled', message: 'cut off' } as const;
  const seen = listed(
    { type: 'throttle_wait', waitMs: 1_250, reason: 'input tokens' },
    { type: 'retry', retry: 1, retriesMax: 7, delayMs: 500, failure, reason: 'cut off' },
    { type: 'compaction_start', tokens: 1, reason: 'limit' },
    { type: 'warning', message: 'mind the gap' },
    {
      type: 'permission_decision',
      requestId: 'q',
      allowed: false,
      by: 'user',
      always: false,
      ...label(0, 'shell: rm'),
    },
    { type: 'error', failure, reason: 'it was cut off' },
  );
  expect(lines(seen)).toEqual([
    'note held: Waits 1.3 s: input tokens',
    'note held: Failed, retry 1 of 7 in 0.5 s: cut off',
    'note ok: Shortens its conversation',
    'note held: mind the gap',
    'note bad: Not allowed: shell: rm',
    'note bad: it was cut off',
  ]);
});

test('a call that waits for a client says so, and is given up with its turn', () => {
  const call = { ...label(0, 'weather: Oslo'), args: {}, deadline: '2027-01-15T09:40:00.000Z' };
  const waits: Event[] = [
    answered({ type: 'tool_call', id: call.toolUseId, name: 'weather', args: {} }),
    { type: 'awaiting_tool_execution', calls: [call] },
  ];
  expect(lines(listed(...waits))).toEqual(['call held: weather: Oslo']);
  const end: Event = { type: 'session_end', outcome: 'cancelled', messages: [], usage: NO_USAGE };
  expect(lines(listed(...waits, { type: 'cancelled' }, end))).toEqual([
    'call bad: weather: Oslo',
    'note bad: Cancelled',
  ]);
});

test('a growing text loses its middle at twice its bound', () => {
  const grown = (chars: number): string => {
    const delta = 'x'.repeat(chars - 5);
    const pieces = ['first', delta].map((piece): Event => ({ type: 'text_delta', part: 0, delta: piece }));
    return listed(begins, { type: 'text_start', part: 0 }, ...pieces).entries[0]?.text ?? '';
  };
  expect(grown(120_000)).toMatch(/^firstx{119995}$/);
  expect(grown(120_001)).toMatch(/^firstx{19995}\n… 60001 characters are left out here …\nx{40000}$/);
});

test('the list and each text in it are bounded; texts lose their middle', () => {
  const many = listed(...Array.from({ length: 650 }, (_, at) => asked(`message ${at}`)));
  expect([many.entries.length, many.leftOut, many.entries[0]?.text]).toEqual([600, 50, 'message 50']);

  const long = listed(asked(`first${'x'.repeat(100_000)}last`)).entries[0]?.text ?? '';
  expect(long.length).toBeLessThan(61_000);
  expect(long).toMatch(/^firstx+\n… 40009 characters are left out here …\nx+last$/);

  const streamed: Event[] = Array.from({ length: 40 }, () => ({
    type: 'text_delta',
    part: 0,
    delta: 'y'.repeat(10_000),
  }));
  expect(listed(begins, ...streamed).entries[0]?.text.length).toBeLessThan(130_000);
});

test('a repeated call is open again until it ends', () => {
  const call = label(0, 'submit_plan: t');
  const starts: Event = { type: 'tool_execution_start', args: {}, ...call };
  const ends: Event = { type: 'tool_execution_end', output: 'interrupted', outputSummary: '', isError: true, ...call };
  expect(lines(listed(starts, ends))).toEqual(['call bad: submit_plan: t | interrupted']);
  expect(listed(starts, ends, starts).entries).toMatchObject([{ kind: 'call', state: 'open', toMs: undefined }]);
});
