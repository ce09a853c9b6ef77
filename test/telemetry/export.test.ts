// The trace of a run over OTLP: valid by the published schema, the same live and afterwards, one after a resume.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkRequest, Collector, type SentSpan } from '../support/doors/collector.ts';
import { proves } from '../support/proves.ts';
import { calls, planned, RunDesk, submits, writes } from '../support/run/run-desk.ts';

const SCRIPT = planned({
  a: { answers: [calls('read', { path: 'a.txt' }), writes('b.txt', 'x\n'), submits('secret summary')] },
  b: { answers: [calls('read', { path: 'gone.txt' }), writes('c.txt', 'x\n'), submits('done')] },
});

const attribute = ({ attributes }: SentSpan, key: string): unknown =>
  Object.values(attributes.find((each) => each.key === key)?.value ?? {})[0];

const kept = ({ name, traceId, spanId, parentSpanId, startTimeUnixNano, endTimeUnixNano, attributes }: SentSpan) => ({
  name,
  traceId,
  spanId,
  parentSpanId,
  startTimeUnixNano,
  endTimeUnixNano,
  attributes,
});

async function traced(env: Record<string, string> = {}) {
  const [desk, live] = [await RunDesk.with(SCRIPT), await Collector.start()];
  const given = { env: { OTEL_EXPORTER_OTLP_ENDPOINT: live.url, ...env } };
  const ran = await desk.run(['run', 'go', '--rounds', '1', '--yes', '--gate', 'true', '--sandbox', 'off'], given);
  return { desk, live, ran, run: ran.events[0]?.run ?? '' };
}

proves('telemetry.same-trace', 'a trace sent live and one exported afterwards have the same spans', async () => {
  const { desk, live, run } = await traced();
  expect(live.problems).toEqual([]);
  const names = live.spans.map(({ name }) => name).toSorted();
  expect([...new Set(names)]).toEqual([
    'chat scripted',
    'execute_tool read',
    'execute_tool submit_plan',
    'execute_tool submit_result',
    'execute_tool write',
    'gate',
    'invoke_agent coordinator',
    'invoke_agent worker',
    'invoke_workflow drover',
    'merge',
    'plan',
  ]);
  for (let time = 0; time < 2; time++) {
    const later = await Collector.start();
    const ran = await desk.drover(['export', 'otlp', run, '--endpoint', later.url]);
    expect([ran.code, later.problems]).toEqual([0, []]);
    expect(later.spans.map(kept)).toEqual(live.spans.map(kept));
    expect(later.metrics).toEqual(live.metrics);
  }
});

test('spans form one tree, with usage, models and errors by the conventions', async () => {
  const { live } = await traced();
  const byId = new Map(live.spans.map((span) => [span.spanId, span]));
  const roots = live.spans.filter(({ parentSpanId }) => parentSpanId === undefined);
  expect(roots.map(({ name }) => name)).toEqual(['invoke_workflow drover']);
  expect(live.spans.filter(({ parentSpanId }) => parentSpanId !== undefined && !byId.has(parentSpanId))).toEqual([]);
  expect(new Set(live.spans.map(({ traceId }) => traceId)).size).toBe(1);
  const chats = live.spans.filter(({ name }) => name === 'chat scripted');
  expect(chats.length).toBe(8);
  for (const chat of chats) {
    expect([attribute(chat, 'gen_ai.provider.name'), attribute(chat, 'gen_ai.request.model')]).toEqual([
      'anthropic',
      'scripted',
    ]);
    expect(Number(attribute(chat, 'gen_ai.usage.input_tokens'))).toBeGreaterThan(0);
    expect(byId.get(chat.parentSpanId ?? '')?.name).toMatch(/^invoke_agent/);
    expect(BigInt(chat.endTimeUnixNano) >= BigInt(chat.startTimeUnixNano)).toBe(true);
  }
  const failed = live.spans
    .filter(({ status }) => status.code === 2)
    .map((span) => [span.name, attribute(span, 'error.type')]);
  expect(failed).toEqual([['execute_tool read', 'tool_error']]);
});

test('content is left out unless the switch is set', async () => {
  const { desk, live, run } = await traced();
  expect(JSON.stringify(live.spans)).not.toMatch(/secret summary|a\.txt|Please do/);
  await desk.drover(['export', 'otlp', run, '--out', '../trace.json', '--content']);
  const written = JSON.parse(await readFile(join(desk.folder, 'trace.json'), 'utf8')) as { resourceSpans: unknown };
  checkRequest('/v1/traces', { resourceSpans: written.resourceSpans });
  expect(JSON.stringify(written)).toContain('secret summary');
});

test('TRACEPARENT of the environment is continued, and reaches commands', async () => {
  const outer = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01';
  const live = await Collector.start();
  const desk = await RunDesk.with(
    planned({ a: { answers: [calls('shell', { command: 'echo "$TRACEPARENT" > t.txt' }), submits('ok')] } }),
  );
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: live.url, TRACEPARENT: outer };
  const ran = await desk.run(['run', 'go', '--rounds', '1', '--yes', '--sandbox', 'off'], { env });
  const root = live.spans.find(({ name }) => name === 'invoke_workflow drover');
  expect([root?.traceId, root?.parentSpanId]).toEqual(['0123456789abcdef0123456789abcdef', '0123456789abcdef']);
  const run = ran.events[0]?.run ?? '';
  expect(desk.delivered(run)['t.txt']).toBe(`00-${root?.traceId}-${root?.spanId}-01`);
});

test('an interrupted and resumed run is one trace', async () => {
  const live = await Collector.start();
  const desk = await RunDesk.with(
    planned({ a: { answers: [calls('shell', { command: 'sleep 0.2' }), writes('b.txt', 'x\n'), submits('ok')] } }),
  );
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: live.url };
  const typed = ['run', 'go', '--rounds', '1', '--yes', '--sandbox', 'off', '--workers', '0', '--json'];
  await desk.interrupted(
    typed,
    (stdout) => stdout.includes('"name":"shell"') && stdout.includes('tool_execution_start'),
    { env },
  );
  const before = live.spans.length;
  const resumed = await desk.run(['resume', '--yes', '--sandbox', 'off'], { env });
  expect(resumed.code).toBe(0);
  expect(live.spans.length).toBeGreaterThan(before);
  expect(live.problems).toEqual([]);
  expect(new Set(live.spans.map(({ traceId }) => traceId)).size).toBe(1);
  const ids = new Set(live.spans.map(({ spanId }) => spanId));
  expect(live.spans.filter(({ parentSpanId }) => parentSpanId !== undefined && !ids.has(parentSpanId))).toEqual([]);
  const later = await Collector.start();
  await desk.drover(['export', 'otlp', resumed.events[0]?.run ?? '', '--endpoint', later.url]);
  expect(later.spans.map(kept)).toEqual(live.spans.map(kept));
});

test('a collector that refuses or is away costs the run nothing but a warning', async () => {
  const live = await Collector.start();
  live.statuses.push(503);
  const desk = await RunDesk.with(SCRIPT);
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: live.url, OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20t' };
  const ran = await desk.run(['run', 'go', '--rounds', '1', '--yes', '--sandbox', 'off'], { env });
  expect([ran.code, live.headers[0]?.['authorization'], ran.stderr.includes('telemetry')]).toEqual([
    0,
    'Bearer t',
    false,
  ]);
  const away = await desk.run(['run', 'go', '--rounds', '1', '--yes', '--sandbox', 'off'], {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
  });
  expect([away.code, away.stderr]).toEqual([
    0,
    expect.stringContaining(
      'telemetry was not sent completely: the collector at http://127.0.0.1:9/v1/traces cannot be reached',
    ),
  ]);
});

test.each([
  [
    'grpc',
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    'drover sends http/json only',
  ],
  ['no address', {}, 'no collector is named'],
  ['a wrong address', { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' }, 'is not an http or https address'],
])('export says what is wrong: %s', async (_, env, words) => {
  const { desk, run } = await traced();
  const { code, stderr } = await desk.drover(['export', 'otlp', run], { env });
  expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
});
