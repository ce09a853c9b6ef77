// Whole runs: a goal, a plan, workers in threads and workspaces, and one branch with the result.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { planned, RunDesk, says, statuses, submits, writes } from '../../support/run/run-desk.ts';

test('a goal becomes a plan, each task a commit, and the checkout stays as it was', async () => {
  const desk = await RunDesk.with(
    planned({
      one: { answers: [writes('one.txt', '1\n'), submits('one is there')] },
      two: { answers: [writes('two.txt', '2\n'), says('two is there')] },
      three: { dependsOn: ['one'], answers: [writes('three.txt', '3\n'), submits('three is there')] },
    }),
  );
  const before = desk.git('status', '--porcelain=v2', '--branch');
  const { code, end, stderr } = await desk.run(['run', 'make three files']);

  expect([code, stderr]).toEqual([0, '']);
  expect(statuses(end)).toEqual({ one: 'landed', two: 'landed', three: 'landed' });
  expect(end.run && desk.delivered(end.run)).toEqual({
    'a.txt': 'one',
    'one.txt': '1',
    'two.txt': '2',
    'three.txt': '3',
  });
  expect(desk.git('log', '--format=%s', `main..${end.delivered?.branch}`).split('\n')).toEqual([
    'do three',
    'do two',
    'do one',
  ]);
  expect(desk.git('status', '--porcelain=v2', '--branch')).toBe(before);
  expect(end.answer).toBe('All is done.');
  expect(desk.server.rejections).toBe(0);
});

test('commits are by the user whom GIT_CONFIG_GLOBAL names', async () => {
  const desk = await RunDesk.with(planned({ one: { answers: [writes('one.txt', '1\n'), submits('one')] } }));
  const config = join(desk.folder, 'elsewhere');
  await writeFile(config, '[user]\nname = Elsewhere\nemail = elsewhere@example.com\n');
  const { end } = await desk.run(['run', 'make a file'], { env: { GIT_CONFIG_GLOBAL: config } });
  const author = desk.git('log', '-1', '--format=%an <%ae>', end.delivered?.branch ?? '');
  expect(author).toBe('Elsewhere <elsewhere@example.com>');
});
