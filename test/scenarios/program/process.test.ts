// drover as a process: it stops on request, leaves no process behind, and returns the right exit code.

import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { temporaryFolder, withoutNotice } from '../../cli/fake-io.ts';
import { LAUNCHER, processesWith, Program } from '../../cli/program.ts';
import { until } from '../../support/until.ts';

// The longest that a user or a supervisor waits.
const STOP_MS_MAX = 3_000;

async function folderWith(script: string): Promise<string> {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'script.yaml'), script);
  return cwd;
}

const EXEC = ['exec', 'go', '--model', 'rehearsal/script.yaml', '--yes'];
const SLOW_TALKER = 'answers: [{text: {repeat: "word ", times: 2000}, tokensPerSecond: 20}]';
const runs = (command: string): string =>
  `answers: [{calls: [{name: shell, args: {command: ${JSON.stringify(command)}}}]}]`;

const LIVES: readonly [how: string, script: string, args: readonly string[], code: number, outcome: string][] = [
  ['is done', 'answers: [{text: hello}]', [], 0, 'done'],
  ['meets a wrong key', 'answers: [{fault: {fault: status, status: 401}}]', [], 9, 'error'],
  ['reaches a limit', runs('true'), ['--turns', '1'], 3, 'incomplete'],
];

for (const [how, script, args, code, outcome] of LIVES) {
  proves('json.only-events', `--json of a session that ${how} prints events, and the last one says so`, async () => {
    const ended = await new Program([...EXEC, '--json', ...args], await folderWith(script)).ended();
    const events = ended.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly seq: number });
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({ code, stderr: '' });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));
    expect(events.at(-1)).toMatchObject({ type: 'session_end', outcome });
  });
}

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 143],
] as const)('%s during a command ends it with its processes and exits %i', async (signal, code) => {
  const mark = `61.${process.pid}${code}${signal.length}`;
  const program = new Program([...EXEC, '--json'], await folderWith(runs(`sleep ${mark} & sleep ${mark}`)));
  await program.printed('tool_execution_start');
  program.child.kill(signal);
  const ended = await program.ended();
  expect([ended.code, ended.stderr, processesWith(`sleep ${mark}`)]).toEqual([code, '', []]);
  expect(ended.ms).toBeLessThan(STOP_MS_MAX);
  expect(JSON.parse(ended.stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
    type: 'session_end',
    outcome: 'incomplete',
  });
});

test('a second SIGINT ends drover at once, with a command that ignores signals', async () => {
  const mark = `62.${process.pid}`;
  const stubborn = `trap '' TERM INT; echo deaf; while true; do sleep ${mark}; done`;
  const program = new Program([...EXEC, '--json'], await folderWith(runs(stubborn)));
  await program.printed('"delta":"deaf');
  program.child.kill('SIGINT');
  await new Promise((resolve) => setTimeout(resolve, 100));
  program.child.kill('SIGINT');
  const { code, stdout } = await program.ended();
  expect(code).toBe(130);
  // The process was signalled; on a busy machine its end takes a moment.
  await until(() => processesWith(`sleep ${mark}`).length === 0);
  // After one signal only, it would have waited for the command and printed how the session ended.
  expect(stdout).not.toContain('session_end');
});

test('closed output ends drover cleanly', async () => {
  const program = new Program([...EXEC, '--json'], await folderWith(SLOW_TALKER));
  await program.printed('text_delta');
  program.child.stdout.destroy();
  const { code, stderr, ms } = await program.ended();
  expect({ code, stderr }).toEqual({ code: 143, stderr: '' });
  expect(ms).toBeLessThan(STOP_MS_MAX);
});

test('output that is not read does not delay a stop', async () => {
  const flood = 'answers: [{text: {repeat: "word ", times: 200000}}]';
  const program = new Program([...EXEC, '--json'], await folderWith(flood));
  await program.printed('text_delta');
  program.stopReading();
  program.child.kill('SIGTERM');
  const { code, ms } = await program.ended();
  expect(code).toBe(143);
  expect(ms).toBeLessThan(STOP_MS_MAX);
});

test('help into a closed pipe does not crash', async () => {
  const program = new Program(['exec', '--help'], await temporaryFolder());
  program.child.stdout.destroy();
  const { code, stderr } = await program.ended();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('output to a full disk is reported and ends drover', async () => {
  const cwd = await folderWith('answers: [{text: hello}]');
  const full = openSync('/dev/full', 'w');
  const env = { PATH: process.env['PATH'], HOME: cwd };
  const ran = spawnSync(process.execPath, [LAUNCHER, ...EXEC, '--json'], { cwd, env, stdio: ['ignore', full, 'pipe'] });
  closeSync(full);
  expect([ran.status, withoutNotice(ran.stderr.toString())]).toEqual([
    143,
    'drover: the output cannot be written (ENOSPC)\n',
  ]);
});

test('drover started through a symlink finds its files', async () => {
  const cwd = await temporaryFolder();
  await symlink(LAUNCHER, join(cwd, 'drover'));
  expect(execFileSync(process.execPath, [join(cwd, 'drover'), '--version'], { encoding: 'utf8' })).toBe('0.1.0\n');
});

const OLD_NODES = ['/usr/bin/node', '/usr/local/bin/node'].filter((path) => existsSync(path) && majorOf(path) < 24);

function majorOf(node: string): number {
  return Number(execFileSync(node, ['-p', 'process.versions.node.split(".")[0]'], { encoding: 'utf8' }));
}

test('an old Node gets one sentence', async (context) => {
  const [node] = OLD_NODES;
  if (node === undefined) return context.skip('there is no Node older than 24 on this machine');
  const { code, stdout, stderr } = await new Program(['exec', 'go'], await temporaryFolder(), { node }).ended();
  const version = execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim();
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr: `drover needs Node 24 or newer; this is Node ${version}.\n`,
  });
});
