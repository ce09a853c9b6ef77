// One broker for all runs and sessions of a process: what they share, what not, and when it ends.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DroverClient } from '@drover/client/client';
import { expect, test } from 'vitest';
import { desk as served, servedHere } from '../cli/serve/served.ts';
import { drover } from '../cli/fake-io.ts';
import { call, desk, HOSTILE, hostile, isAlive } from '../support/mcp/brokers.ts';
import { processesOf } from '../support/mcp/server-processes.ts';

const SLOW = { timeout: 120_000 };
const ROOT = new URL('../..', import.meta.url).pathname;

test('runs with the same entry, folder and rights share a server', SLOW, async () => {
  const { again, pids, opened } = await desk([hostile('none')]);
  const other = await again({});
  expect([pids.length, other.tools]).toEqual([1, opened.tools]);
  await opened.close();
  expect(pids.map(isAlive)).toEqual([true]);
  const agent = other.lineFor({
    cwd: '/tmp',
    sandbox: undefined,
    emit: () => undefined,
    question: async () => undefined,
  });
  expect(await call(agent)).toEqual({ output: 'call 1' });
  await other.close();
  expect(pids.map(isAlive)).toEqual([false]);
});

test.each([
  ['another folder', { cwd: '/' }],
  ['other rights', { rights: 'deny' }],
  ['an entry of another file', { servers: [hostile('none', { place: 'elsewhere' })] }],
  ['another time limit', { servers: [hostile('none', { timeoutMs: 1 })] }],
  ['another command', { servers: [hostile('silent')] }],
] as const)('a run with %s has a server of its own', SLOW, async (_, wanted) => {
  const { again, pids } = await desk([hostile('none')]);
  const other = await again(wanted);
  expect(pids.map(isAlive)).toEqual([true, true]);
  await other.close();
  expect(pids.map(isAlive)).toEqual([true, false]);
});

test('an idle server serves the next run, and ends if none comes', SLOW, async () => {
  const { again, pids, opened } = await desk([hostile('none')], { idleMs: 300 });
  await opened.close();
  const next = await again({});
  expect(pids.map(isAlive)).toEqual([true]);
  await next.close();
  await expect.poll(() => pids.map(isAlive), { timeout: 10_000 }).toEqual([false]);
});

test('a server that is given up starts anew for the next run', SLOW, async () => {
  const { again, line, pids } = await desk([hostile('dies')]);
  const agent = line();
  for (let times = 0; times < 4; times++) await call(agent);
  expect(pids.length).toBe(3);
  const next = await again({});
  expect([pids.length, next.tools.length]).toEqual([4, 1]);
});

async function turn(client: DroverClient, cwd?: string): Promise<void> {
  const { id } = await client.createSession({ ...(cwd !== undefined && { cwd }) });
  for await (const event of client.execute(id, { content: 'Hello' })) if (event.type === 'done') break;
}

test('sessions of drover serve share a server, and none is left after it', SLOW, async () => {
  const cwd = await served();
  const file = join(cwd, 'servers.json');
  const entry = { command: 'node', args: [HOSTILE, 'none', cwd], readable: [ROOT], startTimeout: '60s' };
  await writeFile(file, JSON.stringify({ mcpServers: { own: entry } }));
  const { client, stop } = await servedHere(cwd, ['--sandbox', 'off', '--mcp', file]);
  await turn(client);
  const [first] = processesOf(HOSTILE, cwd);
  expect(first).toBeDefined();
  await Promise.all([turn(client), turn(client)]);
  expect(processesOf(HOSTILE, cwd)).toEqual([first]);
  await stop();
  expect(processesOf(HOSTILE, cwd)).toEqual([]);
});

test('a server of an approved project is used by no session once its file has changed', SLOW, async () => {
  const cwd = await served();
  const project = join(cwd, 'project');
  const entry = { command: 'node', args: [HOSTILE, 'none', cwd], readable: [ROOT], startTimeout: '60s' };
  const file = join(project, '.mcp.json');
  await writeFile(file, JSON.stringify({ mcpServers: { own: entry } }));
  const { client } = await servedHere(cwd, ['--sandbox', 'off']);
  await turn(client);
  expect(processesOf(HOSTILE, cwd)).toEqual([]);
  expect((await drover(['trust', '--yes'], { cwd: project, env: { HOME: cwd } })).code).toBe(0);
  await turn(client);
  const approved = processesOf(HOSTILE, cwd);
  expect(approved.length).toBe(1);
  await writeFile(file, JSON.stringify({ mcpServers: { own: { ...entry, args: [...entry.args, 'more'] } } }));
  await turn(client);
  expect(processesOf(HOSTILE, cwd)).toEqual(approved);
});
