// The loop: one agent, a scripted model, real tools.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineTool } from '@drover/core/tools/tool';
import { builtinTools } from '@drover/core/tools/builtin';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { agentOn, quickRetry } from '../../support/agent.ts';
import { proves } from '../../support/proves.ts';
import { story } from '../../support/story.ts';

const echo = defineTool({
  name: 'echo',
  description: 'Says it back after a while.',
  input: z.object({ text: z.string(), ms: z.number().default(0) }),
  access: 'none',
  subject: ({ text }) => text,
  async run({ text, ms }, { signal }) {
    await sleep(ms, undefined, { signal });
    return text;
  },
});

test('an answer without calls ends the turn', async () => {
  const { run } = await agentOn({ answers: [{ text: 'Hello.' }] });
  const { events, result } = await run('hi');
  expect(story(events)).toEqual([
    'session starts',
    'user says hi',
    'model says Hello. (stop)',
    'done',
    'session ends: done',
  ]);
  expect(result.outcome).toEqual({ status: 'done' });
});

test('calls run, their results return as one message in order, and the model continues', async () => {
  const calls = [
    { name: 'echo', args: { text: 'slow', ms: 80 } },
    { name: 'echo', args: { text: 'quick' } },
  ];
  const { run, server } = await agentOn({ answers: [{ calls }, { text: 'Both.' }] }, { tools: [echo] });
  const { events } = await run('go');
  expect(story(events)).toEqual([
    'session starts',
    'user says go',
    'model calls echo, calls echo (tool_calls)',
    '0 starts echo {"text":"slow","ms":80}',
    '1 starts echo {"text":"quick"}',
    '1 ends: quick',
    '0 ends: slow',
    'results echo ok, echo ok',
    'model says Both. (stop)',
    'done',
    'session ends: done',
  ]);
  const { messages = [] } = (server.requests[1]?.body ?? {}) as { messages?: readonly object[] };
  expect(JSON.stringify(messages.at(-1))).toMatch(/slow.*quick/);
});

test('events pair by callId and carry turn, step and agent', async () => {
  const { run } = await agentOn(
    { answers: [{ calls: [{ name: 'echo', args: { text: 'a' } }] }, { text: 'ok' }] },
    { tools: [echo], worker: 3 },
  );
  const { events } = await run('go');
  const start = events.find((event) => event.type === 'tool_execution_start');
  const end = events.find((event) => event.type === 'tool_execution_end');
  expect(start).toMatchObject({ index: 300, callIndex: 0, worker: 3, turn: 1, step: 1, name: 'echo' });
  expect(end).toMatchObject({ callId: start?.callId, toolUseId: start?.toolUseId, output: 'a', outputSummary: 'a' });
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
});

proves('calls.one-result', 'unknown, malformed, refused and failing calls get an error result', async () => {
  const { run, server } = await agentOn(
    {
      answers: [
        {
          calls: [
            { name: 'nonsense', args: {} },
            { name: 'echo', args: { text: 7 } },
            { name: 'shell', args: { command: 'rm -rf x' } },
            { name: 'read', args: { path: 'not/there' } },
            { name: 'echo', args: { text: 'fine' } },
          ],
        },
        { text: 'I see.' },
      ],
    },
    {
      tools: [...builtinTools, echo],
      judge: async ({ name }) =>
        name === 'shell' ? { effect: 'deny', why: 'a rule says no' } : { effect: 'allow', why: '' },
    },
  );
  const { events, result } = await run('go');
  const ends = events.filter((event) => event.type === 'tool_execution_end');
  const starts = events.filter((event) => event.type === 'tool_execution_start');
  expect(starts.map(({ name }) => name).sort()).toEqual(['echo', 'read']);
  expect(ends.sort((a, b) => a.callIndex - b.callIndex).map(({ callIndex, isError }) => [callIndex, isError])).toEqual([
    [0, true],
    [1, true],
    [2, true],
    [3, true],
    [4, false],
  ]);
  expect(ends[0]?.output).toContain('The tools are: ');
  expect(ends[1]?.output).toContain('text');
  expect(ends[2]?.output).toBe('Not allowed: a rule says no');
  expect(result.denials).toEqual([{ name: 'shell', subject: 'rm -rf x', why: 'a rule says no' }]);
  expect(server.rejections).toBe(0);
  expect(result.outcome.status).toBe('done');
});

test('a tool name in other case or decoration is accepted only if it matches exactly', async () => {
  const names = ['Echo', 'functions.echo', 'echo<|channel|>commentary', 'echoes', 'my.echo'];
  const { run } = await agentOn(
    { answers: [{ calls: names.map((name) => ({ name, args: { text: name } })) }, { text: 'ok' }] },
    { tools: [echo] },
  );
  const { events } = await run('go');
  const ends = events.filter((event) => event.type === 'tool_execution_end');
  expect(
    ends
      .filter(({ isError }) => !isError)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(['Echo', 'echo<|channel|>commentary', 'functions.echo']);
});

test('unknown tools three times in a row end the turn', async () => {
  const { run } = await agentOn({ answers: [{ calls: [{ name: 'nope', args: {} }] }], loop: true });
  const { result } = await run('go');
  expect(result.outcome).toEqual({ status: 'incomplete', failure: { kind: 'tool.unknown', limit: 3 } });
});

test('of more than a hundred calls the first hundred run, and the rest get an error', async () => {
  const calls = Array.from({ length: 103 }, (_, n) => ({ name: 'echo', args: { text: `${n}` } }));
  const { run, server } = await agentOn({ answers: [{ calls }, { text: 'ok' }] }, { tools: [echo] });
  const { events, result } = await run('go');
  expect(events.filter(({ type }) => type === 'tool_execution_start')).toHaveLength(100);
  expect(new Set(events.flatMap((event) => (event.type === 'tool_execution_start' ? [event.index] : []))).size).toBe(
    100,
  );
  const tool = result.messages.find((message) => message.role === 'tool');
  expect(tool?.results.filter(({ isError }) => isError).map(({ output }) => output)).toEqual(
    [101, 102, 103].map((n) => `Not run: an answer may hold at most 100 calls, and this was number ${n}.`),
  );
  expect(server.rejections).toBe(0);
});

test('two writes to one path in one answer never overlap', async () => {
  const calls = Array.from({ length: 6 }, (_, n) => ({
    name: 'write',
    args: { path: n % 2 ? './same.txt' : 'same.txt', content: `${n}`.repeat(50_000) },
  }));
  const { run } = await agentOn({ answers: [{ calls }, { text: 'ok' }] });
  const { events } = await run('go');
  let running = 0;
  for (const event of events) {
    if (event.type === 'tool_execution_start') running += 1;
    if (event.type === 'tool_execution_end') running -= 1;
    expect(running).toBeLessThanOrEqual(1);
  }
});

describe('a call written as text', () => {
  const written = { text: '<invoke name="echo">\n<parameter name="text">x</parameter>\n</invoke>' };

  test('is discarded, not executed, and asked for again with a temporary reminder', async () => {
    const { run, session, server } = await agentOn(
      { answers: [written, { text: 'Properly, then.' }] },
      { tools: [echo] },
    );
    const { events, result } = await run('go');
    expect(story(events)).toEqual([
      'session starts',
      'user says go',
      'discards an attempt: a call of echo was written as text (invoke)',
      'model says Properly, then. (stop)',
      'done',
      'session ends: done',
    ]);
    expect(server.requests[1]?.rawBody).toContain('written as text');
    expect(JSON.stringify(session.conversation.messages)).not.toMatch(/invoke|written as text/);
    expect(result.usage.output).toBeGreaterThan(20);
  });

  test('has a new limit for each message', async () => {
    const { run } = await agentOn(
      { answers: [written, written, { text: 'ok' }, written, written, { text: 'ok' }] },
      { tools: [echo] },
    );
    expect((await run('one')).result.outcome).toEqual({ status: 'done' });
    expect((await run('two')).result.outcome).toEqual({ status: 'done' });
  });

  test('that repeats ends the turn: error, or incomplete after work', async () => {
    const { run } = await agentOn({ answers: [written], loop: true }, { tools: [echo] });
    expect((await run('go')).result.outcome).toEqual({
      status: 'error',
      failure: { kind: 'answer.text_call', tool: 'echo', limit: 2 },
    });
    const after = await agentOn(
      { answers: [{ calls: [{ name: 'echo', args: { text: 'x' } }] }, written, written, written] },
      { tools: [echo] },
    );
    expect((await after.run('go')).result.outcome).toMatchObject({ status: 'incomplete' });
  });

  test('shares one limit with all other retries', async () => {
    const failing = Array.from({ length: 40 }, (_, n) => n + 1).filter((n) => n % 10 !== 0);
    const { run, server } = await agentOn(
      { answers: [written], loop: true, faults: [{ at: failing, fault: 'status', status: 503 }] },
      { tools: [echo], retry: { ...quickRetry, attemptsMax: 12 } },
    );
    expect((await run('go')).result.outcome).toMatchObject({ failure: { kind: 'provider.unavailable' } });
    expect(server.requests).toHaveLength(16);
  });

  test('a limit of 0 makes it an ordinary answer', async () => {
    const { run } = await agentOn(
      { answers: [written] },
      { tools: [echo], limits: { stepsMax: 5, textCallRetriesMax: 0 } },
    );
    expect((await run('go')).result.outcome).toEqual({ status: 'done' });
  });
});

describe('endings', () => {
  test('an empty answer is nudged once, without a trace in history, then ends the turn', async () => {
    const { run, server, session } = await agentOn({ answers: [{ text: '' }], loop: true });
    const { events, result } = await run('go');
    expect(story(events)).toEqual([
      'session starts',
      'user says go',
      'model says nothing (stop)',
      'model says nothing (stop)',
      'error: answer.empty',
      'session ends: error',
    ]);
    expect(server.requests[1]?.rawBody).toContain('Your last answer was empty');
    expect(session.conversation.messages).toHaveLength(1);
    expect(result.outcome.status).toBe('error');
  });

  test('an empty answer that succeeds after the nudge is success', async () => {
    const { run } = await agentOn({ answers: [{ thinking: 'hm' }, { text: 'There.' }] });
    expect((await run('go')).result.outcome).toEqual({ status: 'done' });
  });

  test('the same failure after work is incomplete, not error', async () => {
    const { run } = await agentOn(
      { answers: [{ calls: [{ name: 'echo', args: { text: 'x' } }] }, { text: '' }, { text: '' }] },
      { tools: [echo] },
    );
    expect((await run('go')).result.outcome).toEqual({ status: 'incomplete', failure: { kind: 'answer.empty' } });
  });

  test('a refusal ends the turn, is not stored, and the next message works', async () => {
    const { run, session, server } = await agentOn({
      answers: [{ text: 'I cannot do that.', stop: 'refusal' }, { text: 'Sure.' }],
    });
    const { result } = await run('go');
    expect(result.outcome).toMatchObject({ status: 'incomplete', failure: { kind: 'answer.refused' } });
    expect(session.conversation.messages.map(({ role }) => role)).toEqual(['user']);
    expect((await run('something else')).result.outcome).toEqual({ status: 'done' });
    expect(server.rejections).toBe(0);
  });

  test('a refusal without a word is an error', async () => {
    const { run } = await agentOn({ answers: [{ text: '', stop: 'refusal' }] });
    expect((await run('go')).result.outcome).toMatchObject({ status: 'error', failure: { kind: 'answer.refused' } });
  });

  test('an answer cut off at the output limit is incomplete, and stored', async () => {
    const { run } = await agentOn({ answers: [{ text: 'It all began', stop: 'length' }] });
    const { result } = await run('go');
    expect(result.outcome).toMatchObject({
      status: 'incomplete',
      failure: { kind: 'limit.reached', limit: 'output-tokens' },
    });
    expect(result.messages).toHaveLength(2);
  });

  test('the step limit ends the turn and keeps the work', async () => {
    const { run, server } = await agentOn(
      { answers: [{ calls: [{ name: 'echo', args: { text: 'again' } }] }], loop: true },
      { tools: [echo], limits: { textCallRetriesMax: 2, stepsMax: 3 } },
    );
    const { result } = await run('go');
    expect(result.outcome).toMatchObject({ status: 'incomplete', failure: { limit: 'steps' } });
    expect(server.requests).toHaveLength(3);
    expect(result.messages).toHaveLength(7);
  });

  test('the time limit stops a running tool and ends the turn', async () => {
    const { run } = await agentOn(
      { answers: [{ calls: [{ name: 'echo', args: { text: 'never', ms: 60_000 } }] }] },
      { tools: [echo], limits: { textCallRetriesMax: 2, stepsMax: 9, timeoutMs: 150 } },
    );
    const { result } = await run('go');
    expect(result.outcome).toMatchObject({ status: 'incomplete', failure: { limit: 'time' } });
  });

  test('idle time counts without progress, and progress resets it', async () => {
    const slow = { calls: [{ name: 'echo', args: { text: 'x', ms: 100 } }] };
    const { run } = await agentOn(
      { answers: [slow, slow, slow, slow, { text: 'ok' }] },
      { tools: [echo], limits: { textCallRetriesMax: 2, stepsMax: 9, idleMs: 400 } },
    );
    expect((await run('go')).result.outcome).toEqual({ status: 'done' });
    const stuck = await agentOn(
      { answers: [{ text: 'x', delayMs: 30_000 }] },
      { limits: { textCallRetriesMax: 2, stepsMax: 9, idleMs: 150 } },
    );
    expect((await stuck.run('go')).result.outcome).toMatchObject({ status: 'error', failure: { limit: 'idle' } });
  });

  proves('budget.holds', 'a token budget ends the turn before it is exceeded', async () => {
    const { run, server } = await agentOn(
      { answers: [{ calls: [{ name: 'echo', args: { text: 'x'.repeat(2_000) } }] }], loop: true },
      { tools: [echo], cap: { tokens: 12_000 } },
    );
    const { result } = await run('go');
    expect(result.outcome).toMatchObject({ status: 'incomplete', failure: { limit: 'budget' } });
    const { input, output, cacheRead, cacheWrite } = result.usage;
    expect(input + output + cacheRead + cacheWrite).toBeLessThanOrEqual(12_000);
    expect(server.requests.length).toBeGreaterThan(1);
  });

  proves('turn.one-ending', 'every turn has exactly one ending, and then session_end', async () => {
    const scripts = [
      { answers: [{ text: 'fine' }] },
      { answers: [{ text: '' }], loop: true },
      { answers: [{ text: 'x', stop: 'refusal' as const }] },
      { answers: [], otherwise: { fault: { fault: 'status' as const, status: 401 } } },
      { answers: [], otherwise: { fault: { fault: 'status' as const, status: 529 } } },
      { answers: [{ calls: [{ name: 'nope' }] }], loop: true },
    ];
    for (const script of scripts) {
      const { run } = await agentOn(script);
      const { events } = await run('go');
      const endings = events.filter(({ type }) => ['done', 'incomplete', 'error', 'cancelled'].includes(type));
      expect(endings).toHaveLength(1);
      expect(events.slice(-2).map(({ type }) => type)).toEqual([endings[0]?.type, 'session_end']);
    }
  });
});

test('repository instructions are in the prompt; a folder’s come with its first result', async () => {
  const { run, server, cwd } = await agentOn({
    answers: [
      { calls: [{ name: 'read', args: { path: 'src/a.txt' } }] },
      { calls: [{ name: 'read', args: { path: 'src/a.txt' } }] },
      { text: 'ok' },
    ],
  });
  await writeFile(join(cwd, 'AGENTS.md'), 'Use tabs.');
  await writeFile(join(cwd, 'CLAUDE.md'), 'Use tabs.');
  const { mkdir } = await import('node:fs/promises');
  await mkdir(join(cwd, 'src'));
  await writeFile(join(cwd, 'src', 'AGENTS.md'), 'No classes here.');
  await writeFile(join(cwd, 'src', 'a.txt'), 'text');
  const { result } = await run('go');
  const system = JSON.stringify((server.requests[0]?.body as { system: object } | undefined)?.system);
  expect(system.match(/Use tabs\./g)).toHaveLength(1);
  const outputs = result.messages.flatMap((message) =>
    message.role === 'tool' ? message.results.map(({ output }) => output) : [],
  );
  expect(outputs.map((output) => output.includes('No classes here.'))).toEqual([true, false]);
});
