// Hosts of the simulation: each has an inbox, a lease and one attempt, whose steps come at a given rate.

import { setTimeout as sleep } from 'node:timers/promises';
import type { AskHooks, AskOrder } from '@drover/core/task/asking';
import { taskLinkOverWire } from '@drover/core/task/wire';
import { Lease, RENEW_EVERY_MS } from '@drover/hosts/lease';
import { Mailbox } from '@drover/hosts/line/mailbox';
import { Signer } from '@drover/hosts/line/signature';
import type { FromHost, Note, ToHost } from '@drover/hosts/messages';
import { inboxOfHost } from '@drover/hosts/presence';
import { hostPortOverLine } from '@drover/hosts/wire-port';
import type { Event } from '@drover/protocol/events';
import { lineOf, type Load, type Orders, type Told } from './orders.ts';

const HELLO_EVERY_MS = 2_000;
const OUTPUT = 'a line of a test that passed\n'.repeat(20);
const HOOKS = { calling: nothing, progress: nothing, emit: nothing } as unknown as AskHooks;

const orders = JSON.parse(process.argv[2] ?? '{}') as Orders;
let load: Load | undefined;
let isMeasured = false;
let steps = 0;
let leasesOver = 0;
const roundTripsMs: number[] = [];

process.on('message', (message: Load | 'measure' | 'report') => {
  if (message === 'measure') isMeasured = true;
  else if (message === 'report') {
    isMeasured = false;
    process.send?.({ steps, roundTripsMs, leasesOver } satisfies Told);
  } else load = message;
});

const begun: Promise<void>[] = [];
for (let n = orders.from; n < orders.to; n++) begun.push(host(n));
await Promise.all(begun);
process.send?.('ready');

async function host(n: number): Promise<void> {
  const queue = { url: orders.url, key: 'a key of the bench' };
  const address = inboxOfHost(`host${n}`);
  const lease = new Lease(() => performance.now());
  const task = Promise.withResolvers<void>();
  const box = new Mailbox({
    queue,
    signer: new Signer(queue.key),
    address,
    onNote: (_, note) => {
      const { type, ...rest } = note as Note;
      if (type === 'renewed') lease.confirm((rest as { readonly id: number }).id);
    },
    onStranger: nothing,
    onRefused: nothing,
  });
  await box.opened();
  const line = box.open<ToHost, FromHost>({
    id: lineOf(n),
    peer: orders.coordinator,
    hear: ({ body }) => {
      if (body.type === 'task') task.resolve();
      else if (body.type === 'wire') port.hear(body.message);
    },
    broken: nothing,
  });
  const port = hostPortOverLine((message) => line.send({ type: 'wire', message }));
  const hello = () =>
    box.note(orders.coordinator, { type: 'hello', line: line.id, host: { id: `${n}`, name: `${n}` } });
  const greeting = setInterval(hello, HELLO_EVERY_MS);
  hello();
  await task.promise;
  clearInterval(greeting);
  setInterval(() => {
    box.note(orders.coordinator, { type: 'renew', id: lease.renew(), host: `${n}`, lines: [line.id] });
    if (lease.isOver) leasesOver += 1;
  }, RENEW_EVERY_MS);
  void attempt(taskLinkOverWire({ port }, n).link);
}

async function attempt(link: ReturnType<typeof taskLinkOverWire>['link']): Promise<void> {
  while (load === undefined) await sleep(100);
  const { stepsPerSecond, bytes } = load;
  const everyMs = 1_000 / stepsPerSecond;
  await sleep(Math.random() * everyMs);
  const request = { model: 'x', system: 's'.repeat(bytes), tools: [], messages: [] };
  const order = { place: {}, model: 'x/x', request } as unknown as AskOrder;
  const signal = new AbortController().signal;
  for (let step = 1; ; step++) {
    const at = performance.now();
    await link.ask(order, HOOKS, signal);
    if (isMeasured) roundTripsMs.push(performance.now() - at);
    const call = { callId: `c${step}`, callIndex: 0, index: step, name: 'shell' };
    link.emit({ type: 'tool_execution_start', args: { command: 'true' }, ...call } as unknown as Event, { step });
    await link.settled();
    const end = { type: 'tool_execution_end', output: OUTPUT, outputSummary: 'ok', isError: false, ...call };
    link.emit(end as unknown as Event, { step });
    if (isMeasured) steps += 1;
    await sleep(Math.max(0, everyMs - (performance.now() - at)));
  }
}

function nothing(): void {
  // Has no listener.
}
