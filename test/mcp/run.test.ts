// MCP servers in a run: workers call one server of the main process over their line.

import { fileURLToPath } from 'node:url';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, statuses, submits } from '../support/run/run-desk.ts';

const EVERYTHING = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
);
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

async function mcpFile({ folder }: RunDesk): Promise<string> {
  const file = join(folder, 'mcp.json');
  const server = { command: 'node', args: [EVERYTHING], readable: [MODULES] };
  await writeFile(file, JSON.stringify({ mcpServers: { everything: server } }));
  return file;
}

test('a worker calls a tool of an MCP server', { timeout: 120_000 }, async () => {
  const desk = await RunDesk.with(
    planned({ one: { answers: [calls('mcp__everything__echo', { message: 'hello' }), submits('done')] } }),
  );
  const file = await mcpFile(desk);
  const { events, end, stderr } = await desk.run([
    'run',
    'x',
    '--mcp',
    file,
    '--workers',
    '1',
    '--allow',
    'mcp(everything.*)',
  ]);
  expect(stderr).toBe('');
  expect(statuses(end)).toEqual({ one: 'done' });
  const ended = events.find((event) => event.type === 'tool_execution_end' && event.name === 'mcp__everything__echo');
  expect(ended).toMatchObject({ output: 'Echo: hello', isError: false, task: 'one' });
});

test('a budget that a call to a server outlives keeps its result for the resume', { timeout: 120_000 }, async () => {
  const dear = { ...calls('mcp__everything__echo', { message: 'hello' }), usage: { output: 20_000 } }; // $1.50
  const desk = await RunDesk.with({ order: 'conversation', answers: [dear, { text: 'Heard it.' }] });
  const servers = ['--mcp', await mcpFile(desk), '--allow', 'mcp(everything.*)'];
  const exec = ['exec', 'go', '--session', 's', '--model', 'anthropic/claude-opus-4-1', '--budget', '1.6usd'];
  const first = await desk.drover([...exec, ...servers]);
  expect([first.code, desk.server.requests.length]).toEqual([6, 1]);
  expect(first.stdout).toContain('the budget does not allow another request');

  const again = await desk.drover(['resume', 's', '--budget', '9usd', ...servers]);
  expect([again.code, again.stdout.includes('Heard it.')]).toEqual([0, true]);
  const asked = JSON.stringify(desk.server.requests.at(-1)?.body);
  expect([desk.server.requests.length, asked.match(/Echo: hello/g)?.length]).toEqual([2, 1]);
});
