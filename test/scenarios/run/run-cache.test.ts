// Seeding: all workers begin with the bytes of the coordinator's last request, and find them in the cache.

import { expect, test } from 'vitest';
import { isJsonObject, type Json } from '@drover/protocol/json';
import { APIS } from '../../support/agent.ts';
import { calls, planned, RunDesk, says, submits, writes, type ScriptedTask } from '../../support/run/run-desk.ts';
import { proves } from '../../support/proves.ts';

const TASKS: Readonly<Record<string, ScriptedTask>> = Object.fromEntries(
  [1, 2, 3, 4].map((n) => [`t${n}`, { answers: [writes(`t${n}.txt`, `${n}\n`), submits(`t${n}`)] }]),
);

/** The part of a request that a provider caches: without cache marks and fields outside the prompt. */
function promptOf(body: Json): Json {
  if (Array.isArray(body)) return body.map(promptOf);
  if (!isJsonObject(body)) return body;
  return Object.fromEntries(
    Object.entries(body)
      .filter(([key]) => key !== 'cache_control' && key !== 'max_tokens' && key !== 'max_output_tokens')
      .map(([key, value]) => [key, promptOf(value)]),
  );
}

function messagesOf(body: Json): readonly Json[] {
  const prompt = promptOf(body);
  const found = isJsonObject(prompt) ? (prompt['messages'] ?? prompt['input']) : undefined;
  return Array.isArray(found) ? found : [];
}

test.each(APIS)('%s: a worker’s first request begins with the coordinator’s last bytes', async (api) => {
  const desk = await RunDesk.with(planned(TASKS));
  const { code } = await desk.run(['run', 'make four files', '--workers', '0'], {}, api);
  expect(code).toBe(0);
  const { requests } = desk.server;
  const last = requests.find(({ agent }) => agent === 'default')?.body ?? {};
  for (const task of Object.keys(TASKS)) {
    const first = requests.find(({ agent }) => agent === task)?.body ?? {};
    const rest = (body: Json) => ({ ...(promptOf(body) as object), messages: [], input: [] });
    expect(JSON.stringify(rest(first))).toBe(JSON.stringify(rest(last)));
    const shared = messagesOf(last);
    expect(JSON.stringify(messagesOf(first).slice(0, shared.length))).toBe(JSON.stringify(shared));
    expect(messagesOf(first).length).toBeGreaterThan(shared.length);
  }
});

proves('cache.shared', 'at least 95 % of the workers’ first requests are read from the cache', async () => {
  const { answers = [], ...script } = planned(TASKS);
  const long = `${'all work and no play makes jack a dull boy\n'.repeat(2_000)}`;
  const desk = await RunDesk.with(
    { ...script, answers: [calls('read', { path: 'long.txt' }), ...answers] },
    { 'long.txt': long },
  );
  const { end, events } = await desk.run(['run', 'make four files', '--workers', '3']);
  expect(end.exitCode).toBe(0);
  const shares = Object.keys(TASKS).map((task) => {
    const found = events.find((event) => event.type === 'usage' && event.task === task);
    const usage = found?.type === 'usage' ? found.usage : { input: 1, cacheRead: 0, cacheWrite: 0 };
    return usage.cacheRead / (usage.input + usage.cacheRead + usage.cacheWrite);
  });
  expect(shares.filter((share) => share < 0.95)).toEqual([]);
});

test.each(['brief', 'none'])('with --seed %s a worker begins with less', async (seed) => {
  const desk = await RunDesk.with(planned(TASKS));
  const { events } = await desk.run(['run', 'make four files', '--seed', seed]);
  const seeds = events.flatMap((event) => (event.type === 'task_start' ? [event.seed] : []));
  expect(new Set(seeds.map(({ digest }) => digest)).size).toBe(1);
  expect(seeds[0]).toMatchObject({ seeding: seed, messages: seed === 'brief' ? 1 : 0 });
  const first = JSON.stringify(desk.server.requests.find(({ agent }) => agent === 't1')?.body);
  expect([first.includes('make four files'), first.includes('Please do t1.')]).toEqual([seed === 'brief', true]);
});

test('a cache miss of a worker is reported with the first difference', async () => {
  const missed = { ...says('there is nothing to do'), usage: { input: 3_000, cacheRead: 0, cacheWrite: 0 } };
  const desk = await RunDesk.with(planned({ one: { answers: [missed] } }));
  const { events } = await desk.run(['run', 'do one thing']);
  const warnings = events.filter((event) => event.type === 'warning' && event.task === 'one');
  expect(warnings.flatMap((event) => (event.type === 'warning' ? [event.message] : []))).toEqual([
    'its first request read nothing from the cache, although it begins like the coordinator’s, byte for byte',
  ]);
});

test('a refused request is no cache miss', async () => {
  const refused = { fault: { fault: 'status', status: 400, message: 'no such model' } } as const;
  const desk = await RunDesk.with(planned({ one: { answers: [refused] } }));
  const { events } = await desk.run(['run', 'do one thing']);
  expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
});

test('a provider without a cache causes no report', async () => {
  const script = planned({ one: { answers: [says('there is nothing to do')] } });
  const desk = await RunDesk.with({ ...script, cache: { enabled: false } });
  const { events } = await desk.run(['run', 'do one thing']);
  expect(events.filter(({ type }) => type === 'warning')).toEqual([]);
});
