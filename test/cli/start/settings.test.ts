// Settings: precedence, limits of a project's config, and reports of mistakes.

import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { UsageError } from '@drover/core/errors';
import { chooseModel } from '../../../bin/model/model-choice.ts';
import { loadSettings, type Settings } from '../../../bin/start/settings.ts';
import { proves } from '../../support/proves.ts';
import { drover, FakeIo, temporaryFolder } from '../fake-io.ts';

type World = {
  readonly user?: string;
  readonly project?: string;
  readonly approved?: string;
  readonly env?: Record<string, string>;
};

/** A home with a config, and inside it a repository with a second config. */
async function world({
  user,
  project,
  approved,
  env,
}: World): Promise<{ root: string; cwd: string; env: Record<string, string> }> {
  const root = await temporaryFolder();
  const cwd = join(root, 'repository');
  await mkdir(join(cwd, '.git'), { recursive: true });
  const files = {
    [join(root, '.config/drover/config.yaml')]: user,
    [join(cwd, '.drover/config.yaml')]: project,
    [join(root, '.drover/approved.json')]: approved,
  };
  for (const [path, text] of Object.entries(files)) {
    if (text === undefined) continue;
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text.replaceAll('<root>', root));
  }
  return { root, cwd, env: { HOME: root, ...env } };
}

async function settingsIn(given: World, folder = ''): Promise<Settings> {
  const { root, cwd, env } = await world(given);
  await mkdir(join(cwd, folder), { recursive: true });
  const { io } = new FakeIo({ cwd: join(cwd, folder), env });
  const settings = await loadSettings(io, join(cwd, folder));
  const tidy = (text: string): string => text.replaceAll(root, '<root>');
  return { ...settings, home: tidy(settings.home), warnings: settings.warnings.map(tidy) };
}

/** The output of drover started there, without the folder's name. */
async function complaint(given: World): Promise<string> {
  const { root, cwd, env } = await world(given);
  const ran = await drover(['exec', 'go', '--model', 'anthropic/any'], { cwd, env });
  expect([ran.code, ran.stdout]).toEqual([2, '']);
  return ran.stderr.replaceAll('<cwd>', '<root>/repository').replaceAll(root, '<root>');
}

const NOTHING_SET = {
  home: '<root>/.drover',
  model: undefined,
  models: { plan: undefined, work: undefined },
  providers: new Map(),
  prices: new Map(),
  charsPerToken: undefined,
  contextTokens: undefined,
  steps: undefined,
  workers: undefined,
  gates: [],
  setup: [],
  ignore: [],
  rules: [],
  textCallRetries: undefined,
  hooks: [],
  timeouts: {},
  bell: true,
  sandbox: undefined,
  net: [],
  writable: [],
  mcp: new Map(),
  warnings: [],
};

const EVERYTHING = `
model: local/qwen
providers:
  local: {api: openai-chat, baseUrl: "http://127.0.0.1:8080/v1"}
  deepseek:
    api: openai-chat
    baseUrl: https://api.deepseek.example/v1
    keyEnv: DEEPSEEK_API_KEY
prices:
  local/qwen: {input: 0.1, output: 0.2}
  deepseek/chat: {input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.5}
charsPerToken: 3.5
contextTokens: 32000
steps: 50
textCallRetries: 3
workers: 4
gates: [pnpm test]
setup: [make]
ignore: [dist]
allow: ["shell(pnpm *)"]
ask: ["write(docs/*)"]
deny: ["shell(rm *)"]
bell: false
timeouts: {headers: 30s, firstByte: 1m, silence: 90s, progress: 1h}
sandbox: required
net: [packages.example.com]
writable: [/var/cache/builds]
mcp: { memory: { command: mcp-server-memory, timeout: 5s } }
`;

const ALLOW = { effect: 'allow', tool: 'shell', pattern: 'pnpm *', text: 'shell(pnpm *)' };
const ASK = { effect: 'ask', tool: 'write', pattern: 'docs/*', text: 'write(docs/*)' };
const DENY = { effect: 'deny', tool: 'shell', pattern: 'rm *', text: 'shell(rm *)' };

const EVERYTHING_SET = {
  ...NOTHING_SET,
  model: 'local/qwen',
  providers: new Map([
    ['local', { api: 'openai-chat', baseUrl: 'http://127.0.0.1:8080/v1', keyEnv: undefined }],
    ['deepseek', { api: 'openai-chat', baseUrl: 'https://api.deepseek.example/v1', keyEnv: 'DEEPSEEK_API_KEY' }],
  ]),
  prices: new Map([
    ['local/qwen', { input: 0.1, output: 0.2, cacheRead: 0.1, cacheWrite: 0.1 }],
    ['deepseek/chat', { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.5 }],
  ]),
  charsPerToken: 3.5,
  contextTokens: 32_000,
  textCallRetries: 3,
  steps: 50,
  workers: 4,
  gates: ['pnpm test'],
  setup: ['make'],
  ignore: ['dist'],
  rules: [ALLOW, ASK, DENY],
  bell: false,
  timeouts: { headers: 30_000, firstByte: 60_000, silence: 90_000, progress: 3_600_000 },
  sandbox: 'required',
  net: [{ text: 'packages.example.com', rule: { host: 'packages.example.com', subdomains: false } }],
  writable: ['/var/cache/builds'],
  mcp: new Map([['memory', { entry: { command: 'mcp-server-memory', timeout: 5_000 }, place: expect.any(String) }]]),
};

test('without any config nothing is set', async () => {
  const { env: _, ...settings } = await settingsIn({});
  expect(settings).toEqual(NOTHING_SET);
});

test.each(['', '# nothing but a comment\n', '---\n'])('an empty config (%j) sets nothing', async (user) => {
  const { env: _, ...settings } = await settingsIn({ user });
  expect(settings).toEqual(NOTHING_SET);
});

test("the user's config may set everything", async () => {
  const { env: _, ...settings } = await settingsIn({ user: EVERYTHING });
  expect(settings).toEqual(EVERYTHING_SET);
});

test('a project config may only tighten or wish; other keys are named and ignored', async () => {
  const { env: _, ...settings } = await settingsIn({ project: EVERYTHING });
  expect(settings).toEqual({
    ...NOTHING_SET,
    steps: 50,
    workers: 4,
    ignore: ['dist'],
    rules: [ASK, DENY],
    sandbox: 'required',
    warnings: [
      '.drover/config.yaml may not set model, providers, prices, contextTokens, charsPerToken, textCallRetries, setup, net, writable, allow, mcp, bell, timeouts, so it is ignored; if you want it, move it to <root>/.config/drover/config.yaml, or approve the file as it is: drover trust',
      ".drover/config.yaml names a gate, which is not run unless you ask for it: --gate 'pnpm test'",
    ],
  });
});

test('an approved project config may set everything', async () => {
  const sha256 = createHash('sha256').update(EVERYTHING).digest('hex');
  const { env: _, ...settings } = await settingsIn({
    project: EVERYTHING,
    approved: JSON.stringify({
      approvals: [{ repository: '<root>/repository', config: '.drover/config.yaml', sha256 }],
    }),
  });
  expect(settings).toEqual(EVERYTHING_SET);
});

test.each(['{"0000": "another content"}', 'not json', '[]', '{"approvals": 1}', '{"approvals": [1, {}]}'])(
  'an approval of other content (%s) approves nothing',
  async (approved) => {
    const settings = await settingsIn({ project: 'model: a/b', approved });
    expect([settings.model, settings.warnings.length]).toEqual([undefined, 1]);
  },
);

proves('sandbox.kept', 'a project may require a sandbox, but never switch it off, even if approved', async () => {
  const approvedOff = await world({ project: 'sandbox: off' });
  await drover(['trust', '--yes'], { cwd: approvedOff.cwd, env: approvedOff.env });
  const { io } = new FakeIo({ cwd: approvedOff.cwd, env: approvedOff.env });
  const off = await loadSettings(io, approvedOff.cwd);
  expect([off.sandbox, off.warnings]).toEqual([
    undefined,
    ['.drover/config.yaml sets sandbox: off, which is ignored: a project may only require a sandbox'],
  ]);
  expect((await settingsIn({ user: 'sandbox: auto', project: 'sandbox: required' })).sandbox).toBe('required');
  expect((await settingsIn({ user: 'sandbox: off', project: 'sandbox: required' })).sandbox).toBe('off');
  expect((await settingsIn({ user: 'sandbox: required', project: 'sandbox: auto' })).sandbox).toBe('required');
});

test('the user’s config wins over the project’s, except for a lower step limit', async () => {
  const user = 'turns: 20\nworkers: 2\ndeny: ["shell(a)"]';
  const { steps, workers, rules } = await settingsIn({ user, project: 'turns: 99\nworkers: 9\ndeny: ["shell(b)"]' });
  expect([steps, workers, rules.map(({ text }) => text)]).toEqual([20, 2, ['shell(a)', 'shell(b)']]);
});

test.each([
  ['turns: 20', 'steps: 7', 7],
  ['steps: 20', 'turns: 6', 6],
  ['steps: 20\nturns: 9', '', 9],
])('of steps and its former name turns the lower one holds (%j, %j)', async (user, project, steps) => {
  expect(await settingsIn({ user, project })).toMatchObject({ steps, warnings: [] });
});

test("a project's config is found from a folder inside the project", async () => {
  expect((await settingsIn({ project: 'turns: 5' }, 'src/deep')).steps).toBe(5);
});

test('.drover in the user’s home is not a project’s', async () => {
  const home = await temporaryFolder();
  await mkdir(join(home, '.drover'));
  await writeFile(join(home, '.drover/config.yaml'), 'turns: 5');
  expect((await loadSettings(new FakeIo({ cwd: home }).io, home)).steps).toBe(undefined);
});

test('XDG_CONFIG_HOME, DROVER_HOME and DROVER_CHARS_PER_TOKEN take effect', async () => {
  const { root, cwd, env } = await world({ user: 'charsPerToken: 3' });
  await mkdir(join(root, 'xdg/drover'), { recursive: true });
  await writeFile(join(root, 'xdg/drover/config.yaml'), 'turns: 7\ncharsPerToken: 5');
  const folders = { XDG_CONFIG_HOME: join(root, 'xdg'), DROVER_HOME: join(root, 'state') };
  const given = { ...env, ...folders, DROVER_CHARS_PER_TOKEN: '2.5' };
  const { home, steps, charsPerToken } = await loadSettings(new FakeIo({ cwd, env: given }).io, cwd);
  expect({ home, steps, charsPerToken }).toEqual({ home: join(root, 'state'), steps: 7, charsPerToken: 2.5 });
});

test.each<[string, string, string]>([
  ['an unknown key', 'modle: a/b', "1:1: unknown key 'modle'; did you mean model?"],
  [
    'an unknown key far from any',
    'turns: 3\ncolour: red',
    "2:1: unknown key 'colour'; known are model, models, providers, prices, contextTokens, charsPerToken, workers, threads, author, steps, turns, textCallRetries, gates, setup, ignore, sandbox, net, writable, allow, ask, deny, mcp, bell, hooks, timeouts",
  ],
  [
    'an unknown key inside',
    'providers:\n  x:\n    api: openai\n    baseUrl: http://x\n    keyenv: K',
    "5:5: unknown key 'keyenv'; did you mean keyEnv?",
  ],
  ['a wrong type', 'turns: many', "1:8: turns must be a whole number from 1 to 10000 (got 'many')"],
  ['a number out of bounds', 'charsPerToken: 33', '1:16: charsPerToken must be a number from 1 to 32 (got 33)'],
  ['a list that is none', 'gates: pnpm test', "1:8: gates must be a list (got 'pnpm test')"],
  ['text that is none', 'gates: [3]', '1:9: gates[0] must be text (got 3)'],
  ['a key without a value', 'model:', '1:1: model has no value; give it one or remove it'],
  ['a key given twice', 'turns: 3\nturns: 4', '2:1: Map keys must be unique'],
  ['a config that is a list', '- a', '1:1: the config must be a map of keys (got a list)'],
  [
    'an api there is not',
    'providers: {x: {api: opnai, baseUrl: "http://x"}}',
    "1:22: providers.x.api must be one of anthropic, openai, openai-chat (got 'opnai'); did you mean openai?",
  ],
  [
    'an address that is none',
    'providers: {x: {api: openai, baseUrl: "ftp://x"}}',
    "1:39: 'ftp://x' is not an http or https address",
  ],
  [
    'half a price',
    'prices: {a/b: {input: 1}}',
    '1:15: prices.a/b.output is missing; it must be US dollars per million tokens from 0 to 1000000',
  ],
  [
    'a duration that is none',
    'timeouts: {silence: long}',
    "1:21: 'long' is not a duration; write it like 500ms, 90s, 30m or 1h30m",
  ],
  [
    'a rule that is none',
    'deny: [read, "shell(rm"]',
    '1:14: "shell(rm" is no rule: the ")" is missing that closes "(", expected at position 9; a right one is shell(pnpm test*), write(src/**), read or *',
  ],
  [
    'a pattern that brings files back',
    'ignore: ["!dist"]',
    "1:10: '!dist' begins with !; a pattern here only says what to leave out",
  ],
  ['a pattern that is none', 'ignore: ["a[b"]', "1:10: 'a[b' has an [ without its ]"],
  ['an alias', 'gates: &a [x]\nignore: *a', '2:9: the alias *a is not read; write the value itself'],
  ['broken YAML', 'model: "a', '1:10: Missing closing "quote'],
])('%s is reported with file, line and column', async (_, user, sentence) => {
  expect(await complaint({ user })).toBe(`drover: <root>/.config/drover/config.yaml:${sentence}\n`);
});

test('all mistakes of a file are reported at once', async () => {
  expect(await complaint({ project: 'modle: x\nturns: 0\n' })).toBe(
    "drover: <root>/repository/.drover/config.yaml:1:1: unknown key 'modle'; did you mean model?\n" +
      '<root>/repository/.drover/config.yaml:2:8: turns must be a whole number from 1 to 10000 (got 0)\n',
  );
});

test.each<[Record<string, string>, string]>([
  [
    { ANTHROPIC_BASE_URL: 'not an address' },
    "ANTHROPIC_BASE_URL is 'not an address', which is not an http or https address; mend or unset it",
  ],
  [
    { OPENAI_BASE_URL: 'file:///etc' },
    "OPENAI_BASE_URL is 'file:///etc', which is not an http or https address; mend or unset it",
  ],
  [{ DROVER_CHARS_PER_TOKEN: '0' }, "DROVER_CHARS_PER_TOKEN is '0'; it must be a number from 1 to 32"],
  [{ DROVER_CHARS_PER_TOKEN: '1e1' }, "DROVER_CHARS_PER_TOKEN is '1e1'; it must be a number from 1 to 32"],
  [
    { DROVER_TEXT_TOOL_CALL_RETRY_LIMIT: '-1' },
    "DROVER_TEXT_TOOL_CALL_RETRY_LIMIT is '-1'; it must be a whole number from 0 to 10",
  ],
  [{ ANTHROPIC_API_KEY: 'two\nlines' }, 'ANTHROPIC_API_KEY holds characters no key has; set it again'],
  [{ ANTHROPIC_API_KEY: ' ' }, 'anthropic needs a key: set ANTHROPIC_API_KEY (drover demo works without one)'],
])('an unusable variable (%j) is named', async (env, sentence) => {
  expect(await complaint({ env })).toBe(`drover: ${sentence}\n`);
});

// ── the model ─────────────────────────────────────────────────────────────────────────────────

test('without a model the error says what to set, and that the demo needs none', async () => {
  const withoutKey = await drover(['exec', 'go']);
  expect(withoutKey).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'drover: no model is chosen. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or pass --model PROVIDER/NAME, or set "model" in your config. (drover doctor says what is missing; drover demo needs neither.)\n',
  });
});
test.each<[string, string]>([
  [
    'openia/gpt',
    "there is no provider 'openia'; known are anthropic, openai, openai-chat, local, rehearsal, rehearsal-openai, rehearsal-openai-chat; did you mean openai?",
  ],
  ['local', '--model local is not of the form provider/name; write for example --model anthropic/claude-sonnet-4-5'],
  ['openai/gpt-5', 'openai needs a key: set OPENAI_API_KEY (drover demo works without one)'],
  ['local/x', 'local needs a key: set LOCAL_KEY, which your config names for it'],
])('--model %s is an error with the fix', async (model, sentence) => {
  const { cwd, env } = await world({
    user: 'providers: {local: {api: openai, baseUrl: "http://x", keyEnv: LOCAL_KEY}}',
  });
  const ran = await drover(['exec', 'go', '--model', model], { cwd, env });
  expect(ran).toEqual({ code: 2, stdout: '', stderr: `drover: ${sentence}\n` });
});

test('the settings hold the key and address of the model', async () => {
  const env = { ANTHROPIC_API_KEY: ' a-key\n', ANTHROPIC_BASE_URL: 'http://127.0.0.1:1', LOCAL_KEY: 'b-key' };
  const user =
    'model: local/org/name\nproviders: {local: {api: openai-chat, baseUrl: "http://x/v1", keyEnv: LOCAL_KEY}, free: {api: openai-chat, baseUrl: "http://y"}}';
  const settings = await settingsIn({ user, env });
  const base = { kind: 'served' } as const;
  expect(chooseModel('anthropic/any', settings, '/here')).toEqual({
    ...base,
    label: 'anthropic/any',
    provider: 'anthropic',
    name: 'any',
    api: 'anthropic',
    apiKey: 'a-key',
    baseUrl: 'http://127.0.0.1:1',
  });
  expect(chooseModel(undefined, settings, '/here')).toEqual({
    ...base,
    label: 'local/org/name',
    provider: 'local',
    name: 'org/name',
    api: 'openai-chat',
    apiKey: 'b-key',
    baseUrl: 'http://x/v1',
  });
  expect(chooseModel('free/m', settings, '/here')).toEqual({
    ...base,
    label: 'free/m',
    provider: 'free',
    name: 'm',
    api: 'openai-chat',
    apiKey: 'none',
    baseUrl: 'http://y',
  });
  expect(chooseModel('rehearsal-openai/a/b.yaml', settings, '/here')).toEqual({
    kind: 'rehearsed',
    label: 'rehearsal-openai/a/b.yaml',
    provider: 'rehearsal-openai',
    api: 'openai',
    name: 'a/b.yaml',
    script: '/here/a/b.yaml',
  });
  expect(() => chooseModel('openai/x', settings, '/here')).toThrow(UsageError);
});
