// The fault matrix: whatever is lost under a run on hosts, it ends with the tree of one machine.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Relay } from '../../support/hosts/relay.ts';
import { withRedis } from '../../support/hosts/redis.ts';
import { Scene, WHOLE } from '../../support/hosts/scene.ts';

const LOST = '"state":"lost"';

withRedis('faults of a run on hosts', () => {
  test('a run without hosts delivers the tree expected after every fault', async () => {
    const scene = await Scene.open();
    scene.letGo();
    const { desk } = scene.hosts;
    const { end } = await desk.run(['run', 'the goal', '--sandbox', 'off', '--yes']);
    expect(desk.delivered(end.run ?? '')).toEqual(WHOLE);
  });

  test('a killed host: its task resumes on another one', async () => {
    const scene = await Scene.open();
    const alpha = await scene.hosts.host('alpha');
    const run = scene.hosts.program(['run', 'the goal']);
    await scene.holds();
    const beta = await scene.hosts.host('beta');
    scene.breaks();
    alpha.child.kill('SIGKILL');
    await run.printed(LOST);
    scene.letGo();
    await scene.expectWhole(run, { hosts: ['alpha', 'beta'] }, [beta]);
  });

  test('a killed coordinator: the resumed one continues with the hosts', async () => {
    const scene = await Scene.open();
    const alpha = await scene.hosts.host('alpha');
    const killed = scene.hosts.program(['run', 'the goal']);
    await scene.holds();
    scene.breaks();
    killed.child.kill('SIGKILL');
    await killed.ended();
    const run = scene.hosts.program(['resume']);
    scene.letGo();
    await scene.expectWhole(run, { hosts: ['alpha'], again: 1 }, [alpha]);
  });

  test.each(['restarted', 'wiped'])('a %s Redis', async (how) => {
    const scene = await Scene.open();
    const alpha = await scene.hosts.host('alpha');
    const run = scene.hosts.program(['run', 'the goal']);
    await scene.holds();
    scene.breaks();
    const { redis } = scene.hosts;
    await redis.kill();
    if (how === 'wiped') await redis.wipe();
    else await redis.begin();
    scene.letGo();
    await scene.expectWhole(run, { hosts: ['alpha'] }, [alpha]);
  });

  test('a host that is cut off for 5 s keeps its task', async () => {
    const scene = await Scene.open();
    const relay = await Relay.to(scene.hosts.redis.port);
    const alpha = await scene.hosts.host('alpha', { url: relay.url });
    const run = scene.hosts.program(['run', 'the goal']);
    await scene.holds();
    scene.breaks();
    relay.cut();
    scene.letGo();
    await sleep(5_000);
    relay.heal();
    await scene.expectWhole(run, { hosts: ['alpha'] }, [alpha]);
  });

  test('a host that is cut off for 60 s loses its task and does no harm later', async () => {
    const scene = await Scene.open();
    const relay = await Relay.to(scene.hosts.redis.port);
    const alpha = await scene.hosts.host('alpha', { url: relay.url });
    const run = scene.hosts.program(['run', 'the goal']);
    await scene.holds();
    const beta = await scene.hosts.host('beta');
    scene.breaks();
    relay.cut();
    const healed = sleep(60_000).then(() => relay.heal());
    await alpha.printed('its coordinator is silent, so it is ended here');
    await run.printed(LOST);
    await healed;
    scene.letGo();
    await scene.expectWhole(run, { hosts: ['alpha', 'beta'] }, [alpha, beta]);
  });

  test('a coordinator that is cut off for 60 s gives its task out again', async () => {
    const scene = await Scene.open();
    const relay = await Relay.to(scene.hosts.redis.port);
    const alpha = await scene.hosts.host('alpha');
    const run = scene.hosts.program(['run', 'the goal'], { url: relay.url });
    await scene.holds();
    scene.breaks();
    relay.cut();
    const healed = sleep(60_000).then(() => relay.heal());
    await run.printed(LOST);
    scene.letGo();
    await healed;
    await scene.expectWhole(run, { hosts: ['alpha', 'alpha'] }, [alpha]);
  });

  test('a host that hangs for 40 s loses its task and does no harm later', async () => {
    const scene = await Scene.open();
    const alpha = await scene.hosts.host('alpha');
    const run = scene.hosts.program(['run', 'the goal']);
    await scene.holds();
    const beta = await scene.hosts.host('beta');
    scene.breaks();
    alpha.child.kill('SIGSTOP');
    const woken = sleep(40_000).then(() => alpha.child.kill('SIGCONT'));
    await run.printed(LOST);
    scene.letGo();
    await run.printed('"attempt_moved"');
    await woken;
    await scene.expectWhole(run, { hosts: ['alpha', 'beta'] }, [alpha, beta]);
  });
});
