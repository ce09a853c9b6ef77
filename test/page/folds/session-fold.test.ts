// The page's state of a session, as a fold over its events.

import type { Event, Recorded } from '@drover/protocol/events';
import { NO_USAGE } from '@drover/core/model/spending/usage';
import { SessionFold } from '@drover/server/page/session-fold';
import { expect, test } from 'vitest';
import { label } from '../../support/run/sample-run.ts';

const USED = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 };
const SESSION = 'ses_1a2b3c4d5e6f70819203a4b5c6d7e8f9';

function folded(...events: readonly Event[]): SessionFold {
  const fold = new SessionFold();
  events.forEach((event, at) => {
    const told: Recorded = { v: 1, seq: at + 1, at: new Date(at * 1_000).toISOString(), session: SESSION, ...event };
    fold.take(told);
  });
  return fold;
}

const seen = (fold: SessionFold) => ({
  status: fold.status,
  ending: fold.ending,
  title: fold.title,
  model: fold.model,
  cwd: fold.cwd,
  pending: fold.pending.map(({ name }) => name),
  questions: fold.questions.map(({ requestId }) => requestId),
  usage: fold.usage,
  cost: fold.cost,
  seq: fold.seq,
});

const start: Event = { type: 'session_start', model: 'test/scripted', cwd: '/project' };
const asks: Event[] = [
  { type: 'message_start', role: 'user' },
  {
    type: 'message_end',
    message: { role: 'user', content: [{ type: 'text', text: '\nWhat is the weather?\nIn Oslo.' }] },
  },
];
const call = { ...label(0, 'weather: Oslo'), args: {}, deadline: '2027-01-15T09:40:00.000Z' };
const ends = (outcome: 'done' | 'suspended' | 'cancelled'): Event => ({
  type: 'session_end',
  outcome,
  messages: [],
  usage: USED,
  cost: 0.25,
});

const FRESH = {
  status: 'idle',
  ending: undefined,
  title: '',
  model: 'test/scripted',
  cwd: '/project',
  pending: [],
  questions: [],
  usage: NO_USAGE,
  cost: undefined,
  seq: 1,
};
const TITLE = 'What is the weather?';

test('a session is idle, active, waiting for a remote call, and done', () => {
  const waits: Event[] = [start, ...asks, { type: 'awaiting_tool_execution', calls: [call] }, ends('suspended')];
  const result: Event = { type: 'tool_execution_end', output: 'rain', outputSummary: '', isError: false, ...call };
  const spent = { usage: USED, cost: 0.25 };

  expect(seen(folded(start))).toEqual(FRESH);
  expect(seen(folded(start, ...asks))).toEqual({ ...FRESH, status: 'running', title: TITLE, seq: 3 });
  expect(seen(folded(...waits))).toEqual({
    ...FRESH,
    ...spent,
    status: 'awaiting_tool_execution',
    title: TITLE,
    pending: ['weather'],
    seq: 5,
  });
  const more: Event[] = [result, { type: 'message_start', role: 'assistant' }];
  expect(seen(folded(...waits, ...more))).toEqual({ ...FRESH, ...spent, status: 'running', title: TITLE, seq: 7 });
  expect(seen(folded(...waits, ...more, ends('done')))).toEqual({
    ...FRESH,
    status: 'idle',
    ending: 'done',
    title: TITLE,
    usage: { input: 20, output: 10, cacheRead: 0, cacheWrite: 0 },
    cost: 0.5,
    seq: 8,
  });
});

test('a question is open until it is answered, or its asker is gone', () => {
  const question: Event = {
    type: 'permission_request',
    requestId: 'q',
    subject: 'ls',
    why: '',
    ...label(0, 'shell: ls'),
  };
  const answer: Event = {
    type: 'permission_decision',
    requestId: 'q',
    allowed: true,
    by: 'user',
    always: false,
    ...label(0, 'shell: ls'),
  };
  const open = (...events: readonly Event[]) => seen(folded(start, ...asks, question, ...events)).questions;
  expect(open()).toEqual(['q']);
  expect(open(answer)).toEqual([]);
  expect(open(ends('cancelled'))).toEqual([]);
  expect(open(start)).toEqual([]);
});
