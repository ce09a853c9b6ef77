// An answer over the wire: the run asks the provider, shows and charges the answer, and the thread gets it once, whole.

import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { DroverError } from '@drover/core/errors';
import type { Event } from '@drover/protocol/events';
import type { Failure } from '@drover/protocol/failures';
import type { ModelEvent, ModelRequest } from '@drover/protocol/model';
import { oneByOne } from '@drover/core/one-by-one';
import type { AskHooks, AskOrder } from '@drover/core/task/asking';
import { taskLinkOverWire, serveTaskWire } from '@drover/core/task/wire';
import { expect, onTestFinished, test } from 'vitest';
import { never, quickRetry } from '../support/agent.ts';
import { listener, type RunParts } from '../support/task.ts';

const REQUEST: ModelRequest = {
  model: 'm',
  system: 's',
  tools: [{ name: 'read', description: 'd', schema: { type: 'object' } }],
  messages: [{ role: 'user', results: [], content: [{ type: 'text', text: 'hi' }], cacheMark: true }],
  outputTokensMax: 10,
  cacheKey: 'k',
};
const USAGE = { input: 100, output: 1, cacheRead: 0, cacheWrite: 0 };
const ORDER: AskOrder = {
  model: 'anthropic/scripted',
  request: REQUEST,
  place: { turn: 1, step: 2 },
  idleMs: undefined,
  isShown: true,
  fallsBack: false,
  inputTokens: 50,
  inputTokensMax: 80,
  outputTokensMax: 10,
  retry: { ...quickRetry, attemptsMax: 1 },
  tally: { total: { usage: USAGE }, window: 1_000, estimate: 50 },
  patience: 3,
  keepsPartial: true,
};
const STARTED: ModelEvent = { type: 'started', headers: { 'retry-after': '3' } };
const FINISHED: ModelEvent = {
  type: 'finished',
  message: { role: 'assistant', content: [{ type: 'text', text: 'ab' }], stop: 'stop', usage: USAGE },
  notes: { ignored: 0, headers: {} },
};
const LOST: Failure = { kind: 'provider.garbled', message: 'cut off' };
const STOP: Failure = { kind: 'limit.reached', limit: 'time', message: 'out of time' };
const delta = (text: string): ModelEvent => ({ type: 'text_delta', part: 0, delta: text });

type Answering = (request: ModelRequest, signal: AbortSignal) => AsyncGenerator<readonly ModelEvent[]>;

function wired(answering: Answering, parts: RunParts = {}) {
  const { port1, port2 } = new MessageChannel();
  const run = listener({ ...parts, stream: (request, signal) => oneByOne(answering(request, signal)) });
  const served = serveTaskWire(port1, run.link, {
    onBegin: () => undefined,
    onSign: () => undefined,
    onFell: () => undefined,
  });
  const line = taskLinkOverWire({ port: port2 }, 1);
  const messages: unknown[] = [];
  port2.on('message', (message) => void messages.push(message));
  const notes: string[] = [];
  const hooks: AskHooks = {
    emit: () => void notes.push('an event reached the thread'),
    admitted: () => void notes.push('admitted'),
    calling: (name) => void notes.push(`calls ${name}`),
    progress: () => void notes.push('progress'),
  };
  onTestFinished(() => {
    line.close();
    served.close('ignored');
  });
  const ask = (signal = never, changed: Partial<AskOrder> = {}) =>
    line.link.ask({ ...ORDER, ...changed }, hooks, signal);
  return { ask, run, messages, notes, hangUp: () => served.close('ignored'), types: () => typesOf(run.events()) };
}

const typesOf = (events: readonly Event[]) => events.map(({ type }) => type);

async function* hanging(_: ModelRequest, signal: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
  yield [STARTED, delta('a')];
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

test('an answer passes the wire once, however many parts it has', async () => {
  const deltas = Array.from({ length: 1_000 }, () => [delta('a')]);
  const requests: ModelRequest[] = [];
  const { ask, run, messages, notes } = wired(async function* (request) {
    requests.push(request);
    yield [STARTED];
    yield* deltas;
    yield [{ type: 'toolcall_start', part: 1, callIndex: 0, id: 'i', name: 'read' }, FINISHED];
  });
  const result = await ask();

  expect(requests).toEqual([REQUEST]);
  expect(result).toMatchObject({ answer: { message: FINISHED.message }, patience: 2, charges: [USAGE] });
  expect(notes).toEqual(['admitted', 'calls read']);
  expect(messages.length).toBe(3); // the notes and the reply
  expect(run.told.length).toBe(1_000 + 3); // the start, the call and the usage
  expect(run.told.every(({ at }) => at === run.told[0]?.at || at.step === 2)).toBe(true);
});

test('the usage is told where the answer arrives, on top of what the task had spent', async () => {
  const { ask, run } = wired(async function* () {
    yield [FINISHED];
  });
  const { total } = await ask();
  const sum = { input: 200, output: 2, cacheRead: 0, cacheWrite: 0 };
  expect(run.events().at(-1)).toEqual({
    type: 'usage',
    usage: USAGE,
    total: sum,
    estimate: 50,
    window: 1_000,
    estimateRatio: 2,
  });
  expect(total).toEqual({ usage: sum });
});

test('the start and the end of an answer are reported to its own admission', async () => {
  const heard: string[] = [];
  let leaves = 0;
  const admit = async () => {
    const name = `leave ${++leaves}`;
    return {
      outputTokensMax: 7,
      began: (headers: Readonly<Record<string, string>>) => void heard.push(`${name} began: ${headers['retry-after']}`),
      settle: () => void heard.push(`${name} settled`),
    };
  };
  const limits: number[] = [];
  const answering: Answering = async function* ({ outputTokensMax }) {
    limits.push(outputTokensMax);
    yield [STARTED, delta('a'), FINISHED];
  };
  const { ask } = wired(answering, { admission: { admit } });
  await ask();
  await ask();
  expect(heard).toEqual(['leave 1 began: 3', 'leave 1 settled', 'leave 2 began: 3', 'leave 2 settled']);
  expect(limits).toEqual([7, 7]);
});

test('a failure half way comes with the text that was shown', async () => {
  const { ask, types } = wired(async function* () {
    yield [STARTED, delta('a')];
    throw new DroverError(LOST);
  });
  expect(await ask()).toMatchObject({
    failure: LOST,
    partial: { message: { content: [{ type: 'text', text: 'a' }], stop: 'error' } },
  });
  expect(types()).toEqual(['message_start', 'text_delta', 'usage', 'text_end']);
});

test('the run retries, and says so', async () => {
  let tries = 0;
  const { ask, types } = wired(async function* () {
    tries += 1;
    yield [STARTED, delta('a')];
    if (tries === 1) throw new DroverError({ kind: 'provider.unavailable', message: 'busy' });
    yield [FINISHED];
  });
  const result = await ask(never, { retry: quickRetry });
  expect(result).toMatchObject({ patience: 1, charges: [{ estimated: true }, USAGE] });
  expect(types()).toEqual([
    'message_start',
    'text_delta',
    'usage',
    'attempt_discarded',
    'retry',
    'message_start',
    'text_delta',
    'usage',
  ]);
});

test('a request that is not to be shown tells its cost alone', async () => {
  const { ask, types } = wired(async function* () {
    yield [STARTED, delta('a'), FINISHED];
  });
  await ask(never, { isShown: false });
  expect(types()).toEqual(['usage']);
});

test('a provider bug, or a stream without an end, is a failure and not silence', async () => {
  const buggy = wired(async function* () {
    yield [STARTED];
    throw new TypeError('of no kind');
  });
  const cut = wired(async function* () {
    yield [STARTED];
  });
  await expect(buggy.ask()).rejects.toEqual(new DroverError({ kind: 'internal', message: 'of no kind' }));
  await expect(cut.ask()).rejects.toMatchObject({ failure: { kind: 'internal' } });
});

test('a thread that stops cancels its request', async () => {
  const { ask, run } = wired(hanging);
  const stop = new AbortController();
  const asked = ask(stop.signal);
  await run.heard('text_delta');
  stop.abort(new DroverError(STOP));
  expect(await asked).toMatchObject({ failure: STOP, partial: { message: { stop: 'aborted' } } });
});

test('a lost thread leaves its answer to the run, which reads it to its end', async () => {
  const rest = Promise.withResolvers<void>();
  const { ask, run, hangUp, types } = wired(async function* (_, signal) {
    yield [STARTED, delta('a')];
    await rest.promise;
    signal.throwIfAborted();
    yield [delta('b'), FINISHED];
  });
  const asked = ask();
  await run.heard('text_delta');
  hangUp();
  await expect(asked).rejects.toEqual(new DroverError({ kind: 'aborted', by: 'shutdown' }));
  rest.resolve();
  await run.heard('usage');
  expect(types()).toEqual(['message_start', 'text_delta', 'text_delta', 'usage']);
});

test('progress is told to a task with an idle limit, and not with every delta', async () => {
  const { ask, notes } = wired(async function* () {
    yield [STARTED];
    for (let at = 0; at < 100; at++) yield [delta('a')];
    yield [FINISHED];
  });
  await ask(never, { idleMs: 3_600_000 });
  expect(notes).toEqual(['admitted', 'progress']);
});
