// Many workers in a separate process: stderr holds only drover's own lines.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Program } from '../../cli/program.ts';
import { desk } from '../../cli/serve/served.ts';

const TASKS = Array.from({ length: 12 }, (_, at) => ({
  id: `t${at}`,
  title: 'Say it',
  prompt: 'Say it.',
  mode: 'read',
}));
// More than a pipe holds, so that drover waits for room.
const LONG = { text: { repeat: 'word ', times: 20_000 } };

test('a run with twelve threads leaves no warning of Node on standard error', { timeout: 120_000 }, async () => {
  const cwd = await desk();
  const script = {
    order: 'conversation',
    agents: { worker: { assigned: 'Your task is', order: 'conversation', answers: [LONG] } },
    answers: [{ calls: [{ name: 'submit_plan', args: { tasks: TASKS } }] }, LONG],
  };
  await writeFile(join(cwd, 'script.yaml'), JSON.stringify(script));
  const argv = [
    'run',
    'say it',
    '--model',
    'rehearsal/script.yaml',
    '--workers',
    '12',
    '--yes',
    '--json',
    '--cwd',
    'project',
  ];
  const program = new Program(argv, cwd);
  const { code, stderr } = await program.ended();
  expect([code, stderr]).toEqual([0, '']);
});
