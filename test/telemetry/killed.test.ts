// The trace of a run that is killed and resumed: one trace, the same live and afterwards, however often it is exported.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Collector, type SentSpan } from '../support/doors/collector.ts';
import { calls, planned, RunDesk, says, submits, writes } from '../support/run/run-desk.ts';

const CHILD = fileURLToPath(new URL('../support/run/run-crash-child.ts', import.meta.url));
const FLAGS = ['--yes', '--sandbox', 'off'];

/** A run that is killed when the journal has this record of its shell call, and its live collector. */
async function killed(record: string, when: 'before' | 'after') {
  const live = await Collector.start();
  const script = planned({
    a: { answers: [calls('shell', { command: 'true' }), writes('a.txt', 'x\n'), submits('a is done'), says('done')] },
    b: { dependsOn: ['a'], answers: [writes('b.txt', 'x\n'), submits('b is done'), says('done')] },
  });
  const desk = await RunDesk.with(script);
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: live.url };
  const own = { DROVER_HOME: desk.home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  const argv = ['run', 'go', '--model', 'anthropic/scripted', '--view', 'silent', '--rounds', '1', '--workers', '1'];
  const child = spawn(process.execPath, [CHILD, record, when, ...argv, ...FLAGS], {
    cwd: desk.repository,
    env: { ...process.env, ...own, ...env, DROVER_CRASH_TOOL: 'shell' },
    stdio: 'ignore',
  });
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
  return { desk, live, env };
}

const facts = (spans: readonly SentSpan[]) =>
  spans.map(({ name, traceId, spanId, parentSpanId, startTimeUnixNano, endTimeUnixNano, attributes, status }) => ({
    name,
    traceId,
    spanId,
    parentSpanId,
    startTimeUnixNano,
    endTimeUnixNano,
    attributes,
    status,
  }));

test.each([
  ['tool_execution_start', 'after'],
  ['tool_execution_end', 'before'],
  ['tool_execution_end', 'after'],
] as const)(
  'a run killed at %s, %s it is durable, is one trace after its resume',
  { timeout: 120_000 },
  async (record, when) => {
    const { desk, live, env } = await killed(record, when);
    const resumed = await desk.run(['resume', ...FLAGS], { env });
    expect([resumed.code, live.problems]).toEqual([0, []]);
    expect(new Set(live.spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(live.spans.filter(({ parentSpanId }) => parentSpanId === undefined).map(({ name }) => name)).toEqual([
      'invoke_workflow drover',
    ]);
    const ids = new Set(live.spans.map(({ spanId }) => spanId));
    expect(live.spans.filter(({ parentSpanId }) => parentSpanId !== undefined && !ids.has(parentSpanId))).toEqual([]);
    const [first, second] = [await Collector.start(), await Collector.start()];
    const run = resumed.events[0]?.run ?? '';
    for (const { url } of [first, second]) {
      expect((await desk.drover(['export', 'otlp', run, '--endpoint', url])).code).toBe(0);
    }
    expect(facts(second.spans)).toEqual(facts(first.spans));
    expect(second.metrics).toEqual(first.metrics);
    expect(facts(live.spans)).toEqual(facts(first.spans));
    const names = first.spans.map(({ name }) => name);
    expect(names.filter((name) => name === 'invoke_agent worker').length).toBeGreaterThanOrEqual(2);
    expect(names).toContain('execute_tool shell');
  },
);
