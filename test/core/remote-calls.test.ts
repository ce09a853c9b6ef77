// Remote calls: beside local ones, answered in any order, over restarts, with deadlines.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { listSessions } from '@drover/core/journal/sessions';
import type { ToolMessage } from '@drover/protocol/messages';
import { remoteTool } from '@drover/core/tools/remote';
import { defineTool } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { agentOn, never, temporaryFolder, type Executed } from '../support/agent.ts';
import { calls, keptSession, local, remote } from '../support/serve/remote-session.ts';
import { story } from '../support/story.ts';

const outputs = ({ result }: Executed) =>
  result.messages
    .filter((message): message is ToolMessage => message.role === 'tool')
    .flatMap(({ results }) => results.map(({ output, isError }) => (isError ? `failed: ${output}` : output)));

test('local calls overlap and are durable before remote ones are handed out', async () => {
  const both = Promise.withResolvers<void>();
  let begun = 0;
  const meeting = defineTool({
    name: 'meeting',
    description: 'Ends when two have come.',
    input: z.object({ n: z.number() }),
    access: 'none',
    subject: () => '',
    async run({ n }) {
      begun += 1;
      if (begun === 2) both.resolve();
      await both.promise;
      return `met ${n}`;
    },
  });
  const home = await temporaryFolder();
  const script = { answers: [calls('meeting', 'remote', 'meeting'), { text: 'ok' }] };
  const { run, records } = await keptSession(home, script, { tools: [meeting, remote] });
  const { events, result } = await run('go');
  expect(story(events).slice(-2)).toEqual(['waits for remote', 'session ends: suspended']);
  expect(result.pending.map(({ name, args, callIndex }) => [name, args, callIndex])).toEqual([['remote', { n: 1 }, 1]]);
  const kept = (await records()).map(({ type }) => type);
  expect(kept.slice(-5)).toEqual([
    'tool_execution_start',
    'tool_execution_end',
    'tool_execution_end',
    'awaiting_tool_execution',
    'session_end',
  ]);
});

test('all calls are asked about, and only allowed ones are handed out', async () => {
  const { run } = await agentOn(
    { answers: [calls('remote', 'local', 'remote'), { text: 'ok' }] },
    {
      tools: [local, remote],
      judge: async () => ({ effect: 'ask', why: 'a test' }),
      question: async ({ input }) => ({
        allowed: JSON.stringify(input) !== '{"n":0}',
        by: 'user',
        always: false,
      }),
    },
  );
  const { events, result } = await run('go');
  expect(
    story(events)
      .filter((line) => line.includes('is '))
      .toSorted(),
  ).toEqual(['0 is denied by user', '1 is allowed by user', '2 is allowed by user']);
  expect(result.pending.map(({ args }) => args)).toEqual([{ n: 2 }]);
});

test('results in any order, delivery or process become one message in call order', async () => {
  const home = await temporaryFolder();
  const script = { answers: [calls('remote', 'local', 'remote', 'remote'), { text: 'All four.' }] };
  const first = await keptSession(home, script);
  const [a, b, c] = (await first.run('go')).result.pending;
  expect(await first.session.deliver([{ callId: c?.callId ?? '', output: 'third' }])).toEqual([a, b]);
  expect((await first.records()).at(-1)).toMatchObject({
    type: 'tool_execution_end',
    callId: c?.callId,
    toolUseId: c?.toolUseId,
    callIndex: 3,
    index: 3,
    name: 'remote',
    output: 'third',
    outputSummary: 'third',
    isError: false,
    turn: 1,
    step: 1,
  });
  await first.die();

  const second = await keptSession(home, script);
  expect([second.session.status, second.session.pending]).toEqual(['awaiting_tool_execution', [a, b]]);
  const results = [
    { callId: b?.callId ?? '', output: 'no luck', isError: true },
    { callId: a?.callId ?? '', output: 'first' },
  ];
  expect(await second.session.deliver(results)).toEqual([]);
  await second.die();

  const third = await keptSession(home, script);
  expect([third.session.status, third.session.pending]).toEqual(['idle', []]);
  const done = await third.run({ resume: true });
  expect(story(done.events)).toEqual([
    'results remote ok, local ok, remote failed, remote ok',
    'model says All four. (stop)',
    'done',
    'session ends: done',
  ]);
  expect(outputs(done)).toEqual(['first', 'local 1', 'failed: no luck', 'third']);
  expect([third.server.rejections, third.server.requests.length]).toEqual([0, 1]);
});

test('a waiting session is suspended, and resumable once all results are there', async () => {
  const home = await temporaryFolder();
  const { run, session, die } = await keptSession(home, { answers: [calls('remote'), { text: 'ok' }] });
  const { result } = await run('go');
  expect(listSessions(home)[0]?.state).toBe('suspended');
  await session.deliver(result.pending.map(({ callId }) => ({ callId, output: 'x' })));
  await die();
  expect(listSessions(home)[0]?.state).toBe('open');
});

test('an overlong conversation is compacted before the next request, not while waiting', async () => {
  const summary = { when: { system: 'condense the history' }, text: 'Much was said.' };
  const rounds = Array.from({ length: 5 }, () => calls('remote', 'remote'));
  const { run, session, server } = await agentOn(
    { answers: [summary, ...rounds, { text: 'ok' }] },
    { tools: [remote], contextTokens: 20_000 },
  );
  const told: string[] = [];
  let { events, result } = await run('the very task');
  while (result.outcome.status === 'suspended') {
    told.push(...story(events));
    const before = server.requests.length;
    const [one, two] = result.pending;
    await session.deliver([{ callId: two?.callId ?? '', output: 'x'.repeat(9_000) }]);
    expect(await run({ resume: true })).toMatchObject({ result: { outcome: { status: 'suspended' }, messages: [] } });
    expect([server.requests.length, session.pending]).toEqual([before, [one]]);
    ({ events, result } = await run({ results: [{ callId: one?.callId ?? '', output: 'y'.repeat(9_000) }] }));
  }
  told.push(...story(events));
  expect(result.outcome).toEqual({ status: 'done' });
  const shortened = told.indexOf('shortens the conversation (limit)');
  expect(told.slice(shortened - 1, shortened + 2)).toEqual([
    'results remote ok, remote ok',
    'shortens the conversation (limit)',
    'has shortened it',
  ]);
  expect(server.rejections).toBe(0);
});

test('a call has ten minutes, unless the session or the tool says otherwise', async () => {
  const brief = remoteTool({ name: 'brief', description: '', schema: { type: 'object' }, timeoutMs: 1_000 });
  const minutes = async (remoteTimeoutMs?: number): Promise<readonly number[]> => {
    const { run } = await agentOn(
      { answers: [calls('remote', 'brief')] },
      { tools: [remote, brief], ...(remoteTimeoutMs !== undefined && { remoteTimeoutMs }) },
    );
    const { events, result } = await run('go');
    const told = events.find((event) => event.type === 'awaiting_tool_execution');
    expect(told?.calls).toEqual(result.pending);
    return result.pending.map(({ deadline }) => Math.round((Date.parse(deadline) - Date.parse(told?.at ?? '')) / 100));
  };
  expect(await minutes()).toEqual([6_000, 10]);
  expect(await minutes(5_000)).toEqual([50, 10]);
});

test('an overdue call fails, also in the next process, and the others still wait', async () => {
  const home = await temporaryFolder();
  const brief = remoteTool({ name: 'brief', description: '', schema: { type: 'object' }, timeoutMs: 1_000 });
  const script = { answers: [calls('brief', 'remote'), { text: 'ok' }] };
  const first = await keptSession(home, script, { tools: [brief, remote] });
  const { pending } = (await first.run('go')).result;
  const [hasty, patient] = pending;
  const deadline = Date.parse(hasty?.deadline ?? '');
  const before = await first.bytes();
  expect(await first.session.expire(deadline - 1)).toEqual(pending);
  expect(await first.bytes()).toBe(before);
  await first.die();

  const second = await keptSession(home, script, { tools: [brief, remote] });
  expect(await second.session.expire(deadline)).toEqual([patient]);
  const done = await second.run({ results: [{ callId: patient?.callId ?? '', output: 'here' }] });
  expect(outputs(done)).toEqual([
    'failed: No result: brief is run elsewhere, and nothing came back in time. It may have taken effect all the same.',
    'here',
  ]);
  expect(done.result.outcome).toEqual({ status: 'done' });
});

test('resume does not wait for an overdue call', async () => {
  const brief = remoteTool({ name: 'brief', description: '', schema: { type: 'object' }, timeoutMs: 1 });
  const { run, session } = await agentOn({ answers: [calls('brief'), { text: 'ok' }] }, { tools: [brief] });
  const { result } = await run('go');
  while (Date.now() <= Date.parse(result.pending[0]?.deadline ?? '')) await new Promise(setImmediate);
  expect(session.pending).toHaveLength(1);
  const { events } = await run({ resume: true });
  expect(story(events).slice(1)).toEqual([
    'results brief failed',
    'model says ok (stop)',
    'done',
    'session ends: done',
  ]);
});

test('results may come as soon as calls are told, and only the first delivery counts', async () => {
  const home = await temporaryFolder();
  const { session } = await keptSession(home, { answers: [calls('remote'), { text: 'ok' }] });
  const execution = session.execute({ content: 'go' }, never);
  const deliveries: Promise<readonly unknown[]>[] = [];
  const told: string[] = [];
  for await (const event of execution) {
    told.push(event.type);
    if (event.type !== 'awaiting_tool_execution') continue;
    const [call] = event.calls;
    for (const output of ['one', 'two']) deliveries.push(session.deliver([{ callId: call?.callId ?? '', output }]));
  }
  expect((await Promise.allSettled(deliveries)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  expect(told.slice(-2)).toEqual(['awaiting_tool_execution', 'session_end']);
  const { outcome, messages } = await session.run({ resume: true }, never);
  expect([outcome.status, messages[0]]).toMatchObject(['done', { role: 'tool', results: [{ output: 'one' }] }]);
});

test('a message that gives up the calls gives each a result and ends the turn', async () => {
  const { run, session, server } = await agentOn(
    { answers: [calls('remote', 'local', 'remote'), { text: 'Fine.' }] },
    { tools: [local, remote] },
  );
  const [one] = (await run('go')).result.pending;
  await session.deliver([{ callId: one?.callId ?? '', output: 'in time' }]);
  const { events, result } = await run({ content: 'something else', cancelPending: true });
  expect(story(events)).toEqual([
    '2 fails: No result: remote is run elsewhere, and was no longer waited for. It may have t…',
    'results remote ok, local ok, remote failed',
    'cancelled',
    'user says something else',
    'model says Fine. (stop)',
    'done',
    'session ends: done',
  ]);
  expect([result.messages.length, server.rejections]).toEqual([2, 0]);
});

test('without pending calls such a message is an ordinary one', async () => {
  const { run } = await agentOn({ answers: [{ text: 'Fine.' }] });
  expect((await run({ content: 'hello', cancelPending: true })).result.outcome).toEqual({ status: 'done' });
});

test('giving up the calls ends the turn as cancelled, permanently', async () => {
  const home = await temporaryFolder();
  const script = { answers: [calls('remote', 'local'), { text: 'Fine.' }] };
  const first = await keptSession(home, script);
  await first.run('go');
  const seen = (await first.records()).length;
  const { outcome, messages, usage } = await first.session.abandon();
  expect([outcome, messages.map(({ role }) => role), usage.input]).toEqual([{ status: 'cancelled' }, ['tool'], 0]);
  expect(story((await first.records()).slice(seen))).toEqual([
    '0 fails: No result: remote is run elsewhere, and was no longer waited for. It may have t…',
    'results remote failed, local ok',
    'cancelled',
    'session ends: cancelled',
  ]);
  await first.die();
  expect(listSessions(home)[0]?.state).toBe('cancelled');
  const second = await keptSession(home, script);
  expect([second.session.status, (await second.run('never mind')).result.outcome]).toEqual([
    'idle',
    { status: 'done' },
  ]);
  expect(second.server.rejections).toBe(0);
});

test('of an overlong result the model gets both ends, and the whole is stored', async () => {
  const { run, cwd } = await agentOn({ answers: [calls('remote'), { text: 'ok' }] }, { tools: [remote] });
  const [call] = (await run('go')).result.pending;
  const whole = `first\n${'x'.repeat(50_000)}\nlast`;
  const done = await run({ results: [{ callId: call?.callId ?? '', output: whole }] });
  const [shown = ''] = outputs(done);
  const file = join(cwd, '.outputs', `${call?.callId}.txt`);
  expect([shown.length < 30_000, shown.startsWith('first\n'), shown.endsWith('\nlast')]).toEqual([true, true, true]);
  expect(shown).toContain(`the whole output is in ${file}`);
  expect(await readFile(file, 'utf8')).toBe(whole);
});

test('the session start is durable before any request, once, with its remote tools', async () => {
  const home = await temporaryFolder();
  const brief = remoteTool({ name: 'brief', description: 'Quick.', schema: { type: 'object' }, timeoutMs: 1_000 });
  const tools = [local, remote, brief];
  const first = await keptSession(home, {}, { tools, remoteTimeoutMs: 5_000 });
  await first.session.begin();
  await first.session.begin();
  const { name, description, schema } = remote;
  const remoteTools = [
    { name, description, schema },
    { name: 'brief', description: 'Quick.', schema: { type: 'object' }, timeoutMs: 1_000 },
  ];
  const start = {
    type: 'session_start',
    model: 'anthropic/scripted',
    cwd: first.cwd,
    remoteTools,
    remoteTimeoutMs: 5_000,
  };
  expect(await first.records()).toMatchObject([{ seq: 1, ...start }]);
  await first.die();

  const lives = [
    { tools, remoteTimeoutMs: 5_000 },
    { tools: [local] }, // no remote tool, but the call stays pending for later ones
    { tools },
    { tools: [brief] },
  ];
  const starts: (readonly string[] | undefined)[] = [];
  for (const settings of lives) {
    const life = await keptSession(home, {}, settings);
    await life.session.begin();
    const records = await life.records();
    starts.push(records.map((record) => (record.type === 'session_start' ? `${record.remoteTools?.length}` : '?')));
    await life.die();
  }
  expect(starts).toEqual([['2'], ['2'], ['2'], ['2', '1']]);
});
