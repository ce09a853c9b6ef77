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

test('a worker calls a tool of an MCP server', { timeout: 120_000 }, async () => {
  const desk = await RunDesk.with(
    planned({ one: { answers: [calls('mcp__everything__echo', { message: 'hello' }), submits('done')] } }),
  );
  const file = join(desk.folder, 'mcp.json');
  const server = { command: 'node', args: [EVERYTHING], readable: [MODULES] };
  await writeFile(file, JSON.stringify({ mcpServers: { everything: server } }));
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
