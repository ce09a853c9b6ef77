// One task: in this thread, and in a thread of its own, which must make no difference.

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runTask } from '@drover/worker/task';
import type { Script } from '@drover/rehearsal/script';
import { expect, test } from 'vitest';
import { never, rehearsal } from '../support/agent.ts';
import { story } from '../support/story.ts';
import { comparable, listener, poolOf, taskOn } from '../support/task.ts';

const WRITES: Script = {
  answers: [
    { text: 'I write it.', calls: [{ name: 'write', args: { path: 'a.txt', content: 'hello\n' }, id: 'toolu_1' }] },
    { calls: [{ name: 'shell', args: { command: 'cat a.txt; sleep 0.01; echo there' }, id: 'toolu_2' }] },
    { calls: [{ name: 'submit_result', args: { summary: 'wrote a.txt', files: ['a.txt'] }, id: 'toolu_3' }] },
  ],
};

test('a task in this thread and one in a thread tell the same events and end with the same outcome', async () => {
  const [here, there] = [listener(), listener()];
  const hereSpec = await taskOn(await rehearsal(WRITES), 'write a.txt');
  const thereSpec = await taskOn(await rehearsal(WRITES), 'write a.txt', {
    workspace: hereSpec.workspace,
    outputFolder: hereSpec.outputFolder,
  });

  const outcome = await runTask(hereSpec, here.link, never);
  expect(await readFile(join(hereSpec.workspace, 'a.txt'), 'utf8')).toBe('hello\n');
  await rm(join(hereSpec.workspace, 'a.txt'));
  expect(await poolOf().run(thereSpec, there.link, never)).toEqual(outcome);

  expect(comparable(there.told)).toEqual(comparable(here.told));
  expect(there.settlements.map(({ usage }) => usage)).toEqual(here.settlements.map(({ usage }) => usage));
  expect(outcome).toEqual({ status: 'finished', summary: 'wrote a.txt', usage: outcome.usage, refused: [] });
  expect(story(there.events())).toMatchInlineSnapshot(`
    [
      "session starts",
      "user says write a.txt",
      "model says I write it., calls write (tool_calls)",
      "0 starts write: a.txt",
      "0 ends: created a.txt (1 line)",
      "results write ok",
      "model calls shell (tool_calls)",
      "0 starts shell: cat a.txt; sleep 0.01; echo there",
      "0 ends: hello there",
      "results shell ok",
      "model calls submit_result (tool_calls)",
      "0 starts submit_result {"summary":"wrote a.txt","files":["a.txt"]}",
      "0 ends: received",
      "results submit_result ok",
      "done",
      "session ends: done",
    ]
  `);
});
