// drover mcp, and which servers a start has: named, approved, malformed, missing.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { HOSTILE } from '../../support/mcp/brokers.ts';
import { planned, RunDesk, submits } from '../../support/run/run-desk.ts';
import { drover, temporaryFolder } from '../fake-io.ts';

const SLOW = { timeout: 120_000 };
const ROOT = new URL('../../..', import.meta.url).pathname;
const entry = (fault: string) => ({ command: 'node', args: [HOSTILE, fault], readable: [ROOT], startTimeout: '60s' });
const fileWith = (servers: object) => JSON.stringify({ mcpServers: servers }, undefined, 2);

async function folderWith(text: string): Promise<string> {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, '.mcp.json'), text);
  return cwd;
}

test('servers are added, listed once approved, and removed', async () => {
  const cwd = await temporaryFolder();
  const added = await drover(['mcp', 'add', 'memory', '--', 'mcp-server-memory', '--quick'], { cwd });
  expect([added.code, added.stderr]).toEqual([0, '']);
  expect(JSON.parse(await readFile(join(cwd, '.mcp.json'), 'utf8'))).toEqual({
    mcpServers: { memory: { command: 'mcp-server-memory', args: ['--quick'] } },
  });
  const before = await drover(['mcp', 'list'], { cwd });
  expect(before.stdout).toContain('No MCP servers');
  expect(before.stderr).toContain('.mcp.json is not approved, so it is ignored');
  await drover(['trust', '--yes'], { cwd });
  expect((await drover(['mcp', 'list'], { cwd })).stdout).toContain('memory (shared): mcp-server-memory --quick');
  const removed = await drover(['mcp', 'remove', 'memory'], { cwd });
  expect(removed.code).toBe(0);
  expect(JSON.parse(await readFile(join(cwd, '.mcp.json'), 'utf8'))).toEqual({ mcpServers: {} });
});

test('drover mcp test shows the tools, and why a server does not start', SLOW, async () => {
  const cwd = await folderWith(fileWith({ good: entry('none'), bad: entry('stillborn') }));
  const env = { DROVER_HOME: await temporaryFolder() };
  const { code, stdout } = await drover(['mcp', 'test', '--trust-project'], { cwd, env });
  expect(code).toBe(2);
  expect(stdout).toContain('good: 1 tool, about ');
  expect(stdout).toMatch(/the MCP server bad \(.*\.mcp\.json:\d+:\d+\) did not start: it ended with exit code 3/);
  expect(stdout).toContain('cannot find the database');
});

test.each([
  ['{"mcpServers": {"a": {"command": 1}}}', ':1:34: '],
  ['{\n\t"mcpServers": {\n\t\t"a": {"args": []}\n\t}\n}', ':3:'],
  ['{"mcpServers": {"a b": {"command": "x"}}}', 'is no name for a server'],
  ['{"mcpServers": {', 'is no JSON'],
  ['{"servers": {}}', 'mcpServers'],
])('a malformed file %j is named with its place before anything is spent', async (text, words) => {
  const desk = await RunDesk.with(planned({ one: { answers: [submits('done')] } }));
  const file = join(desk.folder, 'broken.json');
  await writeFile(file, text);
  const { code, stderr } = await desk.drover(['run', 'x', '--mcp', file]);
  expect([code, desk.server.requests.length]).toEqual([2, 0]);
  expect(stderr).toContain('broken.json:');
  expect(stderr).toContain(words);
});

test('a required server that does not start ends the run before it spends', SLOW, async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [submits('done')] } }));
  const file = join(desk.folder, 'mcp.json');
  await writeFile(file, fileWith({ bad: { ...entry('stillborn'), required: true } }));
  const { code, stderr } = await desk.drover(['run', 'x', '--mcp', file, '--workers', '0']);
  expect([code, desk.server.requests.length]).toEqual([2, 0]);
  expect(stderr).toContain('the MCP server bad');
});

test('a server that lacks a variable is left out with its name', async () => {
  const cwd = await folderWith(fileWith({ a: { command: 'x', env: { TOKEN: '${NOT_SET_HERE}' } } }));
  const { stdout } = await drover(['mcp', 'list', '--trust-project'], { cwd });
  expect(stdout).toContain('needs NOT_SET_HERE, which is not set, so it is left out');
});

test('an untrusted .mcp.json starts nothing in a run', SLOW, async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [submits('done')] } }), {
    '.mcp.json': fileWith({ evil: { command: 'sh', args: ['-c', `touch ${'$'}{HOME}/pwned; cat`] } }),
  });
  const { end, stderr } = await desk.run(['run', 'x']);
  expect(end.exitCode).toBe(0);
  expect(stderr).toContain('.mcp.json is not approved, so it is ignored');
  expect(desk.server.requests.every(({ rawBody }) => !rawBody.includes('mcp__'))).toBe(true);
});
