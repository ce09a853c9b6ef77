// Runs over HTTP at moments that a whole run passes too quickly; test/cli/serve/serve.test.ts has whole runs.

import { RunControl } from '@drover/coordinator/control/run-control';
import { openRunJournal } from '@drover/coordinator/run/journal';
import { Bus } from '@drover/core/bus';
import type { Event } from '@drover/protocol/events';
import { newId } from '@drover/core/ids';
import type { HostedRun } from '@drover/server/host';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/agent.ts';
import { eventsOf, eventsUntil, serveDesk } from '../support/serve/serve-desk.ts';

const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };
const warning = (message: string): Event => ({ type: 'warning', message });
const END: Event = {
  type: 'run_end',
  outcome: 'done',
  exitCode: 0,
  tasks: [],
  usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
};

/** A run whose events and end the test chooses. */
async function told(home: string) {
  const id = newId('run');
  const { store, close } = await openRunJournal(home, id, HOOKS);
  const bus = new Bus({ owner: { run: id }, lastSeq: 0, store, pass: (event) => [event] });
  const ended = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  const tell = async (event: Event): Promise<void> => {
    bus.emit(event, {});
    await bus.settled();
  };
  const end = async (): Promise<void> => {
    bus.close();
    await close();
    ended.resolve();
  };
  const run: HostedRun = {
    id,
    bus,
    answer: (requestId) => requestId === 'ask_1',
    answerPlan: () => false,
    cancel: () => cancelled.resolve(),
    waiting: () => 0,
    control: new RunControl(),
    ended: ended.promise,
  };
  return { id, run, tell, end, cancelled: cancelled.promise };
}

async function scene() {
  const home = await temporaryFolder();
  const { run, ...rest } = await told(home);
  const desk = await serveDesk({}, { home, startRun: async () => run, bounds: { runsMax: 1 } });
  await rest.tell(warning('begun'));
  expect(await (await desk.ask('POST', '/v1/runs', { goal: 'x' })).json()).toEqual({ id: rest.id });
  return { ...rest, desk };
}

test('a reader between the last event and the end of its run gets all, then the end', async () => {
  const { desk, id, tell, end } = await scene();
  await tell(END);
  const stream = eventsOf(await desk.ask('GET', `/v1/runs/${id}/events`));
  const heard = [(await stream.next()).value?.event, (await stream.next()).value?.event];
  const next = stream.next();
  await end();
  expect([heard, (await next).done]).toEqual([['warning', 'run_end'], true]);
  expect((await desk.ask('GET', `/v1/runs/${id}/events`, undefined, { 'last-event-id': '2' })).status).toBe(204);
});

test('a stream ends after its run, and a finished run takes no input', async () => {
  const { desk, id, tell, end, cancelled } = await scene();
  const stream = await desk.ask('GET', `/v1/runs/${id}/events`);
  const cancel = async () => (await desk.ask('POST', `/v1/runs/${id}/cancel`, {})).status;
  expect(await cancel()).toBe(204);
  await cancelled;
  await tell(END);
  expect((await eventsUntil(stream)).map(({ event }) => event)).toEqual(['warning', 'run_end']);
  await end();
  expect(await cancel()).toBe(409);
});

test('a question of a run is answered once', async () => {
  const { desk, id, end } = await scene();
  const answer = async (requestId: string) =>
    (await desk.ask('POST', `/v1/runs/${id}/permissions/${requestId}`, { allowed: true })).status;
  expect([await answer('ask_1'), await answer('ask_2')]).toEqual([204, 404]);
  await end();
});

test('runs over the limit are told to retry, and do not start', async () => {
  const { desk, end } = await scene();
  const second = await desk.ask('POST', '/v1/runs', { goal: 'y' });
  expect([second.status, ((await second.json()) as { type: string }).type]).toEqual([503, 'server.busy']);
  await end();
});

test('resume waits until a run that has told its end has closed', async () => {
  const { desk, id, tell, end } = await scene();
  await tell(END);
  const asked = desk.ask('POST', `/v1/runs/${id}/resume`, {});
  await desk.ask('GET', `/v1/runs/${id}`);
  await end();
  // The host of this test resumes no run, and is asked to.
  expect((await asked).status).toBe(422);
});
