// Lines and hosts that are odd but not lost: other clocks, slow lines, copies of messages, other versions, full disks.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { duplicateAll } from '../../support/hosts/duplicator.ts';
import { eventsIn, HostsDesk, sixTasks } from '../../support/hosts/hosts-desk.ts';
import { withSmallDisk } from '../../support/hosts/small-disk.ts';
import { clockOff, versionOff } from '../../support/hosts/preload.ts';
import { withRedis } from '../../support/hosts/redis.ts';
import { Relay } from '../../support/hosts/relay.ts';
import { Scene, WHOLE } from '../../support/hosts/scene.ts';
import { statuses } from '../../support/run/run-desk.ts';

const HOUR_MS = 3_600_000;
const CUTS = 3;

withRedis('odd lines of a run on hosts', () => {
  test.each([
    ['host', HOUR_MS],
    ['host', -HOUR_MS],
    ['coordinator', HOUR_MS],
    ['coordinator', -HOUR_MS],
  ])('the clock of the %s is set by %d ms during the run', async (whose, ms) => {
    const scene = await Scene.open();
    const flag = join(scene.hosts.desk.folder, 'set');
    const env = clockOff(ms, flag);
    const alpha = await scene.hosts.host('alpha', whose === 'host' ? { env } : {});
    const run = scene.hosts.program(['run', 'the goal'], whose === 'host' ? {} : { env });
    await scene.holds();
    scene.breaks();
    await writeFile(flag, '');
    // Longer than a lease without a renewal.
    await sleep(22_000);
    scene.letGo();
    const events = await scene.expectWhole(run, { hosts: ['alpha'] }, [alpha]);
    if (whose === 'coordinator') expect(Date.parse(events.at(-1)?.at ?? '') - Date.now()).toBeCloseTo(ms, -5);
  });

  test('six tasks over lines of 50 ms that are closed and cut', async () => {
    const desk = await HostsDesk.with(sixTasks());
    const alone = await desk.desk.run(['run', 'the goal', '--sandbox', 'off', '--yes']);
    const before = desk.desk.server.requests.length;
    const relays = [
      await Relay.to(desk.redis.port, { delayMs: 50 }),
      await Relay.to(desk.redis.port, { delayMs: 50 }),
      await Relay.to(desk.redis.port, { delayMs: 50 }),
    ] as const;
    const alpha = await desk.host('alpha', { url: relays[0].url });
    const beta = await desk.host('beta', { url: relays[1].url });
    const begun = performance.now();
    const run = desk.program(['run', 'the goal'], { url: relays[2].url });
    await desk.desk.server.received(before + 3);
    for (let n = 0; n < CUTS; n++) {
      for (const relay of relays) {
        relay.close();
        relay.cut();
        await sleep(1_500);
        relay.heal();
      }
    }
    const events = eventsIn(await run.ended());
    const end = events.findLast((event) => event.type === 'run_end');
    if (end === undefined) throw new Error(`no end: ${run.stderr}`);
    expect(new Set(Object.values(statuses(end as never)))).toEqual(new Set(['landed']));
    expect(desk.desk.delivered(end.run ?? '')).toEqual(desk.desk.delivered(alone.end.run ?? ''));
    expect(desk.desk.server.requests.length).toBe(2 * before);
    for (const host of [alpha, beta]) {
      host.child.kill('SIGTERM');
      expect((await host.ended()).code).toBe(0);
    }
    expect(desk.redis.keys()).toEqual([]);
    const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
    process.stdout.write(`six tasks over slow lines with ${CUTS * 3} cuts: ${seconds} s\n`);
  });

  test('every message and job arrives twice', async () => {
    const scene = await Scene.open();
    const { count, jobsAgain } = await duplicateAll(scene.hosts.redis);
    const alpha = await scene.hosts.host('alpha');
    const log = join(scene.hosts.desk.folder, 'run.log');
    const run = scene.hosts.program(['run', 'the goal', '--log', log]);
    await scene.holds();
    scene.breaks();
    jobsAgain();
    await alpha.printed('it was received before');
    await alpha.printed('its epoch 1 is not newer than 1');
    scene.letGo();
    await scene.expectWhole(run, { hosts: ['alpha'] }, [alpha]);
    expect(count()).toBeGreaterThan(20);
    process.stdout.write(`${count()} messages and jobs were delivered twice\n`);
  });

  test('a run refuses hosts of another version, and names both versions', async () => {
    const scene = await Scene.open();
    scene.letGo();
    const other = await scene.hosts.host('other', { env: versionOff('9.8.7') });
    const refused = await scene.hosts.program(['run', 'the goal']).ended();
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/run drover 9\.8\.7, and this one is \d+\.\d+\.\d+\S*: install the same version/);
    expect(scene.hosts.desk.server.requests.length).toBe(0);
    const alpha = await scene.hosts.host('alpha');
    scene.breaks();
    const run = scene.hosts.program(['run', 'the goal']);
    await scene.expectWhole(run, { hosts: ['alpha'] }, [alpha, other]);
  });

  withSmallDisk('hosts with a full disk', (mounted) => {
    test('a host whose disk is full gives its task to another one', async () => {
      const scene = await Scene.open();
      const home = await mounted();
      const small = await scene.hosts.host('small', { home: home.path, slots: 1 });
      home.fill();
      scene.breaks();
      const run = scene.hosts.program(['run', 'the goal']);
      await run.printed('small takes no work, so the task waits: its disk has less than 32 MB free');
      const beta = await scene.hosts.host('beta');
      scene.letGo();
      await scene.expectWhole(run, { hosts: ['beta'] }, [small, beta]);
    });

    test('a disk that fills up during a task moves it to another host', async () => {
      const scene = await Scene.open();
      const home = await mounted();
      const small = await scene.hosts.host('small', { home: home.path, slots: 1 });
      const run = scene.hosts.program(['run', 'the goal']);
      await scene.holds();
      const beta = await scene.hosts.host('beta');
      scene.breaks();
      home.fill();
      scene.letGo();
      // The call ran, and its files could not be saved: the model is told, and the call is not run again.
      const tree = { ...WHOLE, 'one.txt': WHOLE['one.txt'].replace('three\n', '') };
      await scene.expectWhole(run, { hosts: ['small', 'beta'], tree }, [small, beta]);
      expect(JSON.stringify(scene.hosts.desk.server.requests.at(4)?.body)).toContain('UNCERTAIN');
    });
  });
});
