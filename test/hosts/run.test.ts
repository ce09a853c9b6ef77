// Runs whose tasks are done by hosts: the result is the one of a single machine, and nothing is left behind.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hostsOf, HostsDesk, sixTasks } from '../support/hosts/hosts-desk.ts';
import { withRedis } from '../support/hosts/redis.ts';
import { planned, statuses, submits, writes } from '../support/run/run-desk.ts';
import { proves } from '../support/proves.ts';

const SLOW = { timeout: 120_000 };

withRedis('runs on hosts', () => {
  test('two hosts land the same tree as this machine, past a gate', SLOW, async () => {
    const desk = await HostsDesk.with(sixTasks());
    const gate = ['--gate', 'test -f a.txt'];
    const alone = await desk.desk.run(['run', 'the goal', '--sandbox', 'off', '--yes', '--allow-red-base', ...gate]);
    const [alpha, beta] = [await desk.host('alpha'), await desk.host('beta')];
    const ran = await desk.run(['--allow-red-base', ...gate]);

    expect(Object.values(statuses(ran.end))).toEqual(Array.from({ length: 6 }, () => 'landed'));
    expect(desk.desk.delivered(ran.end.run ?? '')).toEqual(desk.desk.delivered(alone.end.run ?? ''));
    expect(new Set(hostsOf(ran.events))).toEqual(new Set(['alpha', 'beta']));
    const shown = await desk.desk.drover(['show', ran.end.run ?? '', 'a']);
    expect(shown.stdout).toMatch(/host +(alpha|beta)/);
    for (const host of [alpha, beta]) {
      host.child.kill('SIGTERM');
      expect((await host.ended()).code).toBe(0);
    }
    expect(desk.redis.keys()).toEqual([]);
  });

  proves(
    'hosts.keys-stay',
    'a host needs no key, and gets none',
    async () => {
      const desk = await HostsDesk.with(
        planned({ look: { answers: [writes('seen.txt', 'x\n'), submits('done')] } }, { keys: ['a-secret-key'] }),
      );
      const host = await desk.host('alpha');
      const monitor = desk.redis.record();
      const ran = await desk.run([], { ANTHROPIC_API_KEY: 'a-secret-key' });
      expect(statuses(ran.end)).toEqual({ look: 'landed' });
      expect(await monitor()).not.toContain('a-secret-key');
      expect(readFileSync(`/proc/${host.child.pid}/environ`, 'utf8')).not.toContain('ANTHROPIC');
    },
    120_000,
  );

  test('a task runs only on a host with its labels', SLOW, async () => {
    const desk = await HostsDesk.with(planned({ plain: { answers: [submits('done')] } }));
    await desk.host('plain', { slots: 1 });
    await desk.host('special', { labels: ['gpu', 'big'] });
    await desk.desk.write({
      'plan.yaml': 'tasks:\n  - {id: plain, prompt: Do it., runsOn: [gpu]}\n',
    });
    const ran = await desk.run(['--plan', join(desk.desk.repository, 'plan.yaml')]);
    expect(hostsOf(ran.events)).toEqual(['special']);
  });

  test('--local works on this machine as well', SLOW, async () => {
    const desk = await HostsDesk.with(sixTasks());
    await desk.host('alpha', { slots: 1 });
    const ran = await desk.run(['--local', '1']);
    const starts = ran.events.filter((event) => event.type === 'task_start');
    expect(new Set(starts.map(({ host }) => host))).toEqual(new Set(['alpha', undefined]));
    expect(Object.values(statuses(ran.end))).toEqual(Array.from({ length: 6 }, () => 'landed'));
  });

  test('drover hosts lists who is there', SLOW, async () => {
    const desk = await HostsDesk.with(sixTasks());
    await desk.host('alpha', { slots: 5, labels: ['gpu'] });
    const listed = await desk.desk.drover(['hosts', '--queue', desk.redis.url]);
    expect(listed.stdout).toMatch(/alpha +\S+ +0\/5 +gpu/);
  });
});
