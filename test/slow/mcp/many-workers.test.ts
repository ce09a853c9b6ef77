// Eight workers share three servers from npm, and each has one of its own; none is left at the end.

import { fileURLToPath } from 'node:url';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { HOSTILE } from '../../support/mcp/brokers.ts';
import { processesOf } from '../../support/mcp/server-processes.ts';
import { calls, planned, RunDesk, statuses, submits } from '../../support/run/run-desk.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const fileOf = (name: string) => join(ROOT, 'node_modules/@modelcontextprotocol', `server-${name}`, 'dist/index.js');
const SHARED = ['everything', 'filesystem', 'memory'].map(fileOf);
const TASKS = Array.from({ length: 8 }, (_, at) => `task-${at}`);
const NAMES = [
  'mcp__everything__echo',
  'mcp__filesystem__list_allowed_directories',
  'mcp__memory__read_graph',
  'mcp__own__go',
];

test('3 shared servers and 8 of tasks serve 8 workers, and 0 are left', async () => {
  const answers = [
    ...NAMES.map((name) => calls(name, name.includes('echo') ? { message: 'hello' } : {})),
    submits('done'),
  ];
  const desk = await RunDesk.with(planned(Object.fromEntries(TASKS.map((id) => [id, { answers }]))));
  const memory = join(desk.folder, 'memory');
  mkdirSync(memory);
  const [everything = '', filesystem = '', graph = ''] = SHARED;
  const readable = [ROOT];
  const servers = {
    everything: { command: 'node', args: [everything], readable },
    filesystem: { command: 'node', args: [filesystem, desk.repository], readable },
    memory: {
      command: 'node',
      args: [graph],
      readable,
      writable: [memory],
      env: { MEMORY_FILE_PATH: join(memory, 'graph.json') },
    },
    own: { command: 'node', args: [HOSTILE, 'none'], scope: 'task', readable },
  };
  const file = join(desk.folder, 'mcp.json');
  writeFileSync(file, JSON.stringify({ mcpServers: servers }));
  const seen = new Map([...SHARED, HOSTILE].map((path) => [path, new Set<number>()]));
  const look = setInterval(() => seen.forEach((ids, path) => processesOf(path).forEach((id) => ids.add(id))), 20);
  const { events, end } = await desk
    .run(['run', 'x', '--mcp', file, '--workers', '8', '--allow', 'mcp'])
    .finally(() => clearInterval(look));
  expect(new Set(Object.values(statuses(end)))).toEqual(new Set(['done']));
  const ended = events.filter((event) => event.type === 'tool_execution_end' && event.name.startsWith('mcp__'));
  expect(ended.map((event) => ('isError' in event ? event.isError : undefined))).toEqual(Array(8 * 4).fill(false));
  expect(new Set(ended.map(({ task }) => task)).size).toBe(8);
  // One more of the task's kind listed the tools before planning.
  expect([...seen.values()].map(({ size }) => size)).toEqual([1, 1, 1, 8 + 1]);
  await expect.poll(() => [...SHARED, HOSTILE].flatMap((path) => processesOf(path)), { timeout: 10_000 }).toEqual([]);
  // All workers declare the same bytes up to their tasks.
  const first = TASKS.map((task) => desk.server.requests.find(({ agent }) => agent === task)?.rawBody ?? '');
  const beginnings = first.map((body) => body.slice(0, body.indexOf('You are worker')));
  expect(new Set(beginnings).size).toBe(1);
  expect(beginnings[0]?.length).toBeGreaterThan(10_000);
});
