// A sample of what can be lost under a run on hosts. The whole matrix is in test/slow/hosts.

import { expect, test } from 'vitest';
import { proves } from '../support/proves.ts';
import { expectMoved, heldTask, holds } from '../support/hosts/held-task.ts';
import { eventsIn, hostsOf } from '../support/hosts/hosts-desk.ts';
import { withRedis } from '../support/hosts/redis.ts';

const SLOW_MS = 180_000;

withRedis('faults of a run on hosts', () => {
  proves(
    'hosts.lost',
    'a task of a killed host resumes on another one with its files',
    async () => {
      const { desk } = await heldTask();
      const alpha = await desk.host('alpha', { slots: 1 });
      const run = desk.program(['run', 'the goal']);
      await holds(run);
      await desk.host('beta', { slots: 1 });
      alpha.child.kill('SIGKILL');
      const ended = await run.ended();

      const events = eventsIn(ended);
      expect(hostsOf(events)).toEqual(['alpha', 'beta']);
      expectMoved(events, desk);
      const { run: id = '' } = events[0] ?? {};
      // The third call was cut off: the next host has the files from before it.
      expect(desk.desk.delivered(id)).toEqual({ 'a.txt': 'one', 'one.txt': 'one\ntwo' });
    },
    SLOW_MS,
  );

  test('a killed coordinator resumes on the host that kept the workspace', { timeout: SLOW_MS }, async () => {
    const { desk } = await heldTask();
    await desk.host('alpha');
    const killed = desk.program(['run', 'the goal']);
    await holds(killed);
    killed.child.kill('SIGKILL');
    await killed.ended();
    const resumed = await desk.program(['resume']).ended();

    const events = eventsIn(resumed);
    expect(hostsOf(events)).toEqual(['alpha']);
    expectMoved(events, desk);
    const { run: id = '' } = events[0] ?? {};
    // The call had begun in that workspace, and is not run again.
    expect(desk.desk.delivered(id)).toEqual({ 'a.txt': 'one', 'one.txt': 'one\ntwo\nbegun' });
  });

  test.each(['restarted', 'wiped'])('a %s Redis loses nothing', { timeout: SLOW_MS }, async (how) => {
    const { desk, letGo } = await heldTask();
    const alpha = await desk.host('alpha');
    const run = desk.program(['run', 'the goal']);
    await holds(run);
    if (how === 'wiped') await desk.redis.wipe();
    else {
      await desk.redis.kill();
      await desk.redis.begin();
    }
    await letGo();
    const ended = await run.ended();

    const events = eventsIn(ended);
    expect(hostsOf(events)).toEqual(['alpha']);
    expectMoved(events, desk);
    const { run: id = '' } = events[0] ?? {};
    expect(desk.desk.delivered(id)).toEqual({ 'a.txt': 'one', 'one.txt': 'one\ntwo\nbegun\nthree' });
    alpha.child.kill('SIGTERM');
    await alpha.ended();
    expect(desk.redis.keys()).toEqual([]);
  });
});
