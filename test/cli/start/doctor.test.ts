// drover doctor: its findings on a good and on a broken machine, and its requests to providers.

import { execFile } from 'node:child_process';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { startRehearsal } from '@drover/rehearsal/server';
import { expect, onTestFinished, test } from 'vitest';
import { drover, type Given, temporaryFolder } from '../fake-io.ts';

const KEY = 'sk-ant-api03-correct-horse-battery-staple';

type Report = {
  readonly ok: boolean;
  readonly checks: readonly { readonly check: string; readonly state: string; readonly says: string }[];
};

async function repository(): Promise<string> {
  const cwd = await temporaryFolder();
  const git = (...args: string[]) =>
    promisify(execFile)('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd });
  await git('init', '-q', '-b', 'main');
  await git('commit', '-q', '--allow-empty', '-m', 'begin');
  return cwd;
}

/** The output without the parts that depend on the machine. */
async function examined(given: Given, ...args: string[]): Promise<{ readonly code: number; readonly lines: string[] }> {
  const { code, stdout, stderr } = await drover(['doctor', '--json', ...args], given);
  expect(stderr).toBe('');
  const { ok, checks } = JSON.parse(stdout) as Report;
  expect(ok).toBe(code === 0);
  // A sandbox depends on the machine, and has tests of its own.
  const steadyChecks = checks.filter(({ check }) => check !== 'sandbox');
  const lines = steadyChecks.map(({ check, state, says }) => `${state} ${check}: ${steady(says)}`);
  return { code, lines };
}

function steady(text: string): string {
  return text
    .replace(/\d+\.\d+\.\d+ \(\/.*\)/, '<node>')
    .replace(/^git version .*/, '<git>')
    .replace(/GNU bash.*/, '<bash>')
    .replace(/ripgrep \d.*/, '<ripgrep>')
    .replace(/[\d.]+ GiB/, '<free>')
    .replace(/after [\d.]+ m?s/, 'after <time>')
    .replace(/127\.0\.0\.1:\d+/g, '<server>');
}

const of = (lines: readonly string[], check: string): readonly string[] =>
  lines.filter((line) => line.split(':')[0]?.endsWith(` ${check}`));

test('doctor exits 0 on a complete machine and sends no request', async () => {
  const server = await startRehearsal({ answers: [{ text: 'ok' }] });
  onTestFinished(() => server.close());
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: `http://me:hunter2secret@${server.url.slice(7)}/?t=1` };
  const { code, lines } = await examined({ cwd: await repository(), env });
  expect({ code, lines }).toEqual({
    code: 0,
    lines: [
      'good node: <node>',
      'good git: <git>',
      'good repository: <cwd>, on main',
      'good bash: <bash>',
      'good ripgrep: <ripgrep>',
      'good processes: drover can find and stop every process that a command starts',
      'good state: <cwd>/.drover, which will be made',
      'good disk: <free> free for journals and workspaces',
      'good your config: none at <cwd>/.config/drover/config.yaml; drover init --user writes one',
      'good project config: none; drover init writes one',
      'good environment: drover can read all its variables',
      'note terminal: not a terminal, so drover cannot ask: calls that need approval are denied',
      'good providers: anthropic (ANTHROPIC_API_KEY is set, at http://<server>)',
      'good model: anthropic/claude-sonnet-4-5, because ANTHROPIC_API_KEY is set',
    ],
  });
  expect(server.requests).toEqual([]);
});

test('doctor prints one line per finding, with the fix below each problem', async () => {
  const { code, stdout } = await drover(['doctor'], { columns: 100, env: { NO_COLOR: '1' } });
  const lines = stdout.split('\n');
  const from = lines.findIndex((line) => line.includes('providers'));
  expect(code).toBe(2);
  expect(lines.slice(from)).toEqual([
    '✗ providers       no provider has a key',
    '                  export ANTHROPIC_API_KEY=… or OPENAI_API_KEY=…, or name a server under "providers"',
    '                  in your config',
    '! model           none is set',
    '                  say --model anthropic/claude-sonnet-4-5 each time, or set "model" in your config',
    '',
    'One problem has to be fixed first; drover demo works without a key.',
    '',
  ]);
});

test('doctor reports mistakes in both configs and the environment, and checks the rest', async () => {
  const cwd = await repository();
  const files = {
    '.config/drover/config.yaml': 'model: anthropic/x\nwrokers: 3\n',
    '.drover/config.yaml': 'turns: [1\n',
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true });
    await writeFile(join(cwd, path), text);
  }
  const env = { DROVER_HOME: join(cwd, 'state'), DROVER_CHARS_PER_TOKEN: 'four', OPENAI_API_KEY: KEY };
  const { code, lines } = await examined({ cwd, env });
  expect(code).toBe(2);
  expect(lines.filter((line) => line.startsWith('bad'))).toEqual([
    "bad your config: <cwd>/.config/drover/config.yaml:2:1: unknown key 'wrokers'; did you mean workers?",
    expect.stringMatching(/^bad project config: <cwd>\/\.drover\/config\.yaml:2:1: /),
    "bad environment: DROVER_CHARS_PER_TOKEN is 'four'; it must be a number from 1 to 32",
  ]);
  expect(of(lines, 'bash')).toEqual(['good bash: <bash>']);
});

test('a config with a mistake does not hide the keys that are set', async () => {
  const cwd = await temporaryFolder();
  await mkdir(join(cwd, '.config/drover'), { recursive: true });
  await writeFile(join(cwd, '.config/drover/config.yaml'), 'model: 3\n');
  const { lines } = await examined({ cwd, env: { OPENAI_API_KEY: KEY } });
  expect(of(lines, 'providers')).toEqual([
    'good providers: openai (OPENAI_API_KEY is set), openai-chat (OPENAI_API_KEY is set)',
  ]);
});

test('doctor reports forbidden project keys, unknown keys, missing keys and models', async () => {
  const cwd = await repository();
  await mkdir(join(cwd, '.drover'), { recursive: true });
  await mkdir(join(cwd, '.config/drover'), { recursive: true });
  await writeFile(join(cwd, '.drover/config.yaml'), 'model: evil/x\n');
  await writeFile(
    join(cwd, '.config/drover/config.yaml'),
    'model: antropic/x\nproviders: {far: {api: openai, baseUrl: "https://far.example", keyEnv: FAR_KEY}}\n',
  );
  const env = { DROVER_HOME: join(cwd, 'state'), ANTHROPIC_API_KEY: 'a key' };
  const { code, lines } = await examined({ cwd, env });
  expect(code).toBe(2);
  expect(lines.filter((line) => /config|providers|model/.test(line.split(':')[0] ?? ''))).toEqual([
    'good your config: <cwd>/.config/drover/config.yaml sets model, providers',
    'note project config: .drover/config.yaml may not set model, so it is ignored; if you want it, move it to <cwd>/.config/drover/config.yaml, or approve the file as it is: drover trust',
    'bad providers: no provider has a key',
    'bad providers: ANTHROPIC_API_KEY holds characters no key has; set it again',
    'note providers: your config names FAR_KEY for far, and it is not set',
    "bad model: antropic/x, from the config: there is no provider 'antropic'; known are anthropic, openai, openai-chat, far, rehearsal, rehearsal-openai, rehearsal-openai-chat; did you mean anthropic?",
  ]);
});

test('doctor reports a missing git, an unwritable state folder and a missing home', async () => {
  const cwd = await temporaryFolder();
  await mkdir(join(cwd, 'bin'));
  await writeFile(join(cwd, 'taken'), '');
  const bash = (await promisify(execFile)('bash', ['-c', 'command -v bash'])).stdout.trim();
  await symlink(bash, join(cwd, 'bin/bash'));
  const env = { PATH: join(cwd, 'bin'), DROVER_HOME: join(cwd, 'taken/state'), ANTHROPIC_API_KEY: KEY };
  const without = await examined({ cwd, env });
  expect([without.code, of(without.lines, 'git'), of(without.lines, 'state'), of(without.lines, 'repository')]).toEqual(
    [
      2,
      ['bad git: git was not found, and drover works with git repositories: install git 2.38 or newer'],
      ['bad state: cannot write to <cwd>/taken/state (ENOTDIR)'],
      [],
    ],
  );
  const bare = await examined({ cwd, env: { ...env, PATH: join(cwd, 'nowhere') } });
  expect(of(bare.lines, 'bash')).toEqual([expect.stringMatching(/^bad bash: it cannot be started: /)]);
  const old = join(cwd, 'bin/git');
  await writeFile(old, '#!/bin/bash\necho git version 2.30.1\n');
  await chmod(old, 0o755);
  const homeless = await examined({ cwd, env: { ...env, HOME: '' } });
  expect([homeless.code, of(homeless.lines, 'git'), of(homeless.lines, 'state')]).toEqual([
    2,
    ['bad git: this is git version 2.30.1, and drover needs 2.38 or newer: update git'],
    ['bad state: HOME is not set; set it, or set DROVER_HOME and XDG_CONFIG_HOME'],
  ]);
});

test('--online asks each provider with a key once, through its adapter', async () => {
  const server = await startRehearsal({ otherwise: { text: 'ok' }, keys: [KEY] });
  onTestFinished(() => server.close());
  const env = {
    ANTHROPIC_API_KEY: KEY,
    ANTHROPIC_BASE_URL: server.baseUrlFor('anthropic'),
    OPENAI_API_KEY: KEY,
    OPENAI_BASE_URL: server.baseUrlFor('openai'),
  };
  const { code, lines } = await examined({ env }, '--online');
  expect([code, ...lines.slice(-2)]).toEqual([
    0,
    'good anthropic: anthropic/claude-haiku-4-5 answers, after <time>',
    'good openai: openai/gpt-5-nano answers, after <time>',
  ]);
  expect([server.requests.length, server.rejections]).toEqual([2, 0]);
});

test.each([
  [
    'a wrong key',
    { keys: ['another-key-that-is-right'] },
    /^bad anthropic: anthropic\/claude-haiku-4-5: the provider refuses \(401\): /,
  ],
  [
    'a provider that says the key back',
    { faults: [{ fault: 'status' as const, status: 401, message: `no such key: ${KEY}`, every: 1 }] },
    /^bad anthropic: .*no such key: \[key\]$/,
  ],
])('--online with %s prints the fix but not the key, and exits 9', async (_, script, sentence) => {
  const server = await startRehearsal({ ...script, otherwise: { text: 'ok' } });
  onTestFinished(() => server.close());
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: server.url };
  const { code, stdout } = await drover(['doctor', '--online'], { env });
  const { lines } = await examined({ env }, '--online');
  expect([code, stdout.includes(KEY), server.requests.length]).toEqual([9, false, 2]);
  expect(stdout).toContain('check the key in ANTHROPIC_API_KEY');
  expect(lines.at(-1)).toMatch(sentence);
});

test('--online reports an unreachable address, and guesses no unknown models', async () => {
  const cwd = await temporaryFolder();
  const server = await startRehearsal({});
  const gone = server.url;
  await server.close();
  await mkdir(join(cwd, '.config/drover'), { recursive: true });
  await writeFile(
    join(cwd, '.config/drover/config.yaml'),
    'providers: {local: {api: openai-chat, baseUrl: "http://127.0.0.1:9/v1"}}\n',
  );
  const env = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: gone };
  const { code, lines } = await examined({ cwd, env }, '--online');
  expect([code, ...lines.slice(-2)]).toEqual([
    9,
    expect.stringMatching(/^bad anthropic: anthropic\/claude-haiku-4-5: the provider is unavailable: /),
    'note local: not checked: drover does not know its models',
  ]);
});
