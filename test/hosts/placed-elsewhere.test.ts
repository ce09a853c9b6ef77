// Batches and served runs on hosts, and hosts that refuse a task.

import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Recorded } from '@drover/protocol/events';
import { DroverClient } from '@drover/client/client';
import { expect, test } from 'vitest';
import { Program } from '../cli/program.ts';
import { hostsOf, HostsDesk, sixTasks } from '../support/hosts/hosts-desk.ts';
import { BatchDesk, noisyFiles, tidying } from '../support/run/batch-desk.ts';
import { statuses, told } from '../support/run/run-desk.ts';
import { Redis, withRedis } from '../support/hosts/redis.ts';

const SLOW = { timeout: 180_000 };
const LARGE = 2_000_000;

withRedis('other work on hosts', () => {
  test('a batch on a host has the patches of one machine', SLOW, async () => {
    const batch = await BatchDesk.with(tidying(), noisyFiles(3));
    const open = ['--sandbox', 'off'];
    expect(Object.values(await batch.run(open).then(() => batch.statuses()))).toEqual(['landed', 'landed', 'landed']);
    const alone = await batch.patches();
    const hosts = HostsDesk.over(batch.desk, await Redis.start());
    await hosts.host('alpha');
    const ran = await batch.run([...open, '--fresh', '--queue', hosts.redis.url]);
    expect(new Set(hostsOf(ran.events))).toEqual(new Set(['alpha']));
    expect(await batch.patches()).toEqual(alone);
  });

  test('drover serve places the tasks of a run on hosts', SLOW, async () => {
    const desk = await HostsDesk.with(sixTasks());
    const { desk: run, redis } = desk;
    const host = await desk.host('alpha');
    const env = { DROVER_HOME: run.home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: run.server.url };
    const flags = ['--queue', redis.url, '--sandbox', 'off', '--yes', '--model', 'anthropic/scripted'];
    const server = new Program(['serve', '--port', '0', '--json', ...flags], run.repository, { env });
    await server.printed('\n');
    const { url, tokenFile } = JSON.parse(server.stdout) as { readonly url: string; readonly tokenFile: string };
    const client = new DroverClient({ baseUrl: url, token: (await readFile(tokenFile, 'utf8')).trim() });
    const { id } = await client.startRun({ goal: 'the goal' });
    const events: Recorded[] = [];
    for await (const event of client.runEvents(id)) events.push(event);
    expect(hostsOf(events)).toEqual(Array.from({ length: 6 }, () => 'alpha'));
    expect(Object.keys(run.delivered(id))).toEqual(['a.txt', 'b.txt', 'c.txt', 'd.txt', 'e.txt', 'f.txt']);
    host.child.kill('SIGTERM');
    await host.ended();
    expect(redis.keys()).toEqual([]);
  });

  test('a task that one host refuses goes to the host that can do it', SLOW, async () => {
    const desk = await HostsDesk.with(sixTasks());
    await desk.host('closed');
    await desk.host('open', { slots: 1, args: ['--net', 'example.com'] });
    const flags = ['--queue', desk.redis.url, '--sandbox', 'auto', '--net', 'example.com', '--yes', '--json'];
    const { events, end } = told(await desk.desk.drover(['run', 'the goal', ...flags]));
    expect(new Set(Object.values(statuses(end)))).toEqual(new Set(['landed']));
    expect(new Set(hostsOf(events))).toEqual(new Set(['open']));
    const refused = events.find((event) => event.type === 'placement' && event.state === 'lost');
    expect(refused).toMatchObject({ reason: expect.stringContaining('start it with --net example.com') });
  });

  test('a host with --fetch gets the history from the remote, and little over the line', SLOW, async () => {
    const desk = await HostsDesk.with(sixTasks(), { files: { 'a.txt': 'one\n' } });
    const { desk: run, redis } = desk;
    await writeFile(join(run.repository, 'large'), randomBytes(LARGE));
    run.git('add', '-A');
    run.git('-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', 'large');
    const remote = join(run.folder, 'remote.git');
    run.git('clone', '-q', '--bare', run.repository, remote);
    run.git('remote', 'add', 'origin', remote);
    const host = await desk.host('alpha', { args: ['--fetch'] });
    const recorded = redis.record();
    const { end } = await desk.run([]);
    expect(new Set(Object.values(statuses(end)))).toEqual(new Set(['landed']));
    expect(host.stdout).toContain(`fetched from ${remote}`);
    expect((await recorded()).length).toBeLessThan(LARGE);
  });
});
