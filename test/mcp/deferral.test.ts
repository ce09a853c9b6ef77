// Stable prompts: with and without servers all workers begin with the same bytes; deferred tools are found and used.

import { expect, test } from 'vitest';
import { bodiesOf, checkPrefix, ranWith, toolsIn } from '../support/mcp/prefix.ts';
import { calls, submits } from '../support/run/run-desk.ts';

const SLOW = { timeout: 240_000 };

test.each([0, 3])('with %i servers all workers begin with the same bytes', SLOW, (count) => checkPrefix(count));

test('deferred tools are found, declared behind the others, and called', SLOW, async () => {
  const answers = [calls('find_tools', { query: 'go on server-01' }), calls('mcp__server-01__go', {}), submits('done')];
  const { desk, events } = await ranWith(3, answers, { defer: true });
  const tools = bodiesOf(desk, 'one').map((body) => toolsIn(body));
  const [first = [], second = []] = tools;
  expect(first.at(-1)).toBe('find_tools');
  expect(first.some((name) => name.startsWith('mcp__'))).toBe(false);
  expect(second.slice(0, first.length)).toEqual(first);
  expect(second.slice(first.length)).toContain('mcp__server-01__go');
  expect(tools.at(-1)).toEqual(second);
  const ended = events.find((event) => event.type === 'tool_execution_end' && event.name === 'mcp__server-01__go');
  expect(ended).toMatchObject({ output: 'call 1', isError: false });
});
