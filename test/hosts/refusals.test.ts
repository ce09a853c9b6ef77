// Messages that a host or a coordinator refuses, and queues that a run refuses before it spends anything.

import { networkInterfaces } from 'node:os';
import { connectRedis, isRedisReady } from '@drover/hosts/line/redis';
import { Mailbox } from '@drover/hosts/line/mailbox';
import { Signer } from '@drover/hosts/line/signature';
import { Fleet } from '@drover/hosts/placing/fleet';
import { PlacementQueues, queueName } from '@drover/hosts/placing/queue';
import { inboxOfHost } from '@drover/hosts/presence';
import { expect, onTestFinished, test } from 'vitest';
import { HostsDesk } from '../support/hosts/hosts-desk.ts';
import { Relay } from '../support/hosts/relay.ts';
import { Redis, withRedis } from '../support/hosts/redis.ts';
import { planned, submits } from '../support/run/run-desk.ts';
import pack from '../../package.json' with { type: 'json' };
import { proves } from '../support/proves.ts';
import { until } from '../support/until.ts';

const SCRIPT = planned({ one: { answers: [submits('done')] } });

/** An address of this machine that others can reach. */
const ADDRESS = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;

async function mailbox(redis: Redis, name: string, key?: string) {
  const refused: string[] = [];
  const notes: unknown[] = [];
  const box = new Mailbox({
    queue: { url: redis.url, key },
    signer: new Signer(key),
    address: inboxOfHost(name),
    onNote: (_, body) => notes.push(body),
    onStranger: () => undefined,
    onRefused: (why) => refused.push(why),
  });
  onTestFinished(() => box.close());
  await box.opened();
  return { box, refused, notes };
}

withRedis('refused messages', () => {
  proves('hosts.signed', 'a job that is signed with another key is refused and logged', async () => {
    const desk = await HostsDesk.with(SCRIPT);
    const host = await desk.host('alpha', { env: { DROVER_QUEUE_KEY: 'the key' } });
    const queue = { url: desk.redis.url, key: undefined };
    const queues = new PlacementQueues(queue, new Signer(undefined));
    onTestFinished(() => queues.close(() => false));
    const job = { run: 'run_x', task: 'one', attempt: 1, epoch: 1, coordinator: inboxOfHost('nobody'), digest: '' };
    await queues.offer(queueName(pack.version, []), job);
    await host.printed('refused a message of run_x');
  });

  test('a message is refused without the key, and when it comes again', async () => {
    const redis = await Redis.start();
    const [from, stranger] = [await mailbox(redis, 'from', 'key'), await mailbox(redis, 'stranger', 'other')];
    const raw = connectRedis({ url: redis.url, key: undefined });
    onTestFinished(() => raw.disconnect());
    await isRedisReady(raw);
    // The inbox exists, and is not read yet.
    await raw.xgroup('CREATE', inboxOfHost('to'), 'owner', '$', 'MKSTREAM');
    from.box.note(inboxOfHost('to'), { n: 1 });
    await until(() => redis.cli('xlen', inboxOfHost('to')) === '1');
    const entries = (await raw.xrangeBuffer(inboxOfHost('to'), '-', '+')) as [Buffer, Buffer[]][];
    const fields = entries[0]?.[1] ?? [];
    const to = await mailbox(redis, 'to', 'key');
    await until(() => to.notes.length === 1);
    await raw.xadd(inboxOfHost('to'), '*', ...fields);
    stranger.box.note(inboxOfHost('to'), { n: 2 });
    await until(() => to.refused.length === 2);
    expect(to.notes).toEqual([{ n: 1 }]);
    expect(to.refused.toSorted()).toEqual(['it is not signed with the key of this queue', 'it was received before']);
  });

  test('what a placement of an older epoch says is refused, and its host is told', async () => {
    const redis = await Redis.start();
    const diagnosed: string[] = [];
    const fleet = new Fleet(
      { url: redis.url, key: undefined },
      { run: 'run_x', version: pack.version, onDiagnostic: (message) => diagnosed.push(message) },
    );
    onTestFinished(() => fleet.close(true));
    await fleet.opened();
    const host = await mailbox(redis, 'host');
    const ends = { id: 'run_x.b25l.1.1', peer: fleet.address, hear: () => undefined, broken: () => undefined };
    host.box.open(ends).send({ type: 'checkpoint', commit: 'f00', leftOut: [] });
    await until(() => host.notes.length > 0);
    expect(host.notes[0]).toMatchObject({ type: 'closed', line: ends.id });
    expect(diagnosed).toContain('a frame of another placement was refused');
  });
});

withRedis('refused queues', () => {
  test.each([
    ['redis://127.0.0.1:1', /no Redis answers at redis:\/\/127\.0\.0\.1:1 .*start one there/],
    ['http://127.0.0.1', /is not an address of Redis: write redis:\/\/host:6379/],
    ['redis://192.0.2.1:6379', /must be signed: set DROVER_QUEUE_KEY/],
  ])('the address %s is refused with the fix', async (url, sentence) => {
    const desk = await HostsDesk.with(SCRIPT);
    const ran = await desk.desk.drover(['run', 'x', '--queue', url]);
    expect({ code: ran.code, requests: desk.desk.server.requests.length }).toEqual({ code: 2, requests: 0 });
    expect(ran.stderr).toMatch(sentence);
  });

  test('a Redis that evicts keys is refused with the fix', async () => {
    const desk = await HostsDesk.with(SCRIPT, { options: ['--maxmemory-policy', 'allkeys-lru'] });
    const ran = await desk.desk.drover(['run', 'x', '--queue', desk.redis.url]);
    expect({ code: ran.code, requests: desk.desk.server.requests.length }).toEqual({ code: 2, requests: 0 });
    expect(ran.stderr).toContain('set maxmemory-policy noeviction');
  });

  test('a Redis that is too old is refused with the version it needs', async () => {
    const desk = await HostsDesk.with(SCRIPT);
    const change = (bytes: Buffer) =>
      Buffer.from(bytes.toString('latin1').replace(/redis_version:\d\.\d/, 'redis_version:6.0'), 'latin1');
    const relay = await Relay.to(desk.redis.port, { change });
    const ran = await desk.desk.drover(['run', 'x', '--queue', relay.url]);
    expect({ code: ran.code, requests: desk.desk.server.requests.length }).toEqual({ code: 2, requests: 0 });
    expect(ran.stderr).toMatch(/is Redis 6\.0\.\d+, and drover needs 6\.2 or newer: install a newer one there/);
  });

  test.skipIf(ADDRESS === undefined)(
    'a Redis that lets anyone in from other machines is refused with the fix',
    async () => {
      const desk = await HostsDesk.with(SCRIPT, { options: ['--bind', '0.0.0.0', '--protected-mode', 'no'] });
      const url = desk.redis.url.replace('127.0.0.1', ADDRESS ?? '');
      const key = { env: { DROVER_QUEUE_KEY: 'the key' } };
      const ran = await desk.desk.drover(['run', 'x', '--queue', url], key);
      expect({ code: ran.code, requests: desk.desk.server.requests.length }).toEqual({ code: 2, requests: 0 });
      expect(ran.stderr).toContain('lets anyone in without a password: set requirepass');
      const worker = await desk.desk.drover(['worker', '--queue', url], key);
      expect({ code: worker.code, stderr: worker.stderr }).toEqual({ code: 2, stderr: ran.stderr });
    },
  );

  test('a label that no host has is refused with the fix', async () => {
    const desk = await HostsDesk.with(SCRIPT);
    await desk.host('alpha');
    await desk.desk.write({ 'plan.yaml': 'goal: x\ntasks:\n  - {id: one, prompt: Do it., runsOn: [gpu]}\n' });
    const ran = await desk.desk.drover(['run', '--plan', 'plan.yaml', '--queue', desk.redis.url]);
    expect({ code: ran.code, requests: desk.desk.server.requests.length }).toEqual({ code: 2, requests: 0 });
    expect(ran.stderr).toContain('drover worker --queue … --label gpu');
  });
});
