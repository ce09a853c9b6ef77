// Runs that wait for a host, or that no host could do.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventsIn, hostsOf, HostsDesk } from '../../support/hosts/hosts-desk.ts';
import { withRedis } from '../../support/hosts/redis.ts';
import { planned, submits } from '../../support/run/run-desk.ts';

const SCRIPT = planned({ one: { answers: [submits('done')] } });
const MB = 1024 * 1024;

withRedis('runs that hosts cannot do', () => {
  test('a task without a host for its label says so after 10 s, and waits for one', async () => {
    const desk = await HostsDesk.with(SCRIPT);
    await desk.desk.write({ 'plan.yaml': 'goal: x\ntasks:\n  - {id: one, prompt: Do it., runsOn: [gpu]}\n' });
    const begun = performance.now();
    const run = desk.program(['run', '--plan', 'plan.yaml']);
    await run.printed(
      'no host has the label gpu, so the task waits: start one with drover worker --queue … --label gpu',
    );
    const ms = performance.now() - begun;
    expect(ms).toBeGreaterThan(9_000);
    await desk.host('alpha', { labels: ['gpu'] });
    expect(hostsOf(eventsIn(await run.ended()))).toEqual(['alpha']);
    process.stdout.write(`a task without a host: said after ${(ms / 1_000).toFixed(1)} s, start of the run included\n`);
  });

  test('a task without a host ends by the deadline of its run', async () => {
    const desk = await HostsDesk.with(SCRIPT);
    const { code, stdout } = await desk.program(['run', 'the goal', '--timeout', '12s']).ended();
    expect(code).toBe(7);
    expect(stdout).toContain('no host is there, so the task waits');
    expect(desk.redis.keys()).toEqual([]);
  });

  test('a repository that is too large for a line is refused with the fix', async () => {
    const desk = await HostsDesk.with(SCRIPT);
    const part = Buffer.alloc(256 * MB);
    for (let n = 0; n < 5; n++) await writeFile(join(desk.desk.repository, `part ${n}`), part.fill(n));
    desk.desk.git('-c', 'core.compression=0', 'add', '-A');
    desk.desk.git('-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', 'large');
    const { code, stderr } = await desk.program(['run', 'the goal']).ended();
    expect({ code, requests: desk.desk.server.requests.length }).toEqual({ code: 2, requests: 0 });
    expect(stderr).toMatch(
      /has 12\d\d MB, and a host would get at most 1024 MB of it: work in a clone with less history/,
    );
  });
});
