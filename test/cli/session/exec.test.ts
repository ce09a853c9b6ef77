// drover exec end to end: a prompt, a scripted model, an exit code.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { main } from '../../../bin/drover.ts';
import { drover, FakeIo, type Given, type Ran, temporaryFolder } from '../fake-io.ts';
import { until } from '../../support/until.ts';

type Exec = Given & { readonly args?: readonly string[]; readonly model?: string };

async function exec(script: string, { args = [], model = 'rehearsal', ...given }: Exec = {}): Promise<Ran> {
  const cwd = given.cwd ?? (await temporaryFolder());
  await writeFile(join(cwd, 'script.yaml'), script);
  return drover(['exec', 'go', '--model', `${model}/script.yaml`, ...args], { ...given, cwd });
}

const calls = (...commands: readonly string[]): string =>
  commands.map((command) => `  - {calls: [{name: shell, args: {command: ${JSON.stringify(command)}}}]}\n`).join('');
const script = (...lines: readonly string[]): string => `answers:\n${lines.join('')}`;
const SAYS_DONE = '  - text: That is all.\n';

/** Times differ between runs, and token counts differ with every change of the prompt. */
function steady(text: string): string {
  return text
    .replace(/\d+(\.\d+)? m?s\b/g, '<time>')
    .replace(/[\d,]+ tokens in( \([\d,]+ from cache\))? · \d+ out/, '<tokens>');
}

test.each(['rehearsal', 'rehearsal-openai', 'rehearsal-openai-chat'])(
  '%s: the answer is printed, and the exit code is 0',
  async (model) => {
    const ran = await exec(script(SAYS_DONE), { model });
    expect({ ...ran, stdout: steady(ran.stdout) }).toEqual({
      code: 0,
      stdout: `drover ${model}/script.yaml in <cwd>\n\nThat is all.\n\n✓ done  <time> · <tokens>\n`,
      stderr: '',
    });
  },
);

test.each<[string, number, string, readonly string[]]>([
  ['a limit of steps', 3, script(calls('true', 'true'), SAYS_DONE), ['--turns', '1', '--yes']],
  ['a gate that fails', 4, script(SAYS_DONE), ['--gate', 'false']],
  ['a budget too small', 6, script(SAYS_DONE), ['--budget', '10tok']],
  ['a deadline', 7, script(calls('sleep 60'), SAYS_DONE), ['--yes', '--timeout', '300ms']],
  ['a call that nobody may allow', 8, script(calls('touch x'), SAYS_DONE), []],
  ['a wrong key', 9, script('  - fault: {fault: status, status: 401}\n'), []],
  ['a refusal of the model', 9, script('  - {text: No., stop: refusal}\n'), []],
  ['nothing in particular', 0, script(calls('touch x'), SAYS_DONE), ['--yes', '--gate', 'test -e x']],
])('%s gives exit code %i', async (_, code, text, args) => {
  expect((await exec(text, { args: [...args, '--view', 'silent'] })).code).toBe(code);
});

test('--view silent prints nothing', async () => {
  expect(await exec(script(SAYS_DONE), { args: ['--view', 'silent'] })).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('a failing gate is shown with the end of its output', async () => {
  const gate = "seq 100; printf '\\033[31mnot good\\n'; exit 3";
  const ran = await exec(script(SAYS_DONE), { args: ['--view', 'silent', '--gate', gate] });
  const lines = Array.from({ length: 19 }, (_, at) => at + 82).join('\n');
  const stderr = `${lines}\nnot good\ndrover: the gate 'seq 100; printf '\\033[31mnot good\\n'; exit 3' fails (exit code 3)\n`;
  expect(ran).toEqual({ code: 4, stdout: '', stderr });
});

test.each([
  ['seq 100000', '100,000 lines'],
  ['seq 100000; exit 3', 'exit code 3, 100,000 lines'],
  ['printf x; seq 20000 | tr -d "\\n"; echo; seq 9', '10 lines'],
  ['seq 5', '5 lines'],
])('the lines view counts all lines that %s printed', async (command, words) => {
  const ran = await exec(script(calls(command), SAYS_DONE), { args: ['--yes'] });
  expect(steady(ran.stdout)).toMatch(new RegExp(`  [✓✗] <time>  ${words}\n`));
});

test('a refused call does not count if the agent found another way', async () => {
  const text = script(calls('touch x', 'ls'), SAYS_DONE);
  expect((await exec(text, { args: ['--view', 'silent', '--allow', 'shell(ls)'] })).code).toBe(0);
});

test.each([
  [['y'], 0, 'allowed'],
  [['n'], 8, 'not allowed: you said no'],
  [['what?', '', 'Yes '], 0, 'allowed'],
  [[], 8, 'not allowed: you said no'],
])('a user at the terminal who types %j is asked, and the answer counts', async (typed, code, line) => {
  const ran = await exec(script(calls('touch x'), SAYS_DONE), { typed });
  expect(ran.code).toBe(code);
  expect(ran.stdout).toContain(line);
  expect(ran.stderr.trimEnd().replaceAll(/( {2}Allow shell: touch x\? \[y\]es \[n\]o \[a\]lways: ?)+/g, 'asked')).toBe(
    'asked',
  );
});

test('a question shows the whole command, however long', async () => {
  const command = `touch x${' '.repeat(200)}; rm -r \u001b[2Ky\nrm z`;
  const ran = await exec(script(calls(command), SAYS_DONE), { typed: ['n'] });
  const stderr = `  Allow shell:\n    touch x${' '.repeat(200)}; rm -r \\u{1b}[2Ky\n    rm z\n  [y]es [n]o [a]lways: `;
  expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 8, stderr });
});

test('a question answered with always is asked only once', async () => {
  const ran = await exec(script(calls('touch x', 'touch x'), SAYS_DONE), { typed: ['a'] });
  expect([ran.code, ran.stderr.split('Allow').length - 1]).toEqual([0, 1]);
});

test('the prompt may come from stdin or a file, and may begin with a dash', async () => {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'prompt.md'), 'from a file');
  await writeFile(join(cwd, 'script.yaml'), 'answers: [{when: {text: "(.*)"}, text: "I heard {{ match.1 }}."}]');
  const model = ['--model', 'rehearsal/script.yaml'];
  const said = async (argv: readonly string[], stdin = ''): Promise<string | undefined> =>
    (await drover(['exec', ...argv], { cwd, stdin })).stdout.split('\n')[2];
  expect(await said(['-', ...model], 'from a pipe')).toBe('I heard from a pipe.');
  expect(await said([...model, '--prompt-file', 'prompt.md'])).toBe('I heard from a file.');
  expect(await said([...model, '--', '--dashes'])).toBe('I heard --dashes.');
});

test('a budget in dollars needs a price', async () => {
  const ran = await exec(script(SAYS_DONE), { args: ['--budget', '1usd'] });
  expect(ran).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'drover: --budget: the price of rehearsal/script.yaml is not known; set "prices" in your config, or give the budget in tokens, such as 200ktok\n',
  });
});

test('a mistake in a script is reported with file, line and column', async () => {
  const ran = await exec('answers:\n  - txt: hello\n');
  expect([ran.code, ran.stdout]).toEqual([2, '']);
  expect(ran.stderr).toMatch(/^drover: <cwd>\/script\.yaml:2:5: .*text/);
});

test('a project that asks for more than allowed is reported and does not get it', async () => {
  const home = await temporaryFolder();
  const cwd = join(home, 'project');
  await mkdir(join(cwd, '.drover'), { recursive: true });
  await writeFile(join(cwd, '.drover/config.yaml'), 'allow: ["shell(touch *)"]\n');
  const ran = await exec(script(calls('touch x'), SAYS_DONE), {
    cwd,
    env: { HOME: home },
    args: ['--view', 'silent', '--sandbox', 'off'],
  });
  expect({ ...ran, stderr: ran.stderr.replaceAll(home, '<home>') }).toEqual({
    code: 8,
    stdout: '',
    stderr:
      'drover: .drover/config.yaml may not set allow, so it is ignored; if you want it, move it to <home>/.config/drover/config.yaml, or approve the file as it is: drover trust\n',
  });
});

test.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'output closed'] as const)(
  '%s before any work cancels the turn',
  async (cause) => {
    const cwd = await temporaryFolder();
    await writeFile(join(cwd, 'script.yaml'), 'answers: [{text: late, delayMs: 60000}]');
    const fake = new FakeIo({ cwd });
    const running = main(['exec', 'go', '--model', 'rehearsal/script.yaml'], fake.io);
    await until(() => fake.stdout.includes('drover'));
    fake.stop(cause);
    expect(await running).toBe(cause === 'SIGINT' ? 130 : 143);
    expect(fake.stdout).toContain('✗ cancelled');
  },
);

test('a session is stored under DROVER_HOME', async () => {
  const cwd = await temporaryFolder();
  const ran = await exec(script(SAYS_DONE), { cwd, env: { DROVER_HOME: join(cwd, 'state') }, args: ['--json'] });
  const { session } = JSON.parse(ran.stdout.split('\n')[0] ?? '') as { readonly session: string };
  const journal = await readFile(join(cwd, 'state/sessions', session, 'journal.jsonl'), 'utf8');
  expect(journal).toContain('That is all.');
});

test('an unwritable home is reported with the fix', async () => {
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'state'), '');
  const ran = await exec(script(SAYS_DONE), { cwd, env: { DROVER_HOME: join(cwd, 'state') } });
  const stderr = 'drover: cannot write to <cwd>/state (ENOTDIR); set DROVER_HOME to a folder that can be written\n';
  expect(ran).toEqual({ code: 2, stdout: '', stderr });
});

test('diagnostics go to a file, only on request', async () => {
  const cwd = await temporaryFolder();
  const ran = await exec(script(SAYS_DONE), { cwd, args: ['--log', 'log.jsonl', '--view', 'silent'] });
  const lines = (await readFile(join(cwd, 'log.jsonl'), 'utf8')).trimEnd().split('\n');
  expect(ran).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
    'there is no sandbox',
    'session opened',
    'request sent',
    'request answered',
    'turn ended',
  ]);
});

test.each<[string, Exec, string]>([
  [
    'a level there is not',
    { env: { DROVER_LOG: 'debgu' } },
    "DROVER_LOG is 'debgu', which is none of trace, debug, info, warn, error; did you mean debug?",
  ],
  [
    'a file that cannot be written',
    { args: ['--log', 'no/such/folder'] },
    '--log: <cwd>/no/such/folder cannot be written (ENOENT); choose another file',
  ],
])('diagnostics to %s are refused', async (_, given, sentence) => {
  expect(await exec(script(SAYS_DONE), given)).toEqual({ code: 2, stdout: '', stderr: `drover: ${sentence}\n` });
});

test('an unexpected error is one line, with the stack on request', async () => {
  const cwd = await temporaryFolder();
  const run = async (env: Record<string, string>): Promise<FakeIo> => {
    const fake = new FakeIo({ cwd, env });
    const stdin = new Readable({ read: () => stdin.destroy(new Error('the disk is on fire')) });
    expect(await main(['exec', '-'], { ...fake.io, stdin })).toBe(1);
    return fake;
  };
  const short = await run({});
  const long = await run({ DROVER_DEBUG: '1' });
  expect(short.stderr).toBe('drover: internal error: Error: the disk is on fire; DROVER_DEBUG=1 shows the details\n');
  expect(long.stderr).toMatch(/^drover: internal error: Error: the disk is on fire\n {4}at /);
});
