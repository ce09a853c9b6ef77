// Hosts on machines of their own, as network namespaces, with a Redis that wants a password and signed messages.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { withNamespaces } from '../../support/hosts/namespace.ts';
import { withRedis } from '../../support/hosts/redis.ts';
import { Scene } from '../../support/hosts/scene.ts';

const PASSWORD = 'a password of the test';
const env = { DROVER_QUEUE_KEY: 'a key of the test' };

withRedis('hosts on other machines', () => {
  withNamespaces('hosts in network namespaces', (open) => {
    test.each([
      ['5 s', 5_000, ['alpha']],
      ['60 s', 60_000, ['alpha', 'beta']],
    ])('a cable that is unplugged for %s', async (_, ms, hosts) => {
      const scene = await Scene.open({ options: ['--bind', '0.0.0.0'], password: PASSWORD });
      const { redis } = scene.hosts;
      const [first, second] = [await open(1), await open(2)];
      const urlAt = (address: string) => redis.url.replace('127.0.0.1', address);
      const alpha = await scene.hosts.host('alpha', { url: urlAt(first.here), node: first.node, env });
      const run = scene.hosts.program(['run', 'the goal'], { env });
      await scene.holds();
      const beta = await scene.hosts.host('beta', { url: urlAt(second.here), node: second.node, env });
      scene.breaks();
      first.link('down');
      if (hosts.length === 1) scene.letGo();
      await sleep(ms);
      first.link('up');
      scene.letGo();
      const events = await scene.expectWhole(run, { hosts }, [alpha, beta]);
      expect(events.some(({ type }) => type === 'attempt_moved')).toBe(hosts.length > 1);
    });
  });
});
