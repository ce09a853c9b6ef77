// The role `review`: a last task of a plan that reads what the others changed, with a model of its own.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AnswerSource } from '@drover/rehearsal/script';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, type ScriptedTask, statuses, submits, writes } from '../../support/run/run-desk.ts';

const ONE: ScriptedTask = { answers: [writes('b.txt', 'two\n'), submits('wrote b')] };
const REVIEW = {
  assigned: 'Your task is review:',
  answers: [calls('read', { path: 'b.txt' }), submits('b.txt:1 is wrong')],
};

async function deskWith(
  config: string,
  tasks: Readonly<Record<string, ScriptedTask>>,
  ...first: readonly AnswerSource[]
): Promise<RunDesk> {
  const script = planned(tasks);
  const reviewer = { ...REVIEW, answers: [...first, ...REVIEW.answers] };
  const desk = await RunDesk.with({ ...script, agents: { ...script.agents, reviewer } });
  const folder = join(desk.folder, 'config', 'drover');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'config.yaml'), config);
  return desk;
}

const run = (desk: RunDesk, ...flags: readonly string[]) =>
  desk.run(['run', 'go', '--yes', ...flags], { env: { XDG_CONFIG_HOME: join(desk.folder, 'config') } });
const models = ({ server }: RunDesk) => server.requests.map(({ body }) => (body as { model: string }).model);

test('a review reads what landed, and the coordinator learns what it found', async () => {
  const desk = await deskWith('models: { review: openai/critic }\n', { one: ONE });
  const { code, end, events } = await run(desk);
  expect([code, statuses(end)]).toEqual([0, { one: 'landed', review: 'done' }]);
  expect(models(desk)).toEqual(['scripted', 'scripted', 'scripted', 'critic', 'critic', 'scripted']);
  const read = events.find((event) => event.type === 'tool_execution_end' && event.name === 'read');
  expect(read).toMatchObject({ output: expect.stringContaining('two') as unknown });
  expect(JSON.stringify(desk.server.requests.at(-1)?.body)).toContain('b.txt:1 is wrong');
  const { stdout } = await desk.drover(['show', end.run ?? '']);
  expect(stdout).toContain('  review: openai/critic\n');
});

test('a review moves to the next model of its list if the first is unavailable', async () => {
  const overloaded: AnswerSource = ({ model }) =>
    model === 'critic' ? { fault: { fault: 'status', status: 529, headers: { 'retry-after-ms': '1' } } } : undefined;
  const desk = await deskWith('models: { review: [openai/critic, anthropic/spare] }\n', { one: ONE }, overloaded);
  const { end } = await run(desk);
  expect(statuses(end)).toEqual({ one: 'landed', review: 'done' });
  expect(models(desk).slice(3, -1)).toEqual(['critic', 'critic', 'critic', 'spare', 'spare']);
});

test('a plan without changes is not reviewed, and neither is one without the role', async () => {
  const read: ScriptedTask = { mode: 'read', answers: [submits('nothing')] };
  const looked = await run(await deskWith('models: { review: openai/critic }\n', { look: read }));
  expect(statuses(looked.end)).toEqual({ look: 'done' });
  const plain = await run(await deskWith('', { one: ONE }));
  expect(statuses(plain.end)).toEqual({ one: 'landed' });
});

test('a review gets another id if a task has its own', async () => {
  const desk = await deskWith('models: { review: openai/critic }\n', { review: ONE });
  const { end } = await run(desk);
  expect(Object.keys(statuses(end))).toEqual(['review', 'review-2']);
});

test('an unknown model for the review fails before any request', async () => {
  const desk = await deskWith('models: { review: opnai/critic }\n', { one: ONE });
  const env = { XDG_CONFIG_HOME: join(desk.folder, 'config') };
  const { code, stderr } = await desk.drover(['run', 'go', '--yes'], { env });
  expect([code, stderr]).toEqual([2, expect.stringContaining("there is no provider 'opnai'")]);
  expect(desk.server.requests).toHaveLength(0);
});
