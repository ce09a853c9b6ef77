// Hosts with the other parts of drover: servers of tools, hooks, messages, cancelled tasks, compaction and budgets.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DroverClient } from '@drover/client/client';
import { expect, test } from 'vitest';
import { Program, processesWith } from '../cli/program.ts';
import { heldTask, holds } from '../support/hosts/held-task.ts';
import { eventsIn, hostsOf, HostsDesk } from '../support/hosts/hosts-desk.ts';
import { withRedis } from '../support/hosts/redis.ts';
import { calls, planned, statuses, submits, told, writes } from '../support/run/run-desk.ts';

const SLOW = { timeout: 180_000 };
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));
const EVERYTHING = join(MODULES, '@modelcontextprotocol/server-everything/dist/index.js');

withRedis('hosts and the rest of drover', () => {
  test('a worker on a host calls a tool of an MCP server of the coordinator', SLOW, async () => {
    const answers = [calls('mcp__everything__echo', { message: 'hello' }), submits('done')];
    const desk = await HostsDesk.with(planned({ one: { answers } }));
    await desk.host('alpha');
    const file = join(desk.desk.folder, 'mcp.json');
    const server = { command: 'node', args: [EVERYTHING], readable: [MODULES] };
    await writeFile(file, JSON.stringify({ mcpServers: { everything: server } }));
    const { events, end } = await desk.run(['--mcp', file, '--allow', 'mcp(everything.*)']);
    expect([statuses(end), hostsOf(events)]).toEqual([{ one: 'done' }, ['alpha']]);
    const ended = events.find((event) => event.type === 'tool_execution_end' && event.name === 'mcp__everything__echo');
    expect(ended).toMatchObject({ output: 'Echo: hello', isError: false });
  });

  test('hooks of calls run on the host, and those of tasks at the coordinator', SLOW, async () => {
    const desk = await HostsDesk.with(planned({ one: { answers: [writes('b.txt', 'x\n'), submits('done')] } }));
    await desk.host('alpha');
    const { folder } = desk.desk;
    const log = join(folder, 'log');
    const hook = (at: string, more = '') =>
      `  - { at: ${at}${more}, run: 'cat >/dev/null; echo "${at} $PWD" >> ${log}' }`;
    const hooks = [hook('before task'), hook('before call', ', tools: write'), hook('after call', ', tools: write')];
    await mkdir(join(folder, '.config', 'drover'), { recursive: true });
    await writeFile(join(folder, '.config', 'drover', 'config.yaml'), `hooks:\n${hooks.join('\n')}\n`);
    const { end } = await desk.run([], { HOME: folder });
    expect(statuses(end)).toEqual({ one: 'landed' });
    const moments = (await readFile(log, 'utf8')).trim().split('\n');
    const isOnHost = (line: string) => line.includes(desk.homeOf('alpha'));
    expect(moments.map((line) => [line.split(' ').slice(0, 2).join(' '), isOnHost(line)])).toEqual([
      ['before task', false],
      ['before call', true],
      ['after call', true],
    ]);
  });

  test('a user messages, cancels and retries a task on a host', SLOW, async () => {
    const { desk, letGo, flag } = await heldTask();
    await desk.host('alpha');
    const { client } = await servedAt(desk);
    const { id } = await client.startRun({ goal: 'the goal' });
    const isHeld = async () => {
      for await (const event of client.runEvents(id))
        if (event.type === 'tool_execution_start' && JSON.stringify(event.args).includes('echo begun')) return;
    };
    await isHeld();
    await client.messageTask(id, { task: 'held', text: 'mind the gap' });
    await client.cancelTask(id, 'held');
    for await (const _ of client.runEvents(id));
    expect((await client.run(id)).rows.map(({ status }) => status)).toEqual(['cancelled']);
    expect(processesWith(flag)).toEqual([]);
    await letGo();
    await client.retryRun(id, { tasks: ['held'] });
    for await (const _ of client.runEvents(id));
    expect((await client.run(id)).rows.map(({ status }) => status)).toEqual(['landed']);
  });

  test('a message reaches a worker on a host at its next step', SLOW, async () => {
    const { desk, letGo } = await heldTask();
    await desk.host('alpha');
    const { client } = await servedAt(desk);
    const { id } = await client.startRun({ goal: 'the goal' });
    for await (const event of client.runEvents(id)) {
      if (event.type !== 'tool_execution_start' || !JSON.stringify(event.args).includes('echo begun')) continue;
      await client.messageTask(id, { task: 'held', text: 'mind the gap' });
      await letGo();
    }
    const last = desk.desk.server.requests.map(({ body }) => JSON.stringify(body));
    expect(last.findIndex((body) => body.includes('mind the gap'))).toBe(4);
    expect((await client.run(id)).rows.map(({ status }) => status)).toEqual(['landed']);
  });

  test('a conversation on a host is shortened', SLOW, async () => {
    const flood = calls('shell', { command: 'head -c 1900 /dev/zero | tr "\\0" x' });
    const SUMMARY = { when: { system: 'condense the history' }, text: 'Much was flooded.' };
    const answers = [...Array.from({ length: 12 }, () => flood), submits('done')];
    const desk = await HostsDesk.with(
      planned(
        { one: { answers } },
        { agents: { one: { assigned: 'Your task is one:', order: 'requests', answers: [SUMMARY, ...answers] } } },
      ),
    );
    await desk.host('alpha');
    const { folder } = desk.desk;
    await mkdir(join(folder, '.config', 'drover'), { recursive: true });
    await writeFile(join(folder, '.config', 'drover', 'config.yaml'), 'contextTokens: 9000\n');
    const { events, end } = await desk.run([], { HOME: folder });
    expect(events.some(({ type }) => type === 'compaction_end')).toBe(true);
    expect([statuses(end), hostsOf(events)]).toEqual([{ one: 'done' }, ['alpha']]);
  });

  test('a run on hosts that has spent its budget resumes there with a larger one', SLOW, async () => {
    const usage = { input: 10_000, output: 10, cacheRead: 0, cacheWrite: 0 };
    const answers = [writes('one.txt', '1\n'), calls('list', {}), calls('list', {}), submits('done')];
    const desk = await HostsDesk.with(planned({ one: { answers: answers.map((answer) => ({ ...answer, usage })) } }));
    await desk.host('alpha');
    const poor = await desk.run(['--budget', '25ktok']);
    expect(poor.end.tasks.map(({ status, reason }) => [status, reason])).toEqual([
      ['failed', expect.stringContaining('budget')],
    ]);
    const flags = ['--queue', desk.redis.url, '--sandbox', 'off', '--yes', '--json', '--budget', '500ktok'];
    const rich = told(await desk.desk.drover(['resume', ...flags]));
    expect([statuses(rich.end), hostsOf(rich.events)]).toEqual([{ one: 'landed' }, ['alpha']]);
  });

  test('a host that is stopped hands its task to another one at once', SLOW, async () => {
    const { desk, flag } = await heldTask();
    const alpha = await desk.host('alpha', { slots: 1 });
    const run = desk.program(['run', 'the goal']);
    await holds(run);
    await desk.host('beta');
    const begun = performance.now();
    alpha.child.kill('SIGINT');
    expect((await alpha.ended()).code).toBe(0);
    expect(processesWith(flag)).toEqual([]);
    await run.printed('its host was stopped');
    const ms = performance.now() - begun;
    const events = eventsIn(await run.ended());
    // Without a word it would be 20 s.
    expect(ms).toBeLessThan(15_000);
    expect(hostsOf(events)).toEqual(['alpha', 'beta']);
    const end = events.findLast((event) => event.type === 'run_end');
    expect(end?.tasks.map(({ status, attempts }) => [status, attempts])).toEqual([['landed', 1]]);
  });
});

/** drover serve, with the hosts of a desk. */
async function servedAt({ desk, redis }: HostsDesk): Promise<{ readonly client: DroverClient }> {
  const env = { DROVER_HOME: desk.home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url };
  const flags = ['--queue', redis.url, '--sandbox', 'off', '--yes', '--model', 'anthropic/scripted'];
  const server = new Program(['serve', '--port', '0', '--json', ...flags], desk.repository, { env });
  await server.printed('\n');
  const { url, tokenFile } = JSON.parse(server.stdout) as { readonly url: string; readonly tokenFile: string };
  return { client: new DroverClient({ baseUrl: url, token: (await readFile(tokenFile, 'utf8')).trim() }) };
}
