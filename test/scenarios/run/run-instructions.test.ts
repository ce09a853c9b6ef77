// A run in a repository whose AGENTS.md cannot be used: one warning for all agents, and the work is done.

import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { HANG_MS, LINK_OUT, makePipe } from '../../support/data/odd-files.ts';
import { planned, RunDesk, type RanRun, statuses, submits, writes } from '../../support/run/run-desk.ts';

const PLAN = `
goal: two files
tasks:
  - { id: one, title: One, prompt: write one }
  - { id: two, title: Two, prompt: write two }
`;

const SCRIPT = planned({
  one: { answers: [writes('one.txt', '1'), submits('one')] },
  two: { answers: [writes('two.txt', '2'), submits('two')] },
});

const warnings = ({ events }: RanRun) => events.flatMap((event) => (event.type === 'warning' ? event.message : []));

const DONE = { one: 'landed', two: 'landed' };

test.each([
  ['planned by the model', ['run', 'two files']],
  ['from a plan file', ['run', '--plan', '../plan.yaml']],
])('an AGENTS.md that leads out is warned of once, %s', { timeout: 3 * HANG_MS }, async (_, argv) => {
  const desk = await RunDesk.with(SCRIPT);
  await desk.write({ '../plan.yaml': PLAN });
  await symlink('/etc/passwd', join(desk.repository, 'AGENTS.md'));
  desk.git('add', '-A');
  desk.git('-c', 'user.name=A Person', '-c', 'user.email=person@example.com', 'commit', '-q', '-m', 'second');
  const ran = await desk.run(argv);
  expect(statuses(ran.end)).toEqual(DONE);
  expect(warnings(ran)).toEqual([
    `AGENTS.md ${LINK_OUT.problem}, so its instructions are left out; replace the link with a copy of the file`,
  ]);
  expect(JSON.stringify(desk.server.requests).includes('root:')).toBe(false);
});

test('an AGENTS.md that is a pipe in the user’s checkout stops no run', { timeout: 3 * HANG_MS }, async () => {
  const desk = await RunDesk.with(SCRIPT);
  await desk.write({ '../plan.yaml': PLAN });
  await makePipe(join(desk.repository, 'AGENTS.md'));
  const ran = await desk.run(['run', '--plan', '../plan.yaml']);
  expect([statuses(ran.end), warnings(ran)]).toEqual([
    DONE,
    ['AGENTS.md is a pipe, not a regular file, so its instructions are left out; replace it with a regular file'],
  ]);
});
