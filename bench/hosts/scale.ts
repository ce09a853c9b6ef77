// How far one coordinator goes: lines to a thousand hosts over a real Redis, each with a scripted attempt.
//
// The coordinator is this process: the real mailbox, lines, leases, task wire, bus and journal. It answers requests of
// models at once, so that only its own work is measured. The hosts are simulated in two other processes, each host
// with an inbox and connections of its own. No workspace, no command: those are the hosts' work. Each row offers more
// steps per second. A step is a request with its conversation, an answer, and a call with its intent made durable.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Bus } from '@drover/core/bus';
import type { AskResult } from '@drover/core/task/asking';
import type { TaskLink } from '@drover/core/task/link';
import { serveTaskWire } from '@drover/core/task/wire';
import { openRunJournal } from '@drover/coordinator/run/journal';
import { Fleet } from '@drover/hosts/placing/fleet';
import { hostPortOverLine } from '@drover/hosts/wire-port';
import type { Event } from '@drover/protocol/events';
import { newFolder } from '../folder.ts';
import { cpuMsOf } from '../run/programs.ts';
import { lineOf, type Load, type Orders, RUN, type Told } from './orders.ts';
import { type BenchRedis, startRedis } from './redis.ts';

const PROCESSES = 2;
const WARM_MS = 3_000;
const MEASURED_MS = 8_000;
const MB = 1024 * 1024;
const ANSWER = 'An answer of the model, with a call. '.repeat(20);

/** Lines, steps per second of each of them, and the size of a conversation. */
const ROWS = [
  [100, 0.5, 4_096],
  [1_000, 0.1, 4_096],
  [1_000, 0.25, 4_096],
  [1_000, 0.5, 4_096],
  [1_000, 1, 4_096],
  [1_000, 2, 4_096],
  [1_000, 0.1, 65_536],
  [1_000, 0.25, 65_536],
  [1_000, 0.5, 65_536],
] as const;

/** The lines to print. */
export async function lines(): Promise<readonly string[]> {
  const rows: string[] = [];
  for (const [count, stepsPerSecond, bytes] of ROWS) {
    using redis = await startRedis();
    rows.push(await row(redis, count, { stepsPerSecond, bytes }));
  }
  return rows;
}

async function row(redis: BenchRedis, count: number, load: Load): Promise<string> {
  const opened = await openCoordinator(redis, count);
  const hosts = Array.from({ length: PROCESSES }, (_, at) => {
    const share = count / PROCESSES;
    const orders: Orders = { url: redis.url, coordinator: opened.address, from: at * share, to: (at + 1) * share };
    return fork(join(import.meta.dirname, 'simulated-hosts.ts'), [JSON.stringify(orders)], { stdio: 'inherit' });
  });
  await Promise.all(hosts.map(async (host) => once(host, 'message')));
  for (const host of hosts) host.send(load);
  await sleep(WARM_MS);
  for (const host of hosts) host.send('measure');
  const before = { ...opened.figures(), at: performance.now(), redisMs: cpuMsOf(redis.pid) };
  await sleep(MEASURED_MS);
  const seconds = (performance.now() - before.at) / 1_000;
  const after = opened.figures();
  const redisShare = (cpuMsOf(redis.pid) - before.redisMs) / seconds / 1_000;
  const told = await Promise.all(hosts.map(async (host) => reported(host)));
  await opened.close();
  const events = (after.events - before.events) / seconds;
  const cpu = (after.cpuMs - before.cpuMs) / seconds / 1_000;
  const steps = told.reduce((sum, each) => sum + each.steps, 0) / seconds;
  const times = told.flatMap(({ roundTripsMs }) => roundTripsMs).toSorted((a, b) => a - b);
  const at = (part: number) => Math.round(times[Math.floor(times.length * part)] ?? 0);
  const over = told.reduce((sum, { leasesOver }) => sum + leasesOver, 0);
  const offered = count * load.stepsPerSecond;
  return [
    `${count} lines, ${load.bytes / 1_024} kB conversations, ${offered} steps/s offered: ${Math.round(steps)} steps/s`,
    `${Math.round(events)} events/s`,
    `coordinator ${percent(cpu)} of a core, ${Math.round((cpu * 1_000_000) / Math.max(1, events))} µs per event, ${Math.round(after.memoryMb)} MB`,
    `Redis ${percent(redisShare)}`,
    `request and answer ${at(0.5)} ms, p99 ${at(0.99)} ms`,
    `${over} leases over, ${after.broken} lines broken`,
  ].join(', ');
}

async function reported(host: ChildProcess): Promise<Told> {
  const message = once(host, 'message');
  host.send('report');
  const [told] = (await message) as [Told];
  host.kill('SIGKILL');
  await once(host, 'exit');
  return told;
}

async function openCoordinator({ url }: BenchRedis, count: number) {
  const home = newFolder();
  const journal = await openRunJournal(home, RUN, { diagnose: nothing, onTrouble: nothing, onRecovery: nothing });
  let events = 0;
  const bus = new Bus({ owner: { run: RUN }, lastSeq: 0, store: journal.store, pass: (event) => [event] });
  const reader = bus.reader();
  const read = (async () => {
    for await (const _ of reader) events += 1;
  })();
  let broken = 0;
  const queue = { url, key: 'a key of the bench' };
  const fleet = new Fleet(queue, { run: RUN, version: 'bench', onDiagnostic: () => undefined });
  await fleet.opened();
  for (let n = 0; n < count; n++) {
    const line = lineOf(n);
    fleet.expect(line, (from) => {
      fleet.forget(line);
      const opened = fleet.open({
        line,
        from,
        hear: ({ body }) => void (body.type === 'wire' && port.hear(body.message)),
        broken: () => (broken += 1),
      });
      const port = hostPortOverLine((message) => opened.send({ type: 'wire', message }));
      serveTaskWire(port, linkFor(bus, n), { onBegin: nothing, onSign: nothing, onFell: nothing });
      opened.send({ type: 'task' });
    });
  }
  return {
    address: fleet.address,
    figures: () => {
      const { user, system } = process.cpuUsage();
      return { events, broken, cpuMs: (user + system) / 1_000, memoryMb: process.memoryUsage().rss / MB };
    },
    close: async () => {
      await fleet.close(true);
      bus.close();
      await read;
      await journal.close();
    },
  };
}

/** The run's side of an attempt, with a model that answers at once. */
function linkFor(bus: Bus, worker: number): TaskLink {
  const place = { worker: worker + 1, task: `t${worker}`, attempt: 1 };
  const message = { role: 'assistant', content: [{ type: 'text', text: ANSWER }], model: 'x', stop: 'tool_calls' };
  return {
    emit: (event, step) => bus.emit(event, { ...place, ...step }),
    settled: () => bus.settled(),
    ask: async () => {
      bus.emit({ type: 'message_start', role: 'assistant' }, place);
      bus.emit({ type: 'message_end', message } as unknown as Event, place);
      await bus.settled();
      return { patience: 1, charges: [], answer: { message } } as unknown as AskResult;
    },
    question: async () => {
      throw new Error('no task asks');
    },
    callServed: async () => {
      throw new Error('no task has servers');
    },
    mail: { onMessage: nothing, delivered: nothing },
  };
}

function nothing(): void {
  // Has no listener.
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}
