// --junit and --summary of a run.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Script } from '@drover/rehearsal/script';
import { expect, test } from 'vitest';
import { readJunit } from '../../support/data/junit-schema.ts';
import { planned, RunDesk, submits, writes } from '../../support/run/run-desk.ts';

const SCRIPT = planned({
  fine: { answers: [writes('fine.txt', 'fine\n'), submits('It is fine.')] },
  red: { answers: [writes('red.txt', 'red\n'), submits('red')] },
});
const RUN = ['run', 'do two things', '--gate', 'test ! -e red.txt', '--yes'];

test('a run writes the requested reports and appends to an existing summary', async () => {
  const desk = await RunDesk.with(SCRIPT);
  await writeFile(join(desk.folder, 'summary.md'), 'Before.\n');
  const { end } = await desk.run([...RUN, '--junit', '../junit.xml', '--summary', '../summary.md']);
  expect(end.exitCode).toBe(3);
  const [suite] = readJunit(await readFile(join(desk.folder, 'junit.xml'), 'utf8')).children;
  expect(
    suite?.children.map(({ attributes: { name }, children }) => [name, children.map((each) => each.name)]),
  ).toEqual([
    ['do fine', ['system-out']],
    ['do red', ['failure', 'system-out']],
  ]);
  const summary = await readFile(join(desk.folder, 'summary.md'), 'utf8');
  expect(summary).toMatch(/^Before\.\n## ❌ `do two things`: 1 of 2 tasks are done\n/);
  expect(summary).toContain('<summary>red: stopped by a gate on the merged tree</summary>');
});

const REFUSED: Script = { faults: [{ fault: 'status', status: 401, message: 'no such key', every: 1 }] };

test.each<[string, Script, number, string, string]>([
  ['a gate that fails on the base', SCRIPT, 4, 'failure', 'it broke'],
  ['a model that refuses the key', REFUSED, 9, 'error', 'no such key'],
])('%s is a red case of the JUnit report', async (_, script, code, kind, words) => {
  const desk = await RunDesk.with(script);
  const gate = code === 4 ? 'echo it broke; false' : 'true';
  const ran = await desk.drover(['run', 'go', '--yes', '--junit', '../junit.xml', '--gate', gate]);
  const { attributes, children } = readJunit(await readFile(join(desk.folder, 'junit.xml'), 'utf8'));
  const [verdict] = children.at(-1)?.children[0]?.children ?? [];
  expect([ran.code, Number(attributes[`${kind}s`]), verdict?.name, verdict?.text]).toEqual([
    code,
    1,
    kind,
    expect.stringContaining(words),
  ]);
});

test('a resumed run writes its reports too', async () => {
  const desk = await RunDesk.with(SCRIPT);
  const { code } = await desk.interrupted([...RUN, '--workers', '0'], () => desk.server.requests.length > 1);
  expect(code).toBe(130);
  await desk.drover(['resume', '--yes', '--junit', '../junit.xml', '--workers', '0']);
  const [suite] = readJunit(await readFile(join(desk.folder, 'junit.xml'), 'utf8')).children;
  expect(suite?.attributes['tests']).toBe('2');
});

test.each(['--result', '--junit', '--summary'])(
  '%s in a missing folder is refused before any request',
  async (flag) => {
    const desk = await RunDesk.with(SCRIPT);
    const { code, stderr } = await desk.drover([...RUN, flag, 'nowhere/file']);
    expect([code, stderr, desk.server.requests.length]).toEqual([
      2,
      `drover: ${flag}: cannot write to <cwd>/nowhere (ENOENT)\n`,
      0,
    ]);
  },
);

test('the default delivery is a branch, and patches in CI', async () => {
  const delivered = async (env: Record<string, string>, ...more: readonly string[]) => {
    const desk = await RunDesk.with(planned({ fine: { answers: [writes('fine.txt', 'fine\n'), submits('fine')] } }));
    return (await desk.run(['run', 'go', '--yes', '--sandbox', 'auto', ...more], { env })).end.delivered?.deliver;
  };
  expect([
    await delivered({}),
    await delivered({ CI: 'true' }),
    await delivered({ CI: 'true' }, '--deliver', 'branch'),
  ]).toEqual(['branch', 'patch', 'branch']);
});
