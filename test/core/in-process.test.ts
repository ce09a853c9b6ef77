// An embedded agent: sessions, executions and results as the embedding program sees them.

import { readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Shown } from '@drover/core/bus';
import { DroverError, UsageError } from '@drover/core/errors';
import {
  createSession,
  execute,
  type AgentContext,
  type AgentOptions,
  type ExecuteInput,
  type ExecuteResult,
} from '@drover/core/in-process';
import { journalPath } from '@drover/core/journal/session-journal';
import { shell } from '@drover/core/tools/shell';
import { createSimpleTool } from '@drover/core/tools/tool';
import type { Script } from '@drover/rehearsal/script';
import type { Rehearsal } from '@drover/rehearsal/server';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { rehearsal, temporaryFolder } from '../support/agent.ts';
import { calls, local, remote } from '../support/serve/remote-session.ts';
import { story } from '../support/story.ts';

type Desk = {
  readonly server: Rehearsal;
  readonly options: AgentOptions;
  readonly session: ReturnType<typeof createSession>;
};

async function desk(
  script: Script,
  context: Partial<AgentContext> = {},
  more: Partial<AgentOptions> = {},
): Promise<Desk> {
  const server = await rehearsal({ order: 'conversation', ...script });
  const options = { model: 'anthropic/scripted', baseUrl: server.baseUrlFor('anthropic'), ...more };
  const session = createSession(
    'session-123',
    { tools: [local, remote], cwd: await temporaryFolder(), ...context },
    options,
  );
  onTestFinished(() => session.close());
  return { server, options, session };
}

const hello: ExecuteInput = { role: 'user', content: 'Hello' };

async function executed(
  session: Desk['session'],
  input: ExecuteInput,
): Promise<{ readonly events: readonly Shown[]; readonly result: ExecuteResult }> {
  const stream = execute(session, input);
  const events: Shown[] = [];
  for await (const event of stream) events.push(event);
  return { events, result: await stream.result() };
}

test('a session executes, waits for remote calls, and continues with their results', async () => {
  const { session, server } = await desk({ answers: [calls('remote', 'local', 'remote'), { text: 'Both.' }] });
  const first = await executed(session, hello);
  expect(story(first.events)).toEqual([
    'session starts',
    'user says Hello',
    'model calls remote, calls local, calls remote (tool_calls)',
    '1 starts local {"n":1}',
    '1 ends: local 1',
    'waits for remote, remote',
    'session ends: suspended',
  ]);
  expect(first.result).toMatchObject({
    status: 'awaiting_tool_execution',
    messages: [{ role: 'user' }, { role: 'assistant' }],
  });
  const [one, two] = first.result.pendingToolCalls ?? [];
  expect([session.status, session.pendingToolCalls]).toEqual(['awaiting_tool_execution', [one, two]]);

  const second = await executed(session, [{ callId: two?.callId ?? '', output: 'two' }]);
  expect(second.result).toMatchObject({ status: 'awaiting_tool_execution', messages: [], pendingToolCalls: [one] });

  const third = await executed(session, [{ callId: one?.callId ?? '', output: 'one' }]);
  expect(third.result).toMatchObject({ status: 'completed', messages: [{ role: 'tool' }, { role: 'assistant' }] });
  expect(Object.keys(third.result).toSorted()).toEqual(['messages', 'status', 'usage']);
  expect([session.status, session.messages.length, server.rejections]).toEqual(['idle', 4, 0]);
});

test('the result settles without a reader of events', async () => {
  const { session } = await desk({ answers: [{ text: 'Nobody hears.' }] });
  expect(await execute(session, hello).result()).toMatchObject({ status: 'completed' });
});

test('leaving the events early does not stop the work or lose its result', async () => {
  const { session } = await desk({ answers: [{ text: 'On and on.' }, { text: 'And on.' }] });
  const stream = execute(session, hello);
  for await (const event of stream) if (event.type === 'message_start') break;
  expect(await stream.result()).toMatchObject({ status: 'completed' });
  const other = execute(session, { role: 'user', content: 'again' });
  await other[Symbol.asyncIterator]().return?.();
  expect((await other.result()).messages).toHaveLength(2);
});

test('the signal stops the execution', async () => {
  const { session } = await desk({ answers: [{ text: 'late', delayMs: 10_000 }] });
  const stop = new AbortController();
  const stream = execute(session, hello, stop.signal);
  for await (const event of stream) if (event.type === 'message_end') stop.abort();
  expect(await stream.result()).toMatchObject({ status: 'cancelled', messages: [{ role: 'user' }] });
});

test('a provider failure is a result with its kind', async () => {
  const { session } = await desk({ answers: [{ fault: { fault: 'status', status: 401 } }] });
  const { events, result } = await executed(session, hello);
  expect(result).toMatchObject({ status: 'error', failure: { kind: 'provider.rejected', status: 401 } });
  expect(story(events).slice(-2)).toEqual(['error: provider.rejected', 'session ends: error']);
});

test('started work that could not finish is incomplete and resumable', async () => {
  const { session } = await desk({
    order: 'requests',
    answers: [calls('local'), { fault: { fault: 'status', status: 400 } }, { text: 'Now.' }],
  });
  expect(await execute(session, hello).result()).toMatchObject({
    status: 'incomplete',
    failure: { kind: 'provider.rejected' },
  });
  expect(await execute(session, { resume: true }).result()).toMatchObject({ status: 'completed' });
});

test('usage and cost cover one execution', async () => {
  const usage = { input: 1_000, output: 100, cacheRead: 0, cacheWrite: 0 };
  const { session } = await desk(
    {
      answers: [
        { text: 'a', usage },
        { text: 'b', usage },
      ],
    },
    {},
    { facts: { price: { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 } } },
  );
  for (const _ of [1, 2]) {
    const result = await execute(session, hello).result();
    expect([result.usage, result.cost]).toEqual([usage, 0.002]);
  }
});

test('earlier messages are known to the model and are not new messages', async () => {
  const before = [
    { role: 'user', content: [{ type: 'text', text: 'My name is Ada.' }] },
    { role: 'user', content: [{ type: 'text', text: 'I like trees.' }] },
  ] as const;
  const { session, server } = await desk(
    { answers: [], otherwise: { text: 'Ada.' } },
    { messages: before, system: 'Be brief.' },
  );
  expect(session.messages).toEqual(before);
  const { messages } = await execute(session, hello).result();
  expect([messages.length, session.messages.length]).toEqual([2, 4]);
  expect(server.requests[0]?.rawBody).toContain('My name is Ada.');
  expect((server.requests[0]?.body as { system: object[] } | undefined)?.system).toMatchObject([{ text: 'Be brief.' }]);
});

test('an invalid call rejects result and iteration, and changes nothing', async () => {
  const { session } = await desk({ answers: [calls('remote'), { text: 'ok', delayMs: 100 }] });
  const { result } = await executed(session, hello);
  const refused = async (input: ExecuteInput): Promise<unknown> => {
    const stream = execute(session, input);
    const told = await Array.fromAsync(stream).catch((error: unknown) => error);
    expect(await stream.result().catch((error: unknown) => error)).toBe(told);
    return told;
  };
  expect(await refused(hello)).toEqual(new UsageError('session session-123 waits for the results of 1 remote calls'));
  expect(await refused([{ callId: 'call_x', output: '' }])).toMatchObject({ kind: 'unknown' });
  expect(session.messages).toHaveLength(2);

  const results = (result.pendingToolCalls ?? []).map(({ callId }) => ({ callId, output: 'x' }));
  const running = execute(session, results);
  expect(await refused(hello)).toMatchObject({ message: expect.stringContaining('is busy') as string });
  expect(session.status).toBe('running');
  expect(await running.result()).toMatchObject({ status: 'completed' });
  expect(await refused(results)).toMatchObject({ kind: 'answered' });
  expect(await refused({ resume: true })).toBeInstanceOf(UsageError);
});

test('an unawaited rejection crashes no process', async () => {
  const { session } = await desk({ answers: [calls('remote')] });
  await execute(session, hello).result();
  execute(session, hello);
  // Node reports an unhandled rejection by now, which would fail the test.
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(session.status).toBe('awaiting_tool_execution');
});

test('a message may give up pending calls', async () => {
  const { session, server } = await desk({ answers: [calls('remote'), { text: 'Fine.' }] });
  await execute(session, hello).result();
  expect(await execute(session, { ...hello, cancelPending: true }).result()).toMatchObject({
    status: 'completed',
  });
  expect(server.rejections).toBe(0);
});

test('a stored session resumes under its id, with its history and pending calls', async () => {
  const home = await temporaryFolder();
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Before.' }] }] as const;
  const { session, options, server } = await desk(
    { order: 'requests', answers: [calls('remote', 'remote'), { text: 'Both.' }] },
    { messages },
    { home },
  );
  const [one, two] = (await execute(session, hello).result()).pendingToolCalls ?? [];
  await execute(session, [{ callId: one?.callId ?? '', output: 'one' }]).result();
  expect(await readFile(journalPath(home, session.id), 'utf8')).toContain('awaiting_tool_execution');

  const other = createSession(session.id, { tools: [local, remote], messages, cwd: home }, options);
  const busy = await execute(other, { resume: true })
    .result()
    .catch((error: unknown) => error);
  expect(busy).toMatchObject({ failure: { kind: 'journal.busy' } });
  expect(busy).toBeInstanceOf(DroverError);
  await session.close();

  expect(await execute(other, { resume: true }).result()).toMatchObject({
    status: 'awaiting_tool_execution',
    pendingToolCalls: [two],
  });
  const { status } = await execute(other, [{ callId: two?.callId ?? '', output: 'two' }]).result();
  await other.close();
  expect([status, other.messages.map(({ role }) => role)]).toEqual([
    'completed',
    ['user', 'user', 'assistant', 'tool', 'assistant'],
  ]);
  expect(server.rejections).toBe(0);
});

test('close waits for active work', async () => {
  const home = await temporaryFolder();
  const { session } = await desk({ answers: [{ text: 'ok', delayMs: 50 }] }, {}, { home });
  const stream = execute(session, hello);
  await session.close();
  expect(await stream.result()).toMatchObject({ status: 'completed' });
});

test('the program is asked one question at a time; without a handler it is refused', async () => {
  const script = {
    answers: [{ calls: [1, 2].map((n) => ({ name: 'shell', args: { command: `touch ${n}` } })) }, { text: 'ok' }],
  };
  const asked: string[] = [];
  let atOnce = 0;
  const { session } = await desk(
    script,
    { tools: [shell] },
    {
      env: { PATH: process.env['PATH'] },
      async ask({ subject }) {
        atOnce += 1;
        asked.push(`${subject} ${atOnce}`);
        await new Promise(setImmediate);
        atOnce -= 1;
        return { allowed: subject === 'touch 2', always: false };
      },
    },
  );
  const results = async (desired: Desk['session']) => {
    const { messages } = await execute(desired, hello).result();
    return messages.flatMap((message) => (message.role === 'tool' ? message.results.map(({ output }) => output) : []));
  };
  expect(await results(session)).toEqual(['Not allowed: the user said no', '(no output)']);
  expect(asked).toEqual(['touch 1 1', 'touch 2 1']);

  const nobody = await desk(script, { tools: [shell] });
  expect((await results(nobody.session))[0]).toMatch(/^Not allowed: .*, and nobody is there to ask$/);
});

test('a question callback that throws is a bug, and the result says so', async () => {
  const bug = new TypeError('nobody thought of this');
  const { session } = await desk(
    { answers: [{ calls: [{ name: 'shell', args: { command: 'touch x' } }] }] },
    { tools: [shell] },
    { ask: () => Promise.reject(bug) },
  );
  await expect(execute(session, hello).result()).rejects.toBe(bug);
});

test('keys and addresses come from the passed environment, and keys are not shown', async () => {
  const server = await rehearsal({
    keys: ['sk-test-0123456789abcdef'],
    answers: [{ text: 'It is sk-test-0123456789abcdef.' }],
  });
  const env = { OPENAI_API_KEY: 'sk-test-0123456789abcdef', OPENAI_BASE_URL: server.baseUrlFor('openai') };
  const session = createSession('s', { tools: [], cwd: await temporaryFolder() }, { model: 'openai/scripted', env });
  const { events, result } = await executed(session, hello);
  expect(result.status).toBe('completed');
  expect(JSON.stringify(events)).not.toContain('0123456789abcdef');
});

test('a custom server needs a format and an address, and may have any name', async () => {
  const server = await rehearsal({ answers: [{ text: 'ok' }] });
  const options = { model: 'mine/some/model', api: 'openai-chat' as const, baseUrl: server.baseUrlFor('openai-chat') };
  const session = createSession('s', { tools: [], cwd: await temporaryFolder() }, options);
  const { events } = await executed(session, hello);
  expect(events[0]).toMatchObject({ type: 'session_start', model: 'mine/some/model' });
});

test('a tool that answers once is a function', async () => {
  const double = createSimpleTool(
    {
      name: 'double',
      description: 'Twice as much.',
      input: z.object({ n: z.number() }),
      access: 'none',
      subject: ({ n }) => `${n}`,
    },
    async ({ n }) => ({ output: `${2 * n}`, details: { n } }),
  );
  const { session } = await desk(
    { answers: [{ calls: [{ name: 'double', args: { n: 21 } }] }, { text: '42' }] },
    { tools: [double] },
  );
  const { events } = await executed(session, hello);
  expect(events.find((event) => event.type === 'tool_execution_end')).toMatchObject({
    output: '42',
    details: { n: 21 },
  });
});

const { execute: _, ...bodiless } = local;

test.each<[string, Partial<{ id: string; context: AgentContext }> & Partial<AgentOptions>, string]>([
  ['no model', { model: 'sonnet' }, 'is not of the form provider/name'],
  ['an unknown provider', { model: 'nobody/any' }, "there is no provider 'nobody'"],
  ['no key', { model: 'anthropic/any' }, 'anthropic needs a key: pass apiKey, or env with ANTHROPIC_API_KEY in it'],
  ['an empty key', { model: 'openai/any', env: { OPENAI_API_KEY: ' ' } }, 'openai needs a key'],
  ['an id that leads elsewhere', { id: '../up', apiKey: 'k' }, 'is no id for a session'],
  ['a tool that nobody runs', { context: { tools: [bodiless] }, apiKey: 'k' }, 'has no execute'],
  ['a name twice', { context: { tools: [local, local] }, apiKey: 'k' }, 'two tools with the name local'],
  ['no time at all', { remoteTimeoutMs: 0, apiKey: 'k' }, 'how long a remote call may take'],
])('a session with %s is refused at creation', (_, { id = 's', context = { tools: [] }, ...options }, problem) => {
  expect(() => createSession(id, context, { model: 'anthropic/any', ...options })).toThrow(problem);
});

test('without a store long outputs are kept outside the working folder', async () => {
  const flood = createSimpleTool(
    { name: 'flood', description: '', input: z.object({}), access: 'none', subject: () => '' },
    async () => ({ output: 'x'.repeat(40_000) }),
  );
  const { session } = await desk(
    { answers: [{ calls: [{ name: 'flood', args: {} }] }, { text: 'ok' }] },
    { tools: [flood] },
  );
  const { events } = await executed(session, hello);
  const end = events.find((event) => event.type === 'tool_execution_end');
  const path = /whole output is in (\S+)/.exec(end?.output ?? '')?.[1] ?? '';
  onTestFinished(() => rm(dirname(path), { recursive: true }));
  expect(await readFile(path, 'utf8')).toBe('x'.repeat(40_000));
  expect(path).not.toContain('drover-test-');
});

test('no request holds the key that a program passes, or one of its environment', async () => {
  const [apiKey, other] = ['a-key-that-is-passed-7', 'a-key-of-the-environment-8'];
  const { session, server } = await desk(
    { answers: [{ text: 'Hm.' }] },
    { system: `Your key is ${apiKey}.` },
    { apiKey, env: { OPENAI_API_KEY: other } },
  );
  await executed(session, { role: 'user', content: `Is it ${apiKey} or ${other}?` });
  const sent = JSON.stringify(server.requests.map(({ body }) => body));
  expect([apiKey, other].filter((key) => sent.includes(key))).toEqual([]);
  expect(sent).toContain('Is it [redacted:value] or [redacted:value]?');
});
