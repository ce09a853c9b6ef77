// Attempts that share threads: they take turns, and only the one that ends a thread is charged with it.

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Script } from '@drover/rehearsal/script';
import { openPool } from '@drover/coordinator/pool/pool';
import { afterAll, expect, test } from 'vitest';
import { never, rehearsal } from '../../support/agent.ts';
import { inPool } from '../../support/threads/shared-thread.ts';
import { story } from '../../support/story.ts';
import type { Provider } from '@drover/core/model/provider';
import { ended, listener, poolOf, provider, taskOn } from '../../support/task.ts';
import { proves } from '../../support/proves.ts';

const faulty = fileURLToPath(new URL('../../support/run/faulty-worker.ts', import.meta.url));
const crew = openPool({
  entry: faulty,
  onDiagnostic: () => undefined,
  threadsMax: 1,
  workersMax: 4,
  heapMb: 64,
  silentMs: 2_000,
  graceMs: 20_000,
});
afterAll(() => crew.close());

const MEETING = 'touch here; until [ -e go ]; do sleep 0.02; done; echo met';
const meet: Script = {
  answers: [{ calls: [{ name: 'shell', args: { command: MEETING } }] }, { text: 'done' }],
  order: 'conversation',
};

test('attempts in one thread take turns: none waits for another to end', async () => {
  const single = poolOf({ threadsMax: 1, workersMax: 4 });
  const specs = await Promise.all([1, 2, 3, 4].map(async () => taskOn(await rehearsal(meet), 'meet the others')));
  const outcomes = Promise.all(specs.map((spec) => ended(single.run(spec, listener().link, never))));
  // No command ends before all of them have started.
  while (!specs.every(({ workspace }) => existsSync(join(workspace, 'here'))))
    await new Promise((resolve) => setTimeout(resolve, 10));
  for (const { workspace } of specs) await writeFile(join(workspace, 'go'), '');
  expect((await outcomes).map(({ status }) => status)).toEqual(['finished', 'finished', 'finished', 'finished']);
});

const FAULTS = [
  ['throw', 'told'],
  ['exit', 'told'],
  ['heap', 'unknown'],
  ['loop', 'unknown'],
] as const;

for (const [fault, culprit] of FAULTS)
  proves('worker.lost-alone', `a thread lost by ${fault} costs only the culprit of its four attempts`, async () => {
    const answered: Script = {
      answers: [
        { calls: [{ name: 'shell', args: { command: 'echo one >> log' } }] },
        { calls: [{ name: 'shell', args: { command: MEETING } }] },
        { calls: [{ name: 'shell', args: { command: 'echo two >> log; cat log' } }] },
        { text: 'done' },
      ],
      order: 'conversation',
    };
    const servers = await Promise.all([0, 1, 2].map(() => rehearsal(answered)));
    const specs = await Promise.all(servers.map((server) => taskOn(server, 'go well')));
    const guilty = await taskOn(await rehearsal(meet), 'go wrong', { task: fault });
    const [bad, ...good] = [guilty, ...specs].map((spec) => inPool(crew, spec));
    while (![guilty, ...specs].every(({ workspace }) => existsSync(join(workspace, 'here'))))
      await new Promise((resolve) => setTimeout(resolve, 10));
    await writeFile(join(guilty.workspace, 'now'), '');
    expect((await bad!.outcome).failure?.kind).toBe('worker.lost');
    expect((await Promise.all(good.map(({ outcome }) => outcome))).map(({ status }) => status)).toEqual([
      'finished',
      'finished',
      'finished',
    ]);
    for (const { moves, run } of good) {
      expect(moves).toEqual([{ type: 'attempt_moved', reason: expect.any(String), alone: culprit === 'unknown' }]);
      const calls = run.events().filter(({ type }) => type === 'tool_execution_start');
      expect(calls.length).toBe(3);
      expect(story(run.events()).filter((line) => line.includes('UNCERTAIN')).length).toBe(1);
    }
    // Each answer was requested once.
    expect(servers.map(({ requests }) => requests.length)).toEqual([4, 4, 4]);
  });

test('an answer under way when its thread is lost is not asked for again', async () => {
  const slow: Script = {
    answers: [{ calls: [{ name: 'shell', args: { command: 'echo one' } }] }, { text: { repeat: 'word ', times: 400 } }],
    chunkChars: 20,
    order: 'conversation',
  };
  const lost = Promise.withResolvers<void>();
  const stream: Provider['stream'] = async function* (request, signal) {
    for await (const event of provider.stream(request, signal)) {
      yield event;
      if (event.type === 'text_delta') await lost.promise;
    }
  };
  const servers = await Promise.all([rehearsal(slow), rehearsal(slow)]);
  const specs = await Promise.all(servers.map((server) => taskOn(server, 'tell me a lot')));
  const guilty = await taskOn(await rehearsal(meet), 'go wrong', { task: 'throw' });
  const [bad, ...good] = [guilty, ...specs].map((spec) => inPool(crew, spec, { stream }));
  await Promise.all([bad!.run.heard('tool_execution_start'), ...good.map(({ run }) => run.heard('text_delta'))]);
  await writeFile(join(guilty.workspace, 'now'), '');

  expect((await bad!.outcome).failure?.kind).toBe('worker.lost');
  lost.resolve();
  for (const { outcome, moves, run } of good) {
    expect(await outcome).toMatchObject({ status: 'finished', summary: 'word '.repeat(400).trim() });
    expect(moves.length).toBe(1);
    expect(story(run.events())).not.toContainEqual(expect.stringContaining('discards'));
    expect(run.settlements.length).toBe(2);
  }
  expect(servers.map(({ requests }) => requests.length)).toEqual([2, 2]);
});
