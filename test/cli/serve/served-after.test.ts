// After a run, and before it, over HTTP: approval of its plan, resume, retry, merge and its whole diff.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DroverClient } from '@drover/client/client';
import type { Recorded } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { desk, servedHere } from './served.ts';

async function until(client: DroverClient, id: string, type: Recorded['type'], after = 0): Promise<Recorded> {
  for await (const event of client.runEvents(id, { after })) if (event.type === type) return event;
  throw new Error('the events ended');
}

async function nextOf(client: DroverClient, id: string, types: readonly string[], after: number): Promise<Recorded> {
  for await (const event of client.runEvents(id, { after })) if (types.includes(event.type)) return event;
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
});

test('a declined plan waits for an answer again after resume, unless approve is false', async () => {
  const { client } = await servedHere(await desk());
  const { id } = await client.startRun({ goal: 'one file', workers: 0, approve: true });
  const first = await until(client, id, 'plan_proposed');
  await client.answerPlan(id, { answer: 'stop' });
  const declined = await until(client, id, 'run_end', first.seq);
  expect(await client.resumeRun(id, {})).toEqual({ id });
  const next = await nextOf(client, id, ['plan_proposed', 'plan_ready'], declined.seq);
  expect(next.type).toBe('plan_proposed');
  await client.answerPlan(id, { answer: 'stop' });
  const { seq } = await until(client, id, 'run_end', next.seq);
  await client.resumeRun(id, { approve: false });
  expect(await nextOf(client, id, ['plan_proposed', 'run_end'], seq)).toMatchObject({ outcome: 'done' });
});

test('a plan that waits when the server stops waits again after resume', async () => {
  const cwd = await desk();
  const before = await servedHere(cwd);
  const { id } = await before.client.startRun({ goal: 'one file', workers: 0, approve: true });
  await until(before.client, id, 'plan_proposed');
  await before.stop();
  const { client } = await servedHere(cwd);
  const { seq } = await until(client, id, 'run_end');
  await client.resumeRun(id);
  const next = await nextOf(client, id, ['plan_proposed', 'plan_ready'], seq);
  expect(next.type).toBe('plan_proposed');
});

test('a run that failed before its first plan still asks for approval after resume', async () => {
  const cwd = await desk();
  const script = await readFile(join(cwd, 'script.yaml'), 'utf8');
  await writeFile(
    join(cwd, 'script.yaml'),
    'faults: [{every: 1, fault: status, status: 401}]\notherwise: {text: no}\n',
  );
  const before = await servedHere(cwd);
  const { id } = await before.client.startRun({ goal: 'one file', workers: 0, approve: true });
  const { seq } = await until(before.client, id, 'run_end');
  await before.stop();
  await writeFile(join(cwd, 'script.yaml'), script);
  const { client } = await servedHere(cwd);
  await client.resumeRun(id);
  const next = await nextOf(client, id, ['plan_proposed', 'plan_ready', 'run_end'], seq);
  expect(next.type).toBe('plan_proposed');
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
