// Hooks of the user's config: before and after a run, tasks, calls, merges and the delivery.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, statuses, submits, writes, type RanRun } from '../../support/run/run-desk.ts';

const SCRIPT = planned({ a: { answers: [calls('list', {}), writes('b.txt', 'x\n'), submits('did it')] } });

/** Runs with these hooks in the user's config; `log` is a file that hooks may write. */
async function withHooks(hooks: string, files = {}): Promise<{ desk: RunDesk; ran: RanRun; log: string }> {
  const desk = await RunDesk.with(SCRIPT, { 'a.txt': 'one\n', ...files });
  const log = join(desk.folder, 'log');
  await mkdir(join(desk.folder, '.config', 'drover'), { recursive: true });
  await writeFile(join(desk.folder, '.config', 'drover', 'config.yaml'), hooks.replaceAll('LOG', log));
  const ran = await desk.run(['run', 'go', '--rounds', '1', '--yes', '--sandbox', 'off'], {
    env: { HOME: desk.folder },
  });
  return { desk, ran, log };
}

test('hooks run at every moment, in order, with JSON on standard input', async () => {
  const moments = ['run', 'task', 'merge', 'delivery'].flatMap((each) => [`before ${each}`, `after ${each}`]);
  const hooks = [...moments, 'before call', 'after call'].map(
    (at) => `  - { at: ${at}, run: 'line=$(cat); echo "$line" >> LOG' }`,
  );
  const { ran, log } = await withHooks(`hooks:\n${hooks.join('\n')}\n`);
  const lines = (await readFile(log, 'utf8')).split('\n').filter((line) => line !== '');
  const told = lines.map((line) => JSON.parse(line) as Readonly<Record<string, string>>);
  // The call of the coordinator stays open while its plan is executed.
  const seen = told.filter(({ tool }) => tool !== 'submit_plan');
  expect(seen.map(({ hook, tool }) => (tool === undefined ? hook : `${hook} ${tool}`))).toEqual([
    'before run',
    'before merge', // the base is tested by the gate
    'before task',
    ...['list', 'write', 'submit_result'].flatMap((tool) => [`before call ${tool}`, `after call ${tool}`]),
    'after task',
    'before merge',
    'after merge',
    'before delivery',
    'after delivery',
    'after run',
  ]);
  expect(seen[2]).toMatchObject({
    id: ran.events[0]?.run,
    task: 'a',
    attempt: 1,
    title: 'do a',
    prompt: 'Please do a.',
  });
  expect(seen.find(({ hook, tool }) => hook === 'after call' && tool === 'write')).toMatchObject({
    args: { path: 'b.txt', content: 'x\n' },
    output: expect.stringContaining('b.txt'),
  });
  expect([statuses(ran.end), ran.end.exitCode]).toEqual([{ a: 'landed' }, 0]);
});

test('a hook outside the sandbox runs in bash where there is one', async () => {
  const { log } = await withHooks(`hooks:\n  - { at: before run, run: 'echo "$0" > LOG' }\n`);
  expect(await readFile(log, 'utf8')).toBe('bash\n');
});

test.each(['before task', 'after task'])('a hook %s that blocks makes the task fail with its words', async (at) => {
  const { ran } = await withHooks(`hooks: [{ at: ${at}, run: "echo not on a Friday >&2; exit 2" }]\n`);
  const [row] = ran.end.tasks;
  expect([row?.status, row?.attempts, row?.reason]).toEqual([
    'failed',
    1,
    expect.stringMatching(/^the hook .* says: not on a Friday$/),
  ]);
});

test('a hook before a call that blocks is its result, and the call does not run', async () => {
  const { ran } = await withHooks(
    `hooks: [{ at: before call, tools: list, run: "echo look elsewhere >&2; exit 2" }]\n`,
  );
  const list = ran.events.find((event) => event.type === 'tool_execution_end' && event.name === 'list');
  expect(list).toMatchObject({
    isError: true,
    output: expect.stringMatching(/^Not run: the hook .* says: look elsewhere$/),
  });
  expect(ran.events.some((event) => event.type === 'tool_execution_start' && event.name === 'list')).toBe(false);
  expect(statuses(ran.end)).toEqual({ a: 'landed' });
});

test('a hook before the run that blocks stops it before a request is sent', async () => {
  const { desk, ran } = await withHooks(`hooks: [{ at: before run, run: "echo frozen >&2; exit 2" }]\n`);
  expect([ran.code, ran.end.failure?.kind, ran.end.reason]).toEqual([
    8,
    'hook.blocked',
    expect.stringContaining('says: frozen'),
  ]);
  expect(desk.server.requests).toEqual([]);
});

test('a hook before the merge is a gate; one before the delivery holds the work', async () => {
  const gate = await withHooks(`hooks: [{ at: before merge, run: "! test -e b.txt" }]\n`);
  expect(statuses(gate.ran.end)).toEqual({ a: 'gate_failed' });
  const delivery = await withHooks(`hooks: [{ at: before delivery, run: "echo hold it >&2; exit 2" }]\n`);
  expect([delivery.ran.code, delivery.ran.end.delivered, delivery.ran.end.reason]).toEqual([
    8,
    undefined,
    expect.stringContaining('hold it'),
  ]);
  expect(statuses(delivery.ran.end)).toEqual({ a: 'landed' });
});

test('a hook that hangs or fails is ended and named, and the run continues', async () => {
  const { ran } = await withHooks(
    `hooks:\n  - { at: before task, run: "sleep 600", timeout: 200ms }\n  - { at: before task, run: "yes | head -c 300000 >&2; exit 1" }\n`,
  );
  const warnings = ran.events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));
  expect(
    warnings.some((each) =>
      /^the hook 'sleep 600' \(before task, .*config\.yaml:2:\d+\) was ended after 0\.2 s/.test(each),
    ),
  ).toBe(true);
  const failed = warnings.find((each) => each.includes('ended with 1'));
  expect(failed?.length).toBeLessThan(5_000);
  expect(statuses(ran.end)).toEqual({ a: 'landed' });
});

test('a hook of a project never runs outside a sandbox, trusted or not', async () => {
  const { desk, ran } = await withHooks('workers: 1\n', {
    '.drover/config.yaml': `hooks: [{ at: before task, run: "touch $PWD/proof" }]\n`,
  });
  expect(existsSync(join(desk.repository, 'proof'))).toBe(false);
  expect(ran.stderr).toContain('may not set hooks');
  const typed = ['run', 'go', '--rounds', '1', '--yes', '--sandbox', 'off', '--trust-project'];
  const trusted = await desk.run(typed, { env: { HOME: desk.folder } });
  const warnings = trusted.events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));
  expect(warnings.join('\n')).toContain(
    'was not run: there is no sandbox, and a hook of a project runs only inside one',
  );
});
