// A client session with its own tools: execute, run, deliver, end.

import type { Event, PendingCall } from '@drover/protocol/events';
import type { AssistantMessage, Usage } from '@drover/protocol/messages';
import { DroverClient } from '@drover/client/client';
import { DroverProblem } from '@drover/client/problem';
import type { ClientTools } from '@drover/client/remote-calls';
import type { ToolResults } from '@drover/client/wire';
import { expect, test } from 'vitest';
import { type Answer, Channel, type Routes, Stage } from './stage.ts';

const USAGE: Usage = { input: 10, output: 5, cacheRead: 1, cacheWrite: 0 };
const SCHEMA = { type: 'object' };

function said(text: string): AssistantMessage {
  return { role: 'assistant', content: [{ type: 'text', text }], stop: 'stop', usage: USAGE };
}

function call(callId: string, name: string, args: PendingCall['args'] = {}): PendingCall {
  const deadline = new Date(Date.now() + 600_000).toISOString();
  return { callId, toolUseId: callId, callIndex: 0, index: 0, name, summary: name, args, deadline };
}

function ended(outcome: 'done' | 'suspended', text = ''): Event {
  const messages = text === '' ? [] : [said(text)];
  return { type: 'session_end', outcome, messages, usage: USAGE, cost: 0.5 };
}

/** A server that waits for `calls`, and ends the turn once each has a result. */
class Scene {
  readonly channel = new Channel({ session: 'ses_1' });
  readonly delivered: ToolResults['results'][number][] = [];
  readonly answers: Answer[] = []; // statuses that refuse deliveries, in order
  readonly made: unknown[] = [];
  status = 'idle';
  readonly #calls: readonly PendingCall[];

  constructor(calls: readonly PendingCall[]) {
    this.#calls = calls;
  }

  get routes(): Routes {
    return {
      'POST /v1/sessions': ({ body }) => {
        this.made.push(body);
        return { status: 201, body: { id: 'ses_1' } };
      },
      'GET /v1/sessions/:id': () => ({
        body: { id: 'ses_1', seq: this.channel.kept.at(-1)?.seq ?? 0, status: this.status, pending: this.#calls },
      }),
      'POST /v1/sessions/:id/execute': () => {
        if (this.status !== 'idle')
          return { status: 409, body: { type: 'session.running', title: 'busy', status: 409 } };
        this.await();
        return this.channel;
      },
      'GET /v1/sessions/:id/events': () => this.channel,
      'POST /v1/sessions/:id/tool-results': ({ body }) => this.#take(body as ToolResults),
    };
  }

  await(): void {
    this.status = 'awaiting_tool_execution';
    this.channel.emit({ type: 'awaiting_tool_execution', calls: this.#calls });
    this.channel.emit(ended('suspended'));
  }

  #take({ results }: ToolResults): Answer {
    const instead = this.answers.shift();
    if (instead !== undefined) return instead;
    const again = results.some(({ callId }) => this.delivered.some((had) => had.callId === callId));
    if (again) return { status: 409, body: { type: 'call.answered', title: 'it has one', status: 409 } };
    this.delivered.push(...results);
    if (this.delivered.length === this.#calls.length) {
      this.status = 'idle';
      this.channel.emit(ended('done', 'all is well'));
    }
    return { body: { status: this.status, pending: [] } };
  }
}

async function open(scene: Scene, tools: ClientTools) {
  const stage = await Stage.open(scene.routes);
  const client = new DroverClient({ baseUrl: stage.url, token: 'secret' });
  return { stage, client, session: await client.session({ tools, model: 'rehearsal/x' }) };
}

test('pending remote calls run concurrently, are delivered, and the turn continues', async () => {
  const scene = new Scene([call('c1', 'add', { a: 1, b: 2 }), call('c2', 'slow')]);
  const begun: string[] = [];
  const both = Promise.withResolvers<void>();
  const meet = async (name: string) => {
    begun.push(name);
    if (begun.length === 2) both.resolve();
    await both.promise;
  };
  const { stage, session } = await open(scene, {
    add: {
      description: 'Adds.',
      schema: SCHEMA,
      async run({ a, b }) {
        await meet('add');
        return String(Number(a) + Number(b));
      },
    },
    slow: { description: 'Is slow.', schema: SCHEMA, run: async () => (await meet('slow'), 'at last') },
  });
  await using _ = stage;

  const turn = await session.execute('go');
  const types: string[] = [];
  for await (const event of turn) types.push(event.type);

  expect(scene.made).toEqual([
    {
      model: 'rehearsal/x',
      tools: [
        { name: 'add', description: 'Adds.', schema: SCHEMA },
        { name: 'slow', description: 'Is slow.', schema: SCHEMA },
      ],
    },
  ]);
  expect(types).toEqual(['awaiting_tool_execution', 'session_end', 'session_end']);
  expect(scene.delivered.toSorted((a, b) => a.callId.localeCompare(b.callId))).toEqual([
    { callId: 'c1', output: '3' },
    { callId: 'c2', output: 'at last' },
  ]);
  expect(await turn.result()).toEqual({
    outcome: 'done',
    messages: [said('all is well')],
    usage: { input: 20, output: 10, cacheRead: 2, cacheWrite: 0 },
    cost: 1,
    text: 'all is well',
  });
});

test('the result arrives even if no reader takes the events, or stops early', async () => {
  for (const looks of [0, 1]) {
    const scene = new Scene([call('c1', 'ping')]);
    const { stage, session } = await open(scene, { ping: { description: '', schema: SCHEMA, run: () => 'pong' } });
    await using _ = stage;
    const turn = await session.execute('go');
    if (looks === 1) for await (const event of turn) if (event.type === 'awaiting_tool_execution') break;
    expect((await turn.result()).text).toBe('all is well');
  }
});

test('a tool that throws or exceeds its time or deadline returns an error result', async () => {
  const deadline = new Date(Date.now() + 30).toISOString();
  const late = { ...call('c3', 'hangs'), deadline };
  const scene = new Scene([call('c1', 'throws'), call('c2', 'stalls'), late]);
  const never = () => new Promise<string>(() => undefined);
  const { stage, session } = await open(scene, {
    throws: {
      description: '',
      schema: SCHEMA,
      run: () => {
        throw new Error('no such thing');
      },
    },
    stalls: { description: '', schema: SCHEMA, run: never, timeoutMs: 20 },
    hangs: { description: '', schema: SCHEMA, run: never },
  });
  await using _ = stage;
  await (await session.execute('go')).result();
  const told = Object.fromEntries(scene.delivered.map(({ callId, output, isError }) => [callId, [output, isError]]));
  expect(told).toEqual({
    c1: ['no such thing', true],
    c2: ['it took longer than 0.02 s', true],
    c3: [expect.stringContaining('it took longer than'), true],
  });
});

test('a call runs once even if its delivery, connection or whole turn is lost', async () => {
  const scene = new Scene([call('c1', 'count')]);
  scene.answers.push('hang up', { status: 503, body: { type: 'busy', title: 'busy', status: 503 } });
  let runs = 0;
  const tools: ClientTools = { count: { description: '', schema: SCHEMA, run: () => `run ${++runs}` } };
  const { stage, session } = await open(scene, tools);
  await using _ = stage;
  const turn = await session.execute('go');
  for await (const event of turn) if (event.type === 'awaiting_tool_execution') break;
  scene.channel.drop('destroy');
  scene.channel.emit({ type: 'awaiting_tool_execution', calls: [call('c1', 'count')] }); // announced again after a restart
  const again = await session.resume();
  const [first, second] = await Promise.all([turn.result(), again?.result()]);
  expect([first.text, second?.text]).toEqual(['all is well', 'all is well']);
  expect(runs).toBe(1);
  expect(scene.delivered).toEqual([{ callId: 'c1', output: 'run 1' }]);
});

test('any client with the tools resumes a waiting session, and leaves others’ calls', async () => {
  const scene = new Scene([call('c1', 'mine'), call('c2', 'theirs')]);
  scene.await();
  await using stage = await Stage.open(scene.routes);
  const client = new DroverClient({ baseUrl: stage.url, token: 'secret' });
  const tool = (output: string) => ({ description: '', schema: SCHEMA, run: () => output });
  const mine = await client.session({ id: 'ses_1', tools: { mine: tool('one') } });
  const turn = await mine.resume();
  const theirs = await client.session({ id: 'ses_1', tools: { theirs: tool('two') } });
  const [a, b] = await Promise.all([turn?.result(), (await theirs.resume())?.result()]);
  expect([a?.outcome, b?.outcome]).toEqual(['done', 'done']);
  expect(new Set(scene.delivered.map(({ output }) => output))).toEqual(new Set(['one', 'two']));
  expect(await mine.resume()).toBeUndefined();
});

test('an oversized result is reported, and refused results end the turn', async () => {
  const scene = new Scene([call('c1', 'big')]);
  scene.answers.push({
    status: 413,
    body: { type: 'too-large', title: 'too large', status: 413, detail: 'over 1 MB' },
  });
  const tools: ClientTools = { big: { description: '', schema: SCHEMA, run: () => 'x' } };
  const { stage, session } = await open(scene, tools);
  await using _ = stage;
  await (await session.execute('go')).result();
  expect(scene.delivered).toEqual([{ callId: 'c1', output: 'the result was not taken: over 1 MB', isError: true }]);

  const other = new Scene([call('c2', 'big')]);
  other.answers.push({ status: 401, body: { type: 'unauthorized', title: 'who are you?', status: 401 } });
  const second = await open(other, tools);
  await using __ = second.stage;
  await expect((await second.session.execute('go')).result()).rejects.toThrow('who are you?');
});

test('a message at a bad time is refused before anything starts', async () => {
  const scene = new Scene([call('c1', 'x')]);
  scene.status = 'running';
  const { stage, session } = await open(scene, {});
  await using _ = stage;
  const error = await session.execute('go').catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DroverProblem);
  expect(error).toMatchObject({ status: 409, type: 'session.running' });
});
