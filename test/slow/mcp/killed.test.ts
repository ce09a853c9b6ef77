// A run that is killed in the middle of an MCP call: what becomes of the call and of the servers.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import type { JsonObject } from '@drover/protocol/json';
import { expect, test } from 'vitest';
import { HOSTILE } from '../../support/mcp/brokers.ts';
import { processesOf } from '../../support/mcp/server-processes.ts';
import { calls, planned, RunDesk, says, submits } from '../../support/run/run-desk.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CHILD = join(ROOT, 'test/support/run/run-crash-child.ts');
const UNCERTAIN = /^UNCERTAIN: drover was stopped/;

async function killedInCall(fault: string, entry: JsonObject, flags: readonly string[]) {
  const script = planned({ one: { answers: [calls('mcp__own__go', {}), submits('done'), says('done')] } });
  const desk = await RunDesk.with(script);
  const file = join(desk.folder, 'mcp.json');
  const server = { command: 'node', args: [HOSTILE, fault, desk.folder], readable: [ROOT], ...entry };
  writeFileSync(file, JSON.stringify({ mcpServers: { own: server } }));
  const more = ['--mcp', file, '--allow', 'mcp', '--workers', '1', ...flags];
  // The first call that starts is submit_plan of the coordinator, so the second record of its type is the one.
  const argv = ['run', 'x', '--model', 'anthropic/scripted', '--view', 'silent', ...more];
  const env = {
    ...process.env,
    DROVER_HOME: desk.home,
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_BASE_URL: desk.server.url,
    DROVER_CRASH_TOOL: 'mcp__own__go',
  };
  const child = spawn(process.execPath, [CHILD, 'tool_execution_start', 'after', ...argv], {
    cwd: desk.repository,
    env,
    stdio: 'ignore',
  });
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
  const left = () => processesOf(HOSTILE, desk.folder).length;
  const resume = async () => {
    const { events } = await desk.run([
      'resume',
      '--yes',
      ...more.filter((each) => each !== '--workers' && each !== '1'),
    ]);
    const ended = events.find((event) => event.type === 'tool_execution_end' && event.name === 'mcp__own__go');
    return ended?.type === 'tool_execution_end' ? ended.output : undefined;
  };
  return { left, resume };
}

test('in the sandbox no server outlives a kill, and the call is UNCERTAIN', async () => {
  const { left, resume } = await killedInCall('stubborn', {}, []);
  await expect.poll(left, { timeout: 5_000 }).toBe(0);
  expect(await resume()).toMatch(UNCERTAIN);
  await expect.poll(left, { timeout: 10_000 }).toBe(0);
});

test('without a sandbox the next start ends what a kill left', async () => {
  const { left, resume } = await killedInCall('stubborn', {}, ['--sandbox', 'off']);
  expect(left()).toBe(1);
  expect(await resume()).toMatch(UNCERTAIN);
  await expect.poll(left, { timeout: 10_000 }).toBe(0);
});

test('a call that the entry calls idempotent is repeated', async () => {
  const { resume } = await killedInCall('none', { idempotent: ['go'] }, []);
  expect(await resume()).toBe('call 1');
});
