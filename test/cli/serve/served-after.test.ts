// After a run, and before it, over HTTP: approval of its plan, resume, retry, merge and its whole diff.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DroverClient } from '@drover/client/client';
import type { Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { desk, servedHere } from './served.ts';

async function until(client: DroverClient, id: string, type: Recorded['type'], after = 0): Promise<Recorded> {
  for await (const event of client.runEvents(id, { after })) if (event.type === type) return event;
  throw new Error('the events ended');
}

test('a plan waits for its answer over HTTP, and runs as it was changed', async () => {
  const { client } = await servedHere(await desk());
  const { id } = await client.startRun({ goal: 'one file', workers: 0, approve: true });
  await until(client, id, 'plan_proposed');
  const { plan = [] } = await client.run(id);
  expect(plan.map((task) => task.id)).toEqual(['one']);
  await expect(client.answerPlan(id, { answer: 'run', tasks: [...plan, ...plan] })).rejects.toMatchObject({
    status: 422,
    message: expect.stringContaining('used twice') as string,
  });
  await client.answerPlan(id, { answer: 'run', tasks: plan.map((task) => ({ ...task, title: 'Changed' })) });
  const end = await until(client, id, 'run_end');
  expect(end).toMatchObject({ outcome: 'done', tasks: [{ task: 'one', title: 'Changed', status: 'landed' }] });
  await expect(client.answerPlan(id, { answer: 'run' })).rejects.toMatchObject({ status: 409 });
  expect((await client.run(id)).plan).toBeUndefined();
});

test('a comment over HTTP goes back to the coordinator', async () => {
  const { client } = await servedHere(await desk());
  const { id } = await client.startRun({ goal: 'one file', workers: 0, approve: true });
  const { seq } = await until(client, id, 'plan_proposed');
  await client.answerPlan(id, { answer: 'comment', comment: 'one file, but better' });
  expect(await until(client, id, 'plan_comment', seq)).toMatchObject({ comment: 'one file, but better' });
  // The scripted coordinator makes a new plan.
  const again = await until(client, id, 'plan_proposed', seq);
  await client.answerPlan(id, { answer: 'stop' });
  expect(await until(client, id, 'run_end', again.seq)).toMatchObject({ failure: { kind: 'plan.declined' } });
  const resumed = await client.resumeRun(id, {});
  expect(resumed).toEqual({ id });
});

test('a run is merged over HTTP, and its whole diff returned', async () => {
  const cwd = await desk();
  const { client } = await servedHere(cwd);
  const { id } = await client.startRun({ goal: 'one file', workers: 0 });
  await until(client, id, 'run_end');
  expect((await client.runDiff(id)).patch).toContain('+one');
  const { delivered } = await client.mergeRun(id);
  expect([delivered.deliver, await readFile(join(cwd, 'project', 'one.txt'), 'utf8')]).toEqual(['merge', 'one']);
  // A reader that joins late still receives the end.
  expect(await until(client, id, 'delivered')).toMatchObject({ delivered: { deliver: 'merge' } });
  await expect(client.retryRun(id)).rejects.toMatchObject({
    status: 422,
    message: expect.stringContaining('nothing to retry') as string,
  });
  await expect(client.resumeRun(id)).rejects.toMatchObject({ status: 422 });
  await expect(client.runDiff(`run_${'0'.repeat(32)}`)).rejects.toMatchObject({ status: 404 });
});
