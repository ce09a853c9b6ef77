// Repeated calls of a worker: told at five, ended at ten.

import { expect, test } from 'vitest';
import { Repeats } from '@drover/core/agent/calls/repeats';
import type { CallPart, Message, ToolResult } from '@drover/protocol/messages';
import { agentOn } from '../../support/agent.ts';

const reading = (path: string) => ({ calls: [{ name: 'read', args: { path } }] });
const notes = (results: readonly { readonly output: string }[]) =>
  results.map(({ output }) => /you have made this call (\d+) times/.exec(output)?.[1] ?? '-');

test('a worker that repeats a call is told at five and ended at ten', async () => {
  const { run } = await agentOn({ answers: [reading('gone.txt')], loop: true }, { worker: 1 });
  const { result, events } = await run('go');
  expect(result.outcome).toEqual({
    status: 'incomplete',
    failure: { kind: 'call.repeated', call: expect.stringContaining('gone.txt'), times: 10 },
  });
  const results = events.flatMap((event) =>
    event.type === 'message_end' && event.message.role === 'tool' ? event.message.results : [],
  );
  expect(notes(results)).toEqual(['-', '-', '-', '-', '5', '6', '7', '8', '9', '10']);
});

test('two calls in turn count as repeats, too', async () => {
  const { run } = await agentOn({ answers: [reading('a'), reading('b')], loop: true }, { worker: 1 });
  expect((await run('go')).result.outcome).toMatchObject({ failure: { kind: 'call.repeated' } });
});

test('an agent that is not a worker may repeat calls', async () => {
  const { run } = await agentOn({ answers: [...Array(12).fill(reading('gone.txt')), { text: 'ok' }] });
  expect((await run('go')).result.outcome).toEqual({ status: 'done' });
});

const call = (args: string): CallPart => ({ type: 'tool_call', id: 'c', name: 'shell', args: { command: args } });
const result = (output: string): ToolResult => ({ id: 'c', name: 'shell', output, isError: false });

test('a new result between repeats starts the count again', () => {
  const repeats = new Repeats();
  const counts: string[] = [];
  for (let n = 0; n < 12; n++) {
    repeats.take([call(`edit ${n}`)], [result('edited')]);
    counts.push(...notes(repeats.take([call('test')], [result('red')]).results));
  }
  expect(counts).toEqual(Array(12).fill('-'));
});

test('a resumed turn continues the counts of its messages', () => {
  const live = new Repeats();
  const messages: Message[] = [{ role: 'user', content: [{ type: 'text', text: 'go' }] }];
  for (let n = 0; n < 7; n++) {
    const { results } = live.take([call('test')], [result('red')]);
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    messages.push({ role: 'assistant', content: [call('test')], stop: 'tool_calls', usage });
    messages.push({ role: 'tool', results });
  }
  expect(notes(Repeats.in(messages).take([call('test')], [result('red')]).results)).toEqual(['8']);
});
