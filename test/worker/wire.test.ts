// The wire between a task and its run, both ends, over a real port.

import { MessageChannel } from 'node:worker_threads';
import type { Question } from '@drover/core/agent/calls/calls';
import type { Decision, Event } from '@drover/protocol/events';
import { DroverError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import type { TaskMessage } from '@drover/core/task/link';
import { taskLinkOverWire, type Line, type Served, serveTaskWire } from '@drover/core/task/wire';
import { expect, onTestFinished, test } from 'vitest';
import { never } from '../support/agent.ts';
import { listener, type Listener, type RunParts } from '../support/task.ts';

const AT = { turn: 1, step: 2 };
const LABEL = { callId: 'call_1', toolUseId: 't', callIndex: 0, index: 0, name: 'shell', summary: 'shell: ls' };
const QUESTION: Question = {
  requestId: 'ask_1',
  tool: 'shell',
  input: {},
  subject: 'ls',
  why: 'it runs',
  label: LABEL,
};
const NO: Decision = { allowed: false, by: 'cancel', always: false };

type Wired = Line & {
  readonly run: Listener;
  readonly served: Served;
  readonly begun: number[];
  readonly messages: number[];
};

function wired(overrides: RunParts = {}): Wired {
  const { port1, port2 } = new MessageChannel();
  const run = listener(overrides);
  const begun: number[] = [];
  const messages: number[] = [];
  const served = serveTaskWire(port1, run.link, {
    onBegin: (thread) => void begun.push(thread),
    onSign: () => void messages.push(messages.length),
    onFell: () => undefined,
  });
  const line = taskLinkOverWire({ port: port2 }, 7);
  onTestFinished(() => {
    line.close();
    served.close('ignored');
  });
  return { ...line, run, served, begun, messages };
}

const failureFrom = async (promise: Promise<unknown>): Promise<Failure | undefined> =>
  promise.then(
    () => undefined,
    (error: unknown) => (error instanceof DroverError ? error.failure : undefined),
  );

test('events of one tick go in one ordered message, with joined deltas', async () => {
  const { link, run, begun, messages } = wired();
  await link.settled();
  const before = messages.length;
  const delta = (part: number, text: string): Event => ({ type: 'text_delta', part, delta: text });
  for (const event of [delta(0, 'a'), delta(0, 'b'), delta(1, 'c'), delta(0, 'd')]) link.emit(event, AT);
  link.emit({ type: 'warning', message: 'w' }, { turn: 1 });
  link.emit(delta(0, 'e'), AT);
  await link.settled();

  expect(begun).toEqual([7]);
  expect(messages.length - before).toBe(1);
  expect(run.told).toEqual([
    { event: delta(0, 'ab'), at: AT },
    { event: delta(1, 'c'), at: AT },
    { event: delta(0, 'd'), at: AT },
    { event: { type: 'warning', message: 'w' }, at: { turn: 1 } },
    { event: delta(0, 'e'), at: AT },
  ]);
});

test('events without a waiting reader still arrive', async () => {
  const { link, run } = wired();
  link.emit({ type: 'warning', message: 'w' }, AT);
  expect(await run.heard('warning')).toEqual({ type: 'warning', message: 'w' });
});

test('an event is durable only when the run has stored it', async () => {
  const stored = Promise.withResolvers<void>();
  const { link, run } = wired({ settled: () => stored.promise });
  let isSafe = false;
  link.emit({ type: 'warning', message: 'w' }, AT);
  const safe = link.settled().then(() => (isSafe = true));
  // A later question is answered later, unless the first answer has to wait.
  await link.question(QUESTION, never);
  expect({ told: run.told.length, isSafe }).toEqual({ told: 1, isSafe: false });
  stored.resolve();
  await safe;
});

test('a failure of the run arrives as a failure', async () => {
  const failure: Failure = { kind: 'limit.reached', limit: 'budget', message: 'no more' };
  const { link } = wired({
    question: () => Promise.reject(new DroverError(failure)),
    settled: () => Promise.reject(new Error('disk on fire')),
  });
  expect(await failureFrom(link.question(QUESTION, never))).toEqual(failure);
  expect(await failureFrom(link.settled())).toEqual({ kind: 'internal', message: 'disk on fire' });
});

test('a withdrawn question is withdrawn at the run, with its reason', async () => {
  const asked = Promise.withResolvers<void>();
  const reasons: unknown[] = [];
  const { link } = wired({
    question: (question, signal) =>
      new Promise((resolve) => {
        expect(question).toEqual(QUESTION);
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason instanceof DroverError && signal.reason.failure);
          resolve(NO);
        });
        asked.resolve();
      }),
  });
  const stop = new AbortController();
  const decision = link.question(QUESTION, stop.signal);
  await asked.promise;
  stop.abort(new DroverError({ kind: 'limit.reached', limit: 'time', message: 'too long' }));
  expect(await decision).toEqual(NO);
  expect(reasons).toEqual([{ kind: 'limit.reached', limit: 'time', message: 'too long' }]);
});

test('a stop carries its reason', async () => {
  const { served, signal } = wired();
  const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve));
  served.stop({ kind: 'limit.reached', limit: 'time', message: 'the run is out of time' });
  await stopped;
  expect(signal.reason).toBeInstanceOf(DroverError);
  expect((signal.reason as DroverError).failure).toEqual({
    kind: 'limit.reached',
    limit: 'time',
    message: 'the run is out of time',
  });
});

test('when the run hangs up, requests fail, the task stops, and its events are dropped', async () => {
  const { link, served, signal, run } = wired({ settled: () => new Promise(() => undefined) });
  const waiting = failureFrom(link.settled());
  await link.question(QUESTION, never);
  served.close('ignored');
  expect(await waiting).toEqual({ kind: 'aborted', by: 'shutdown' });
  expect(signal.aborted).toBe(true);
  link.emit({ type: 'warning', message: 'late' }, AT);
  expect(await failureFrom(link.settled())).toEqual({ kind: 'aborted', by: 'shutdown' });
  expect(run.told).toEqual([]);
});

test('hanging up withdraws the task’s questions', async () => {
  const signals: AbortSignal[] = [];
  const asked = Promise.withResolvers<void>();
  const { link, served } = wired({
    question: (_, signal) => {
      signals.push(signal);
      asked.resolve();
      return new Promise(() => undefined);
    },
  });
  const decision = failureFrom(link.question(QUESTION, never));
  await asked.promise;
  served.close('ignored');
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  expect(await decision).toEqual({ kind: 'aborted', by: 'shutdown' });
});

test('messages received before the run hangs up can be read first', async () => {
  const { link, served, run } = wired();
  await link.settled();
  link.emit({ type: 'warning', message: 'last words' }, AT);
  void failureFrom(link.settled()); // takes it along, before anything else happens
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(run.told).toEqual([]);
  served.close('heard');
  expect(run.events()).toEqual([{ type: 'warning', message: 'last words' }]);
});

test('messages of the user reach the thread in order, and it says which are delivered', async () => {
  let send: (message: TaskMessage) => void = () => undefined;
  const delivered: string[] = [];
  const mail = {
    onMessage: (hear: typeof send) => {
      hear({ id: 'early', text: 'waited' });
      send = hear;
    },
    delivered: (id: string) => void delivered.push(id),
  };
  const { link } = wired({ mail });
  await link.settled();
  const heard: TaskMessage[] = [];
  // The first one arrived before the agent listened.
  link.mail.onMessage((message) => void heard.push(message));
  send({ id: 'late', text: 'said now' });
  await link.settled();
  await link.settled();
  expect(heard).toEqual([
    { id: 'early', text: 'waited' },
    { id: 'late', text: 'said now' },
  ]);
  link.mail.delivered('early');
  await link.settled();
  expect(delivered).toEqual(['early']);
});
