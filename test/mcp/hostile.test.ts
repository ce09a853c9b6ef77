// A hostile MCP server: each fault is bounded and named, and the work continues.

import { expect, test } from 'vitest';
import { call, desk, hostile, isAlive } from '../support/mcp/brokers.ts';

const SLOW = { timeout: 120_000 };

test('a server that dies is restarted twice, then its tools say so', SLOW, async () => {
  const { line, pids, pauses } = await desk([hostile('dies')]);
  const agent = line();
  const answers = [await call(agent), await call(agent), await call(agent), await call(agent)].map(
    ({ output }) => output,
  );
  expect(answers.slice(0, 3)).toEqual(
    Array(3).fill('The MCP server hostile is gone: it ended with exit code 7. The call may have taken effect.'),
  );
  expect(answers[3]).toContain('is not available: it ended or did not start 3 times, and is not started again');
  expect([pids.length, pauses]).toEqual([3, [1_000, 4_000]]);
});

test('a server that does not start is named with what it complained of', SLOW, async () => {
  const { opened } = await desk([hostile('stillborn', { isRequired: true }), hostile('none', { name: 'other' })]);
  expect(opened.problems).toEqual([
    {
      server: 'hostile',
      message: expect.stringMatching(/did not start: it ended with exit code 3\ncannot find the database$/) as string,
      isFatal: true,
    },
  ]);
  expect(opened.tools.map(({ name }) => name)).toEqual(['mcp__other__go']);
});

test('a server that never answers is given up within its limit', SLOW, async () => {
  const { opened } = await desk([hostile('mute', { startMs: 700 })]);
  expect(opened.problems.map(({ message }) => message)).toEqual([
    expect.stringContaining('did not start: it did not answer within 700 ms'),
  ]);
});

test('a call without an answer ends at its time limit, and the server lives on', SLOW, async () => {
  const { line, pids } = await desk([hostile('silent', { timeoutMs: 300 })]);
  const { output, isError } = await call(line());
  expect([output, isError]).toEqual([
    'The MCP server hostile did not answer: nothing came for 300 ms. It was told to cancel; it may have taken effect all the same.',
    true,
  ]);
  expect(pids.map(isAlive)).toEqual([true]);
});

test('a cancelled call ends at once', SLOW, async () => {
  const { line } = await desk([hostile('silent')]);
  const stop = new AbortController();
  const asked = call(line(), {}, { signal: stop.signal });
  stop.abort();
  expect((await asked).output).toMatch(/^Interrupted|interrupted before it was started/);
});

test('endless progress is passed on in part, and ends with the total limit', SLOW, async () => {
  const { line } = await desk([hostile('floods', { timeoutMs: 300 })]);
  const deltas: string[] = [];
  const { output } = await call(line(), {}, { onDelta: (delta) => void deltas.push(delta) });
  expect(output).toMatch(/did not answer: (?:it took longer than 3 s|nothing came for 300 ms)/);
  expect(deltas.length).toBeGreaterThan(0);
  expect(deltas.length).toBeLessThanOrEqual(200);
});

test('an answer of more than 10 MiB ends the connection', SLOW, async () => {
  const { line } = await desk([hostile('huge')]);
  expect((await call(line())).output).toContain('is gone: it sent a message of more than 10 MiB');
});

test('lines that are not messages are skipped', SLOW, async () => {
  const { line } = await desk([hostile('garbled')]);
  expect(await call(line())).toEqual({ output: 'through the noise' });
});

test('megabytes on stderr stall nothing', SLOW, async () => {
  const { line } = await desk([hostile('complains')]);
  expect(await call(line())).toEqual({ output: 'call 1' });
});

test('a regular expression of a server never runs', SLOW, async () => {
  const { line, opened } = await desk([hostile('patterns')]);
  expect(opened.tools.length).toBe(1);
  expect((await call(line(), { args: { text: `${'a'.repeat(40)}!` } })).output).toBe(`{"text":"${'a'.repeat(40)}!"}`);
});

test('one broken tool does not hide the others', SLOW, async () => {
  const { opened } = await desk([hostile('broken')]);
  expect(opened.tools.map(({ name, description }) => [name, description.length])).toEqual([
    ['mcp__hostile__go', 4_001],
  ]);
  expect(opened.problems.map(({ message }) => message.replace(/^.*which is left out: /, ''))).toEqual([
    'it is no object',
    'its schema is no object',
    'its name is not made of letters, digits, _, -, . and /',
    'its schema is no object',
    'its schema has the type "strnig"',
    'its schema refers to another document',
    'its schema has anyOf at the top, which providers refuse',
    'its schema is nested deeper than 40',
    'there is another one of this name',
  ]);
  // eslint-disable-next-line no-control-regex
  expect(JSON.stringify(opened.problems)).not.toContain('u001b');
});

test('an answer that is nested too deep is an error of its call', SLOW, async () => {
  const { line } = await desk([hostile('deep')]);
  expect((await call(line())).output).toContain('the answer is nested deeper than 100');
});

test('content of unknown types is named, and the rest is taken', SLOW, async () => {
  const { line } = await desk([hostile('odd')]);
  expect(await call(line())).toEqual({
    output:
      '[content of type "hologram" was left out]\n[content that is no object was left out]\nfine\n[an image of type "text/html" was left out]',
  });
});

test('a server that asks for ever is declined after ten questions', SLOW, async () => {
  const { line, questions, events } = await desk([hostile('asks', { timeoutMs: 500 })]);
  const { output } = await call(line());
  expect(output).toMatch(/it took longer than 5 s|nothing came for 500 ms/);
  expect(questions.map(({ subject }) => subject)).toEqual(Array(10).fill('hostile.go asks: Tell me more?\nok: true'));
  expect(events.map(({ type }) => type)).toEqual(Array(10).fill(['permission_request', 'permission_decision']).flat());
});

test.each([
  ['changes', 'changed'],
  ['restless', 'restless'], // it never stops to send notices
] as const)('changed tools of a server that %s are told once', SLOW, async (fault, said) => {
  const { line, opened, events } = await desk([hostile(fault)]);
  const agent = line();
  await expect.poll(async () => (await call(agent)).output, { timeout: 20_000 }).toContain('has changed its tools');
  expect((await call(agent)).output).toBe(said);
  expect(opened.tools.map(({ tool }) => tool)).toEqual(['go']);
  expect(events).toEqual([
    {
      type: 'warning',
      message: 'the MCP server hostile has changed its tools; the agent keeps those that it began with',
    },
  ]);
});

test('a server that ignores the end of its input and TERM is killed', SLOW, async () => {
  const { pids, close } = await desk([hostile('stubborn')]);
  expect(pids.map(isAlive)).toEqual([true]);
  await close();
  expect(pids.map(isAlive)).toEqual([false]);
});
