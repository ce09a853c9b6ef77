// An answer over the wire: the run asks the provider, and the thread gets each part as it arrives.

import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { DroverError } from '@drover/core/errors';
import type { Failure } from '@drover/protocol/failures';
import type { ModelEvent, ModelRequest } from '@drover/protocol/model';
import type { Provider } from '@drover/core/model/provider';
import { inGroups, oneByOne } from '@drover/core/one-by-one';
import { linkOver, serveTask } from '@drover/core/task/wire';
import { expect, onTestFinished, test } from 'vitest';
import { never } from '../support/agent.ts';
import type { TaskLink } from '@drover/core/task/link';
import { listener } from '../support/task.ts';

const REQUEST: ModelRequest = {
  model: 'm',
  system: 's',
  tools: [{ name: 'read', description: 'd', schema: { type: 'object' } }],
  messages: [{ role: 'user', results: [], content: [{ type: 'text', text: 'hi' }], cacheMark: true }],
  outputTokensMax: 10,
  cacheKey: 'k',
};
const STARTED: ModelEvent = { type: 'started', headers: { 'request-id': 'r' } };
const FINISHED: ModelEvent = {
  type: 'finished',
  message: {
    role: 'assistant',
    content: [{ type: 'text', text: 'ab' }],
    stop: 'stop',
    usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
  },
  notes: { ignored: 0, headers: {} },
};
const LOST: Failure = { kind: 'provider.garbled', message: 'cut off' };
const STOP: Failure = { kind: 'limit.reached', limit: 'time', message: 'out of time' };

const delta = (text: string): ModelEvent => ({ type: 'text_delta', part: 0, delta: text });

type Asked = { readonly model: string; readonly request: ModelRequest; readonly signal: AbortSignal };
type Answer = (signal: AbortSignal) => AsyncGenerator<readonly ModelEvent[]>;

function wired(answer: Answer): { thread: Pick<Provider, 'stream'>; asked: Asked[]; close: () => void } {
  const asked: Asked[] = [];
  const { port1, port2 } = new MessageChannel();
  const stream: TaskLink['stream'] = (model, request, signal) => {
    asked.push({ model, request, signal });
    return oneByOne(answer(signal));
  };
  const { link } = listener({ stream });
  const served = serveTask(port1, link, { onBegin: () => undefined, onSign: () => undefined, onFell: () => undefined });
  const line = linkOver({ port: port2 }, 1);
  onTestFinished(() => {
    line.close();
    served.close('ignored');
  });
  const thread = { stream: line.link.stream.bind(undefined, 'anthropic/scripted') };
  return { thread, asked, close: () => served.close('ignored') };
}

async function* hanging(signal: AbortSignal): AsyncGenerator<readonly ModelEvent[]> {
  yield [STARTED, delta('a')];
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

type Heard = { readonly events: readonly ModelEvent[]; readonly failure?: Failure | undefined };

async function heard(events: AsyncIterable<ModelEvent>, each: () => void = () => undefined): Promise<Heard> {
  const all: ModelEvent[] = [];
  try {
    for await (const event of events) {
      all.push(event);
      each();
    }
    return { events: all };
  } catch (error) {
    return { events: all, failure: error instanceof DroverError ? error.failure : undefined };
  }
}

test('the run’s provider gets the thread’s request, and its groups arrive in order', async () => {
  const { thread, asked } = wired(async function* () {
    yield [STARTED, delta('a')];
    yield [];
    yield [delta('b'), FINISHED];
  });
  const groups: (readonly ModelEvent[])[] = [];
  for await (const group of inGroups(thread.stream(REQUEST, never))) groups.push(group);

  expect(asked.map(({ model, request }) => ({ model, request }))).toEqual([
    { model: 'anthropic/scripted', request: REQUEST },
  ]);
  expect(groups).toEqual([
    [STARTED, delta('a')],
    [delta('b'), FINISHED],
  ]);
});

test('an answer arrives while it streams, not when it is whole', async () => {
  const rest = Promise.withResolvers<void>();
  const { thread } = wired(async function* () {
    yield [STARTED, delta('a')];
    await rest.promise;
    yield [FINISHED];
  });
  const count = { events: 0 };
  const whole = heard(thread.stream(REQUEST, never), () => {
    count.events += 1;
    if (count.events === 2) rest.resolve();
  });
  expect((await whole).events).toEqual([STARTED, delta('a'), FINISHED]);
});

test('a failure half way arrives after all that came before it', async () => {
  const { thread } = wired(async function* () {
    yield [STARTED, delta('a')];
    throw new DroverError(LOST);
  });
  expect(await heard(thread.stream(REQUEST, never))).toEqual({ events: [STARTED, delta('a')], failure: LOST });
});

test('a slow reader misses nothing that came before a failure', async () => {
  const { thread } = wired(async function* () {
    yield [STARTED];
    yield [delta('a')];
    throw new DroverError(LOST);
  });
  const groups: (readonly ModelEvent[])[] = [];
  const reading = (async () => {
    for await (const group of inGroups(thread.stream(REQUEST, never))) {
      groups.push(group);
      await wait(20);
    }
  })();
  await expect(reading).rejects.toEqual(new DroverError(LOST));
  expect(groups.flat()).toEqual([STARTED, delta('a')]);
});

test('a provider bug, or a stream without an end, is a failure and not silence', async () => {
  const buggy = wired(async function* () {
    yield [STARTED];
    throw new TypeError('of no kind');
  });
  const cut = wired(async function* () {
    yield [STARTED];
  });
  expect((await heard(buggy.thread.stream(REQUEST, never))).failure).toEqual({
    kind: 'internal',
    message: 'of no kind',
  });
  expect((await heard(cut.thread.stream(REQUEST, never))).failure).toMatchObject({ kind: 'internal' });
});

test('a thread that stops cancels its request', async () => {
  const { thread, asked } = wired(hanging);
  const stop = new AbortController();
  const told = await heard(thread.stream(REQUEST, stop.signal), () => stop.abort(new DroverError(STOP)));
  expect(told).toEqual({ events: [STARTED, delta('a')], failure: STOP });
  expect(asked[0]?.signal.reason).toEqual(new DroverError(STOP));
});

test('an answer that is no longer read is cancelled', async () => {
  const { thread, asked } = wired(hanging);
  for await (const event of thread.stream(REQUEST, never)) if (event.type === 'text_delta') break;
  const { signal } = asked[0] ?? {};
  if (signal?.aborted === false) await once(signal, 'abort');
  expect(signal?.aborted).toBe(true);
});

test('a dead thread leaves no open request; a thread without a run does not wait', async () => {
  const lost = wired(hanging);
  const hearing = heard(lost.thread.stream(REQUEST, never), () => lost.close());
  expect((await hearing).failure).toEqual({ kind: 'aborted', by: 'shutdown' });
  expect(lost.asked[0]?.signal.aborted).toBe(true);
});
