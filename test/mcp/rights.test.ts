// Calls of MCP tools need a rule or an answer, whatever the server says of itself. The trace of the run goes with them.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Collector } from '../support/doors/collector.ts';
import { HOSTILE } from '../support/mcp/brokers.ts';
import { sdkServer } from '../support/mcp/http/sdk-server.ts';
import { calls, planned, RunDesk, submits } from '../support/run/run-desk.ts';

const SLOW = { timeout: 120_000 };
const ROOT = new URL('../..', import.meta.url).pathname;

async function called(entry: object, flags: readonly string[], env: Record<string, string> = {}) {
  const desk = await RunDesk.with(planned({ one: { answers: [calls('mcp__own__go', {}), submits('done')] } }));
  const file = join(desk.folder, 'mcp.json');
  writeFileSync(file, JSON.stringify({ mcpServers: { own: entry } }));
  const ran = await desk.run(['run', 'x', '--mcp', file, '--workers', '1', ...flags], { env });
  const ended = ran.events.find((event) => event.type === 'tool_execution_end' && event.name === 'mcp__own__go');
  return ended?.type === 'tool_execution_end' ? ended.output : undefined;
}

// Its tool says readOnlyHint.
const PROGRAM = { command: 'node', args: [HOSTILE, 'none'], readable: [ROOT], startTimeout: '60s' };

test.each([
  ['no rule', []],
  ['a rule for another server', ['--allow', 'mcp(other.*)']],
  ['a rule for another tool', ['--allow', 'mcp(own.stop)']],
  ['a rule that denies it', ['--allow', 'mcp', '--deny', 'mcp(own.go)']],
])('a call with %s does not run without a terminal, although it says readOnlyHint', SLOW, async (_, flags) => {
  expect(await called(PROGRAM, flags)).toMatch(/^Not allowed|not allowed|denied|no terminal/i);
});

test('a call that a rule names runs', SLOW, async () => {
  expect(await called(PROGRAM, ['--allow', 'mcp(own.g*)'])).toBe('call 1');
});

test('the trace of the run goes along with a call', SLOW, async () => {
  const live = await Collector.start();
  const go = async (_: unknown, { mcpReq }: { mcpReq: { _meta?: { traceparent?: string } } }) => ({
    content: [{ type: 'text', text: String(mcpReq._meta?.traceparent) }],
  });
  const { url } = await sdkServer({ tools: { go: go as never } });
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: live.url };
  const output = await called({ url }, ['--allow', 'mcp'], env);
  const root = live.spans.find(({ name }) => name === 'invoke_workflow drover');
  expect(output).toBe(`00-${root?.traceId}-${root?.spanId}-01`);
  expect(await called({ url }, ['--allow', 'mcp'])).toBe('undefined');
});
