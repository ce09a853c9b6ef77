// Requests are the same bytes in every process, so that the provider's cache is hit.

import { execFileSync } from 'node:child_process';
import { builtinTools } from '@drover/core/tools/builtin';
import { systemPrompt } from '@drover/core/conversation/prompt';
import { expect, test } from 'vitest';
import { agentOn, APIS } from '../support/agent.ts';
import { proves } from '../support/proves.ts';

proves('request.byte-stable', 'tools and system prompt are the same bytes in another process', () => {
  const script = `
    import { builtinTools } from '@drover/core/tools/builtin';
    import { systemPrompt } from '@drover/core/conversation/prompt';
    process.stdout.write(JSON.stringify([systemPrompt(undefined), builtinTools.map(({ name, description, schema }) => ({ name, description, schema }))]));`;
  const there = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    cwd: process.cwd(),
  });
  const here = JSON.stringify([
    systemPrompt(undefined),
    builtinTools.map(({ name, description, schema }) => ({ name, description, schema })),
  ]);
  expect(there).toBe(here);
});

test('system prompt and tools together stay under 2,500 tokens', () => {
  const definitions = builtinTools.map(({ name, description, schema }) => ({ name, description, schema }));
  expect((systemPrompt(undefined).length + JSON.stringify(definitions).length) / 4).toBeLessThan(2_500);
});

test.each(APIS)('%s: each request begins with the previous one’s bytes, without volatile text', async (api) => {
  const answers = [{ calls: [{ name: 'list', args: {} }] }, { calls: [{ name: 'list', args: {} }] }, { text: 'ok' }];
  const { run, server, cwd } = await agentOn({ answers }, { api });
  await run('go');
  const bodies = server.requests.map(({ body }) => body as { messages?: object[]; input?: object[] });
  const said = bodies.map(({ messages, input }) =>
    (messages ?? input ?? []).map((item) => JSON.stringify(item).replaceAll(/,?"cache_control":\{[^}]*\}/g, '')),
  );
  expect(said[1]?.slice(0, said[0]?.length)).toEqual(said[0]);
  expect(said[2]?.slice(0, said[1]?.length)).toEqual(said[1]);
  expect(server.requests[0]?.rawBody).not.toContain(cwd);
  expect(server.requests[0]?.rawBody).not.toContain(new Date().toISOString().slice(0, 10));
  expect(server.rejections).toBe(0);
});

test('tokens written to the cache are read with the next request', async () => {
  const answers = [{ calls: [{ name: 'list', args: {} }] }, { text: 'ok' }];
  const { run } = await agentOn({ answers, cache: { tokensMin: 100 } });
  const { result } = await run('go');
  const [first, second] = result.messages.filter((message) => message.role === 'assistant');
  expect(first?.usage.cacheWrite).toBeGreaterThan(500);
  expect(second?.usage.cacheRead).toBe((first?.usage.cacheWrite ?? 0) + (first?.usage.cacheRead ?? 0));
});
