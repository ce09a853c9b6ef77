// Open questions of drover serve over a restart: a stop gives no answer, and the next server asks again.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { DroverClient } from '@drover/client/client';
import { expect, test } from 'vitest';
import { desk, PATIENT, served } from './served.ts';

const ASKING = ['--sandbox', 'off'];

async function openQuestions(client: DroverClient, id: string) {
  const { status, questions } = await client.snapshot(id);
  return { status, asked: questions.map(({ requestId, subject }) => ({ requestId, subject })) };
}

/** A session with one open question. */
async function asking(cwd: string) {
  const server = await served(cwd, ASKING);
  const { id } = await server.client.createSession({});
  for await (const event of server.client.execute(id, { content: 'Ask me' }))
    if (event.type === 'permission_request') return { ...server, id, requestId: event.requestId };
  throw new Error('it asked nothing');
}

/** A run with one open question, in a server that the signal has ended; and the next server. */
async function runCutOff(cwd: string, signal: 'SIGTERM' | 'SIGKILL') {
  const before = await served(cwd, ASKING);
  const { id } = await before.client.startRun({ goal: 'Ask in a run' });
  const asked = async (client: DroverClient) => (await client.run(id)).questions.map(({ requestId }) => requestId);
  await expect.poll(() => asked(before.client), PATIENT).toHaveLength(1);
  const [requestId = ''] = await asked(before.client);
  before.program.child.kill(signal);
  await before.program.ended();
  const { client } = await served(cwd, ASKING);
  return { client, id, requestId, asked: () => asked(client), state: async () => (await client.run(id)).state };
}

test.each(['SIGTERM', 'SIGKILL'] as const)('a question of a run that %s ended cannot be answered', async (signal) => {
  const { client, id, requestId, asked } = await runCutOff(await desk(), signal);
  expect([(await client.run(id)).live, await asked()]).toEqual([false, []]);
  await expect(client.answerRun(id, requestId, { allowed: true })).rejects.toMatchObject({ status: 409 });
});

test('a run whose server was killed asks its open question again', async () => {
  const { client, id, asked, state } = await runCutOff(await desk(), 'SIGKILL');
  await client.resumeRun(id);
  await expect.poll(asked, PATIENT).toHaveLength(1);
  const [fresh = ''] = await asked();
  await client.answerRun(id, fresh, { allowed: true });
  await expect.poll(state, PATIENT).toBe('done');
});

test('a question that a stop withdraws is no denial for the resumed task', async () => {
  const { client, id, state } = await runCutOff(await desk(), 'SIGTERM');
  await client.resumeRun(id);
  await expect.poll(state, PATIENT).not.toBe('open');
  expect((await client.run(id)).rows).toMatchObject([{ task: 'three', status: 'done' }]);
});

test.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)(
  'a question that %s interrupts is asked again, alone, and can be answered',
  async (signal) => {
    const cwd = await desk();
    const before = await asking(cwd);
    before.program.child.kill(signal);
    await before.program.ended();

    const { client } = await served(cwd, ASKING);
    const { id, requestId } = before;
    const same = { status: 'running', asked: [{ requestId, subject: 'touch asked.txt' }] };
    await expect.poll(() => openQuestions(client, id), PATIENT).toEqual(same);
    expect(existsSync(join(cwd, 'project', 'asked.txt'))).toBe(false);

    await expect
      .poll(() => client.answer(id, requestId, { allowed: true }).then(() => 'taken', String), PATIENT)
      .toBe('taken');
    await expect.poll(() => openQuestions(client, id), PATIENT).toEqual({ status: 'idle', asked: [] });
    expect(existsSync(join(cwd, 'project', 'asked.txt'))).toBe(true);
    const decisions: boolean[] = [];
    for await (const event of client.events(id)) {
      if (event.type === 'permission_decision') decisions.push(event.allowed);
      if (event.type === 'done') break;
    }
    expect(decisions).toEqual([true]);
  },
);
