// Exit codes of batches: for each one a cause, the last event, and the outputs.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Answer } from '@drover/rehearsal/script';
import { BatchDesk, noisyFiles, SPEC, tidying } from '../support/run/batch-desk.ts';
import { calls, type RanRun } from '../support/run/run-desk.ts';

/** Every ending must show the same code in the event, the process and the files, and one row per task. */
async function expectTold(batch: BatchDesk, { code, end }: RanRun, expected: number): Promise<void> {
  const summary = JSON.parse(await batch.text('summary.json')) as { readonly exitCode: number };
  const rows = (await batch.results()).map(({ task }) => task);
  const junit = await batch.text('junit.xml');
  const cases = [...junit.matchAll(/<testcase (?!.* name="the run")/g)].length;
  const [headline = ''] = (await batch.text('report.md')).split('\n\n', 2)[1]?.split('\n') ?? [];
  expect([code, end.exitCode, summary.exitCode]).toEqual([expected, expected, expected]);
  expect([rows, cases]).toEqual([end.tasks.map(({ task }) => task), end.tasks.length]);
  expect(expected === 0 || /<(failure|error) /.test(junit), 'junit.xml is red').toBe(true);
  expect(headline).toContain(`exit code ${expected}`);
}

const only =
  (file: string, answer: Answer) =>
  (path: string): Answer | undefined =>
    path === file ? answer : undefined;

const FIRST = 'src/file1.ts';
const REFUSES: Answer = { stop: 'refusal', text: 'I will not.' };

test('0: every task landed', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(1));
  await expectTold(batch, await batch.run(), 0);
});

test('0: every file is in order already, so there is nothing to do', async () => {
  const batch = await BatchDesk.with(tidying(), { 'src/a.ts': 'log(1);\n' });
  await expectTold(batch, await batch.run(), 0);
  expect([batch.requests, await batch.text('report.md')]).toEqual([
    0,
    expect.stringContaining('there was nothing to do'),
  ]);
});

test('1: drover or the machine itself failed', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(2));
  // A folder replaces drover's index, so reading it fails with an unexpected error.
  const index = join(batch.desk.home, 'workspaces', '*', 'slots', '*', 'git', 'index');
  await batch.spec(`${SPEC}  gate: ["for each in ${index}; do rm -rf $each; mkdir $each; done"]\n`);
  await expectTold(batch, await batch.run(['--sandbox', 'off']), 1);
});

test('2: the spec is invalid, and nothing started', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(1), SPEC.replace('select:', 'selct:'));
  const { code, stdout, stderr } = await batch.drover(['--json']);
  expect([code, stdout, batch.requests]).toEqual([2, '', 0]);
  expect(stderr).toContain("spec.yaml:4:1: unknown key 'selct'; did you mean select?");
});

test('3: some tasks failed and the rest landed', async () => {
  const batch = await BatchDesk.with(tidying(only(FIRST, REFUSES)), noisyFiles(2));
  await expectTold(batch, await batch.run(), 3);
  expect(await batch.statuses()).toEqual({ 'src-file1.ts': 'failed', 'src-file2.ts': 'landed' });
});

test('3: a task that reports success but leaves a red gate fails; its work is kept', async () => {
  const gate =
    'grep -L console {{ files }} | grep -q . && ! grep -q 2 {{ files }} || { echo "{{ count }} too many"; exit 7; }';
  const batch = await BatchDesk.with(
    tidying(),
    noisyFiles(2),
    `${SPEC}  gate: ['${gate.replace('"{{ count }} too many"', 'too many')}']\n`,
  );
  await expectTold(batch, await batch.run(), 3);
  const [first, second] = await batch.results();
  expect([first?.status, second?.status, second?.failure?.kind]).toEqual(['landed', 'failed', 'gate.failed']);
  expect(second?.reason).toContain('too many\nexit code 7');
  expect([await batch.patches(), second?.patch]).toEqual([
    ['src-file1.ts.patch'],
    'patches/not-landed/src-file2.ts.patch',
  ]);
});

test('3: a task without changes fails if its own gate is red on its base', async () => {
  const idle = (): Answer => calls('submit_result', { summary: 'it is fine as it is' });
  const batch = await BatchDesk.with(tidying(idle), noisyFiles(2), `${SPEC}  gate: ["! grep 2 {{ files }}"]\n`);
  const ran = await batch.run();
  await expectTold(batch, ran, 3);
  const said = "it changed nothing, and the gate '! grep 2 src/file2.ts' fails on its base:";
  const [first, second] = await batch.results();
  expect([first?.status, first?.reason, second?.status, second?.patch]).toEqual([
    'no_change',
    undefined,
    'failed',
    undefined,
  ]);
  expect(second?.failure).toMatchObject({ kind: 'gate.failed', unchanged: true });
  expect(second?.reason).toMatch(`${said}\nconsole.log(2);`);
  const junit = await batch.text('junit.xml');
  expect(junit).toContain('tests="2" failures="1" errors="0" skipped="0"');
  expect(junit).toMatch(/<failure message="it changed nothing, [^"]*" type="failed">/);
  expect(junit).toContain('<system-out>nothing to change\nit is fine as it is</system-out>');
  const report = await batch.text('report.md');
  expect(report).toContain('1 of 2 tasks are done');
  expect(report).toContain('| nothing to change | 1 |\n| failed | 1 |');
  expect(report).toContain(said);
  const shown = await batch.desk.drover(['show', ran.end.run ?? '']);
  expect(shown.stdout).toContain('0 of 2 tasks landed, 1 had nothing to change');
  expect(shown.stdout).toContain(said);
});

test('3: a gate left one task out and the rest is green; --allow-partial applies', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(2), `${SPEC}gates: ["! grep -q ^log src/file2.ts"]\n`);
  await expectTold(batch, await batch.run(), 3);
  expect(await batch.statuses()).toEqual({ 'src-file1.ts': 'landed', 'src-file2.ts': 'gate_failed' });
  const { code } = await batch.run(['--allow-partial']);
  expect([code, await batch.statuses()]).toEqual([0, { 'src-file1.ts': 'landed', 'src-file2.ts': 'gate_failed' }]);
});

test('4: a gate fails on the merged tree, nothing lands; --allow-partial has no effect', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(2), `${SPEC}gates: ["! grep -q ^log src/*.ts"]\n`);
  await expectTold(batch, await batch.run(), 4);
  expect(await batch.statuses()).toEqual({ 'src-file1.ts': 'gate_failed', 'src-file2.ts': 'gate_failed' });
  expect((await batch.run(['--allow-partial'])).code).toBe(4);
});

test('4: a gate of the batch fails on its base, so no task starts', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(2), `${SPEC}gates: ["! grep 2 src/*.ts"]\n`);
  await expectTold(batch, await batch.run(), 4);
  expect([batch.requests, await batch.statuses()]).toEqual([
    0,
    { 'src-file1.ts': 'cancelled', 'src-file2.ts': 'cancelled' },
  ]);
  expect(await batch.text('report.md')).toContain("the gate '! grep 2 src/*.ts' fails on the base commit");
});

test('5: the changes conflict', async () => {
  // All three tasks and both second attempts begin on the same commit.
  const shared = (path: string, step: number): Answer | undefined =>
    step === 1
      ? { ...calls('write', { path: 'shared.txt', content: `${path}\n` }), delayMs: 400 }
      : calls('submit_result', { summary: 'done' });
  const batch = await BatchDesk.with(tidying(shared), { ...noisyFiles(3), 'shared.txt': 'nobody\n' });
  await expectTold(batch, await batch.run(['--workers', '3']), 5);
  expect(Object.values(await batch.statuses())).toEqual(['landed', 'landed', 'conflict']);
});

test('6: the budget is reached', async () => {
  const dear = (_: string, step: number): Answer | undefined =>
    step < 9 ? { ...calls('read', { path: FIRST }), usage: { input: 40_000 } } : undefined;
  const batch = await BatchDesk.with(tidying(dear), noisyFiles(2), `${SPEC}limits: { budget: 100ktok }\n`);
  const ran = await batch.run();
  await expectTold(batch, ran, 6);
  const spent = ran.events.flatMap((event) => (event.type === 'budget' ? [event.spent] : []));
  expect(Math.max(...spent)).toBeLessThanOrEqual(100_000);
});

test('7: the deadline is reached, and earlier landings remain', async () => {
  const slow = only('src/file2.ts', { text: 'at last', delayMs: 60_000 });
  const batch = await BatchDesk.with(tidying(slow), noisyFiles(2), `${SPEC}limits: { timeout: 5s }\n`);
  await expectTold(batch, await batch.run(), 7);
  expect([await batch.statuses(), await batch.patches()]).toEqual([
    { 'src-file1.ts': 'landed', 'src-file2.ts': 'cancelled' },
    ['src-file1.ts.patch'],
  ]);
});

test('7: a task’s own time limit is reached', async () => {
  const slow = only(FIRST, { text: 'at last', delayMs: 60_000 });
  const batch = await BatchDesk.with(tidying(slow), noisyFiles(1), `${SPEC}limits: { perTaskTimeout: 300ms }\n`);
  await expectTold(batch, await batch.run(), 7);
  expect(await batch.statuses()).toEqual({ 'src-file1.ts': 'failed' });
});

test('8: a task whose calls were denied has failed, even if the model reports success', async () => {
  const denied = (_: string, step: number): Answer =>
    step === 1 ? calls('shell', { command: 'make install' }) : { text: 'Done!' };
  const batch = await BatchDesk.with(tidying(denied), noisyFiles(1));
  await expectTold(batch, await batch.run(['--sandbox', 'off']), 8);
  expect(await batch.statuses()).toEqual({ 'src-file1.ts': 'failed' });
});

test('9: the provider refuses the request', async () => {
  const batch = await BatchDesk.with({ ...tidying(), keys: ['another'] }, noisyFiles(2));
  await expectTold(batch, await batch.run(), 9);
});

test.each([
  [130, 'SIGINT'],
  [143, 'SIGTERM'],
] as const)('%i: stopped by %s; landings remain, and the batch can be resumed', async (code, cause) => {
  let isHeld = true;
  const hold = (path: string): Answer | undefined =>
    isHeld && path === 'src/file2.ts' ? { text: 'wait', delayMs: 60_000 } : undefined;
  const batch = await BatchDesk.with(tidying(hold), noisyFiles(2));
  const asked = () => batch.desk.server.requests.some(({ rawBody }) => rawBody.includes('file2.ts'));
  const hasLanded = (printed: string) => printed.includes('"outcome":"landed"');
  const stopped = await batch.stopped(cause, (printed) => asked() && hasLanded(printed));
  await expectTold(batch, stopped, code);
  expect([await batch.statuses(), await batch.patches()]).toEqual([
    { 'src-file1.ts': 'landed', 'src-file2.ts': 'cancelled' },
    ['src-file1.ts.patch'],
  ]);
  isHeld = false;
  const { code: then } = await batch.desk.drover(['resume', stopped.end.run ?? '', '--json']);
  expect([then, await batch.statuses()]).toEqual([0, { 'src-file1.ts': 'landed', 'src-file2.ts': 'landed' }]);
});

test('--allow-partial maps 3 to 0, and the files still name the failures', async () => {
  const batch = await BatchDesk.with(tidying(only(FIRST, REFUSES)), noisyFiles(2));
  const { code } = await batch.run(['--allow-partial', '--result', '../result.json']);
  const result = JSON.parse(await readFile(join(batch.desk.folder, 'result.json'), 'utf8')) as { outcome: string };
  expect([code, result.outcome, await batch.statuses()]).toEqual([
    0,
    'incomplete',
    { 'src-file1.ts': 'failed', 'src-file2.ts': 'landed' },
  ]);
});
