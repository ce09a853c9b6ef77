// drover init: drover reads what it writes, and existing files are not overwritten.

import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parseConfigFile } from '../../../bin/files/config-file.ts';
import { drover, FakeIo, type Given, type Ran, temporaryFolder } from '../fake-io.ts';
import { loadSettings } from '../../../bin/start/settings.ts';

const ALL_KEYS = [
  'model',
  'models',
  'providers',
  'prices',
  'contextTokens',
  'charsPerToken',
  'workers',
  'threads',
  'author',
  'steps',
  'textCallRetries',
  'gates',
  'setup',
  'ignore',
  'sandbox',
  'net',
  'writable',
  'allow',
  'ask',
  'deny',
  'mcp',
  'bell',
  'hooks',
  'timeouts',
];

type World = {
  readonly cwd: string;
  readonly given: Given;
  readonly init: (...args: string[]) => Promise<Ran>;
  readonly text: (path: string) => Promise<string>;
};

/** A repository with these files, and a home of its own. */
async function project(files: Readonly<Record<string, string>>, isRepository = true): Promise<World> {
  const home = await temporaryFolder();
  const cwd = join(home, 'project');
  await mkdir(cwd);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true });
    await writeFile(join(cwd, path), text);
  }
  const git = (...args: string[]) =>
    promisify(execFile)('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd });
  if (isRepository) {
    await git('init', '-q', '-b', 'main');
    await git('add', '.');
    await git('commit', '-q', '--allow-empty', '-m', 'begin');
  }
  const given = { cwd, env: { HOME: home } };
  return {
    cwd,
    given,
    init: (...args) => drover(['init', ...args], given),
    text: (path) => readFile(join(home, path), 'utf8'),
  };
}

/** The config with every commented setting enabled and the prose kept as comments. */
const uncommented = (text: string): string => text.replaceAll(/^#(?! \S|$)/gm, '');

test('init prints what it wrote and the next step; again, that all is there', async () => {
  const { init, cwd } = await project({ 'src/a.js': 'export const a = 1;\n' });
  expect(await init()).toEqual({
    code: 0,
    stderr: '',
    stdout: [
      'Written',
      '  .drover/config.yaml',
      '    settings of the project',
      '  .drover/batch.yaml',
      '    an example of a batch',
      '  .drover/.gitignore',
      '    keeps outputs of batches out of git',
      '',
      'Next',
      '  drover doctor',
      '    check that everything drover needs is there',
      '  drover batch .drover/batch.yaml --list',
      '    see which tasks the example would make',
      '',
    ].join('\n'),
  });
  const before = await Promise.all(
    ['config.yaml', 'batch.yaml', '.gitignore'].map((name) => readFile(join(cwd, '.drover', name), 'utf8')),
  );
  await writeFile(join(cwd, '.drover/config.yaml'), 'turns: 7\n');
  const again = await init();
  expect([again.code, again.stdout.split('\n').slice(0, 5)]).toEqual([
    0,
    [
      'Unchanged, because it exists already',
      '  .drover/config.yaml',
      '    remove it to get a new one',
      '  .drover/batch.yaml',
      '    remove it to get a new one',
    ],
  ]);
  expect(await readFile(join(cwd, '.drover/config.yaml'), 'utf8')).toBe('turns: 7\n');
  expect(await readFile(join(cwd, '.drover/batch.yaml'), 'utf8')).toBe(before[1]);
});

test('the project config sets nothing, lists every project key, and is valid', async () => {
  const { init, cwd, given, text } = await project({});
  await init();
  const written = await text('project/.drover/config.yaml');
  expect(parseConfigFile(written, 'config.yaml').config).toEqual({});
  expect(Object.keys(parseConfigFile(uncommented(written), 'config.yaml').config)).toEqual([
    'workers',
    'steps',
    'gates',
    'ignore',
    'sandbox',
    'ask',
    'deny',
  ]);
  await writeFile(join(cwd, '.drover/config.yaml'), uncommented(written));
  const { warnings } = await loadSettings(new FakeIo({ ...given, cwd }).io, cwd);
  expect(warnings).toEqual([
    ".drover/config.yaml names a gate, which is not run unless you ask for it: --gate 'make test'",
  ]);
});

test('the user config describes every key and sets none', async () => {
  const { init, text } = await project({});
  const { code, stdout } = await init('--user');
  const written = await text('.config/drover/config.yaml');
  expect([code, parseConfigFile(written, 'config.yaml').config]).toEqual([0, {}]);
  expect(Object.keys(parseConfigFile(uncommented(written), 'config.yaml').config)).toEqual(ALL_KEYS);
  expect(stdout).toContain('.config/drover/config.yaml');
});

test.each<[string, Readonly<Record<string, string>>, string, string]>([
  [
    'pnpm',
    { 'package.json': '{"scripts": {"test": "vitest", "lint": "x"}}', 'pnpm-lock.yaml': '', 'a.js': '' },
    "['pnpm test', 'pnpm run lint']",
    'a.js',
  ],
  [
    'npm init',
    { 'package.json': '{"scripts": {"test": "echo no test specified"}}', 'b.js': '' },
    "['make test']",
    'b.js',
  ],
  ['TypeScript', { 'package.json': '{broken', 'tsconfig.json': '{}', 'b.ts': '', 'c.js': '' }, "['make test']", 'b.ts'],
  ['Rust', { 'Cargo.toml': '', 'src/lib.rs': '' }, "['cargo test']", 'src/lib.rs'],
  ['Go', { 'go.mod': '', 'a.go': '' }, "['go test ./...']", 'a.go'],
  [
    'Python and make',
    { 'pyproject.toml': '', Makefile: 'x := 1\ntest: x\n', 'a.py': '' },
    "['python -m pytest', 'make test']",
    'a.py',
  ],
  ['nothing known', { 'README.md': '' }, "['make test']", 'README.md'],
])('%s: init proposes gates, and the example batch selects its files', async (_, files, gates, selected) => {
  const { init, given, text } = await project(files);
  await init();
  const line = (await text('project/.drover/config.yaml')).split('\n').find((each) => each.startsWith('#gates'));
  const { code, stdout, stderr } = await drover(['batch', '.drover/batch.yaml', '--list', '--json'], given);
  const rows = stdout
    .trim()
    .split('\n')
    .map((row) => (JSON.parse(row) as { readonly files: string[] }).files);
  expect([line, code, stderr, rows]).toEqual([`#gates: ${gates}`, 0, '', [[selected]]]);
});

test('init in a subfolder writes at the top and ignores the outputs of batches', async () => {
  const { cwd, given } = await project({ 'deep/down/a.js': '', 'package.json': '{}' });
  const { stdout } = await drover(['init'], { ...given, cwd: join(cwd, 'deep/down') });
  expect(stdout).toContain('  drover batch ../../.drover/batch.yaml --list\n');
  await mkdir(join(cwd, '.drover/out'));
  await writeFile(join(cwd, '.drover/out/report.md'), '');
  const status = await promisify(execFile)('git', ['status', '--short', '-uall'], { cwd });
  expect(status.stdout).toBe('?? .drover/.gitignore\n?? .drover/batch.yaml\n?? .drover/config.yaml\n');
});

test('init without a repository says that one is needed', async () => {
  const { init } = await project({}, false);
  expect((await init()).stdout).toContain('Next\n  git init\n');
});

test('init does not write through a link, and refuses drover’s own folder', async () => {
  const { init, cwd, given } = await project({});
  await mkdir(join(cwd, '.drover'));
  await symlink(join(cwd, 'elsewhere'), join(cwd, '.drover/config.yaml'));
  expect((await init()).code).toBe(0);
  expect(await readdir(cwd)).not.toContain('elsewhere');
  const home = dirname(cwd);
  expect(await drover(['init'], { ...given, cwd: home })).toEqual({
    code: 2,
    stdout: '',
    stderr: 'drover: <cwd>/.drover is where drover keeps its state; go to a project, or say drover init --user\n',
  });
});
