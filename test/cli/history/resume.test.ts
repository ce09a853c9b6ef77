// Resuming sessions: with a further message, after a limit, after kill -9; and refused resumes.

import { existsSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { Desk, steady } from '../desk.ts';
import { temporaryFolder } from '../fake-io.ts';
import { Program } from '../program.ts';
import { until } from '../../support/until.ts';

const calls = (...commands: readonly string[]): string =>
  commands.map((command) => `  - {calls: [{name: shell, args: {command: ${JSON.stringify(command)}}}]}\n`).join('');
const script = (...lines: readonly string[]): string => `order: conversation\nanswers:\n${lines.join('')}`;
const TALK = script('  - text: First.\n', '  - text: Second.\n');
const WORK = script(calls('ls .', 'pwd'), '  - text: Done.\n');

test('exec --session creates a session, and then resumes it', async () => {
  const desk = await Desk.with(TALK);
  const first = await desk.exec('talk', 'one');
  const second = await desk.run(['exec', 'two', '--session', 'talk']);
  expect([first, second].map(({ code, stdout, stderr }) => [code, steady(stdout), stderr])).toEqual([
    [0, 'drover rehearsal/script.yaml in <cwd>\n\nFirst.\n\n✓ done  <time> · <tokens>\n', ''],
    [0, 'resuming session talk: rehearsal/script.yaml in <cwd>\n\nSecond.\n\n✓ done  <time> · <tokens>\n', ''],
  ]);
});

test('an unfinished turn prints how to resume, but only to a terminal', async () => {
  const desk = await Desk.with(WORK);
  const lines = await desk.exec('a', 'go', ['--yes', '--turns', '1']);
  const json = await desk.exec('b', 'go', ['--yes', '--turns', '1', '--json']);
  const gated = await desk.exec('a', 'go on', ['--yes', '--gate', 'false']);
  expect(lines.stdout.trimEnd().split('\n').at(-1)).toBe('  resume with: drover resume a');
  expect(JSON.parse(json.stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ type: 'session_end' });
  expect(gated.stdout.trimEnd().split('\n').at(-1)).toBe('  say more with: drover exec --session a "…"');
  expect([lines, json, gated].map(({ code }) => code)).toEqual([3, 3, 4]);
});

test('resume continues after the step limit, with as many steps again', async () => {
  const desk = await Desk.with(WORK);
  await desk.exec('work', 'go', ['--yes', '--turns', '1']);
  const again = await desk.run(['resume', 'work', '--yes', '--turns', '1']);
  const rest = await desk.run(['resume', '--yes', '--turns', '1']);
  expect(again.code).toBe(3);
  expect({ ...rest, stdout: steady(rest.stdout) }).toEqual({
    code: 0,
    stdout: 'resuming session work: rehearsal/script.yaml in <cwd>\n\nDone.\n\n✓ done  <time> · <tokens>\n',
    stderr: '',
  });
});

test('resume works in the session’s folder unless --cwd says otherwise', async () => {
  const desk = await Desk.with(script(calls('pwd', 'pwd', 'pwd'), '  - text: Done.\n'));
  await mkdir(join(desk.cwd, 'project'));
  const elsewhere = { cwd: await temporaryFolder(), env: { HOME: desk.cwd } };
  const tidy = (text: string): string => text.replaceAll(desk.cwd, '<desk>');

  await desk.exec('s', 'go', ['--yes', '--cwd', 'project', '--turns', '1']);
  const there = await desk.run(['resume', 's', '--yes', '--turns', '1'], elsewhere);
  const here = await desk.run(['resume', 's', '--yes', '--turns', '1', '--cwd', '.'], elsewhere);
  await rm(join(desk.cwd, 'project'), { recursive: true });
  const gone = await desk.run(['resume', 's'], elsewhere);

  expect([there, here, gone].map(({ code, stderr }) => [code, tidy(stderr)])).toEqual([
    [3, 'drover: session s works in <desk>/project, where it was begun; --cwd . makes it work here\n'],
    [3, 'drover: session s worked in <desk>/project before; now it works in <cwd>\n'],
    [2, 'drover: <desk>/project, the folder of session s, is gone; name another with --cwd DIR\n'],
  ]);
  const ends = (await desk.records('s')).filter(({ type }) => type === 'tool_execution_end');
  const folders = ['<desk>/project', '<desk>/project', elsewhere.cwd];
  expect(ends.map(({ output }) => tidy(JSON.stringify(output)))).toEqual(
    folders.map((folder) => JSON.stringify(folder)),
  );
});

test('resume with another model makes it the session’s model', async () => {
  const desk = await Desk.with(WORK);
  await desk.exec('s', 'go', ['--yes', '--turns', '1']);
  await desk.run([
    'resume',
    's',
    '--yes',
    '--turns',
    '1',
    '--model',
    'rehearsal-openai/script.yaml',
    '--view',
    'silent',
  ]);
  const { code, stdout } = await desk.run(['resume', 's', '--yes']);
  expect([code, stdout.split('\n', 1)[0]]).toEqual([0, 'resuming session s: rehearsal-openai/script.yaml in <cwd>']);
});

proves(
  'journal.kill-anywhere',
  'resume after a kill in a call repeats nothing and ends the call’s processes',
  async () => {
    const desk = await Desk.with(
      script(calls('echo a >> ledger; sleep 2; echo late >> ledger', 'echo b >> ledger; sleep 3'), '  - text: Done.\n'),
    );
    const program = new Program(['exec', 'go', '--yes', '--model', 'rehearsal/script.yaml', '--json'], desk.cwd);
    await program.printed('tool_execution_start');
    await until(() => existsSync(join(desk.cwd, 'ledger')));
    program.child.kill('SIGKILL');
    await program.ended();

    const listed = await desk.run(['runs', '--json']);
    const { code, stdout } = await desk.run(['resume', '--yes']);
    expect(JSON.parse(listed.stdout)).toMatchObject({ state: 'open', live: false, turns: 1 });
    expect(code).toBe(0);
    expect(stdout).toContain('UNCERTAIN: drover was stopped while this ran');
    expect(await readFile(join(desk.cwd, 'ledger'), 'utf8')).toBe('a\nb\n');
  },
);

test('a new message after a kill in a call ends the call’s processes too', async () => {
  const desk = await Desk.with(
    script(calls('echo a >> ledger; sleep 2; echo late >> ledger', 'sleep 3'), '  - text: Done.\n'),
  );
  const argv = ['exec', 'go', '--yes', '--session', 's', '--model', 'rehearsal/script.yaml', '--json'];
  const program = new Program(argv, desk.cwd);
  await program.printed('tool_execution_start');
  await until(() => existsSync(join(desk.cwd, 'ledger')));
  program.child.kill('SIGKILL');
  await program.ended();

  expect((await desk.exec('s', 'never mind', ['--yes', '--view', 'silent'])).code).toBe(0);
  expect(await readFile(join(desk.cwd, 'ledger'), 'utf8')).toBe('a\n');
});

test('resume refuses a session in use and names its owner', async () => {
  const desk = await Desk.with(WORK);
  await desk.exec('s', 'go', ['--yes', '--turns', '1']);
  const leave = await desk.occupy('s');
  const path = '<cwd>/.drover/sessions/s/journal.jsonl';
  const sentence = `drover: process ${process.pid} is writing ${path}: wait for it, or stop it\n`;
  for (const argv of [
    ['resume', 's'],
    ['exec', 'go', '--session', 's'],
    ['replay', 's'],
  ])
    expect(await desk.run(argv)).toEqual({ code: 2, stdout: '', stderr: sentence });
  const unnamed = await desk.run(['resume']);
  expect(unnamed.stderr).toBe(
    'drover: no run or session was interrupted; the newest is s (go), which is live: watch it with: drover logs s --follow\n',
  );
  await leave();
  expect((await desk.run(['resume', 's', '--yes'])).code).toBe(0);
});

test('resume explains why a session cannot be resumed and what to do', async () => {
  const desk = await Desk.with(WORK);
  await desk.exec('over', 'go', ['--yes']);
  const records = await desk.records('over');
  const begun = records.filter(({ type }) => type === 'session_start');
  await desk.copy('over', 'empty');
  await desk.rewrite('empty', begun);
  const call = records.find(({ type }) => type === 'tool_execution_start') ?? {};
  await desk.copy('over', 'waiting');
  await desk.rewrite('waiting', [
    ...records.slice(0, records.indexOf(call)),
    { ...call, type: 'awaiting_tool_execution', calls: [call] },
  ]);
  const said = async (...argv: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await desk.run(['resume', ...argv]);
    expect([code, stdout]).toEqual([2, '']);
    return stderr;
  };
  expect(await said('over')).toBe(
    'drover: the last turn of session over is done; say more with: drover exec --session over "…"\n',
  );
  expect(await said('empty')).toBe(
    'drover: nothing was asked in session empty yet; say more with: drover exec --session empty "…"\n',
  );
  expect(await said('waiting')).toBe(
    'drover: session waiting waits for shell: ls .; the program that began it has to send the results it waits for\n',
  );
  expect(await said()).toMatch(
    /^drover: no run or session was interrupted; the newest is (over|waiting) \(go\), which is /,
  );
});

test('a failed gate is in the journal and in everything that tells of the session', async () => {
  const desk = await Desk.with(script('  - text: First.\n'));
  const live = await desk.exec('s', 'go', ['--gate', 'true', '--gate', 'echo red; exit 3']);
  expect({ ...live, stdout: steady(live.stdout) }).toEqual({
    code: 4,
    stdout: [
      'drover rehearsal/script.yaml in <cwd>\n\nFirst.\n\n',
      '  ▸ gate: true\n  ✓ <time>  the gate passes\n',
      '  ▸ gate: echo red; exit 3\n  ✗ <time>  the gate fails: exit code 3\n\n',
      "✗ incomplete: the gate 'echo red; exit 3' fails:\nexit code 3\n  <time> · <tokens>\n",
      '  say more with: drover exec --session s "…"\n',
    ].join(''),
    stderr: "red\ndrover: the gate 'echo red; exit 3' fails (exit code 3)\n",
  });
  const told: readonly unknown[] = ['gate_start', 'gate_end', 'done', 'incomplete', 'session_end'];
  const kept = (await desk.records('s')).filter(({ type }) => told.includes(type));
  expect(kept.map(({ type, passed, output, outcome }) => ({ type, passed, output, outcome }))).toEqual([
    { type: 'gate_start' },
    { type: 'gate_end', passed: true, output: '' },
    { type: 'gate_start' },
    { type: 'gate_end', passed: false, output: 'red\nexit code 3' },
    { type: 'incomplete' },
    { type: 'session_end', outcome: 'incomplete' },
  ]);
  const reason = "the gate 'echo red; exit 3' fails:\nexit code 3";
  expect(JSON.parse((await desk.run(['show', 's', '--json'])).stdout)).toMatchObject({ state: 'incomplete', reason });
  expect((await desk.run(['show', 's'])).stdout.trimEnd().split('\n').at(-1)).toBe(
    'say more with: drover exec --session s "…"',
  );
  expect((await desk.run(['runs'])).stdout).toContain('incomplete');
  expect((await desk.run(['logs', 's'])).stdout).toContain('echo red; exit 3 fails\n');
  expect((await desk.run(['replay', 's', '--view', 'silent'])).code).toBe(0);
});

test('a gate that cannot be started is a failed gate', async () => {
  const desk = await Desk.with(script('  - text: First.\n'));
  const folder = join(desk.cwd, 'gone');
  await mkdir(folder);
  const gates = ['--cwd', folder, '--sandbox', 'off', '--gate', 'rm -r "$PWD"', '--gate', 'true'];
  const { code, stderr } = await desk.run(['exec', 'go', '--model', 'rehearsal/script.yaml', ...gates]);
  expect([code, stderr.includes("drover: the gate 'true' fails (")]).toEqual([4, true]);
});

test('resume tests a session again whose gate failed, and needs a gate for it', async () => {
  const desk = await Desk.with(script('  - text: First.\n'));
  await desk.exec('s', 'go', ['--gate', 'test -e fixed']);
  expect(await desk.run(['resume', 's'])).toEqual({
    code: 2,
    stdout: '',
    stderr:
      "drover: the agent is done, and the gate 'test -e fixed' failed; " +
      'say more with: drover exec --session s "…", or test again with --gate\n',
  });
  const red = await desk.run(['resume', 's', '--gate', 'test -e fixed']);
  await mkdir(join(desk.cwd, 'fixed'));
  const green = await desk.run(['resume', 's', '--gate', 'test -e fixed']);
  expect([red.code, green.code]).toEqual([4, 0]);
});
