// drover trust: a project's config may set everything once the user approved this content in this folder.

import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { main } from '../../../bin/drover.ts';
import { loadSettings } from '../../../bin/start/settings.ts';
import { drover, FakeIo, type Given, type Ran, temporaryFolder } from '../fake-io.ts';

const CONFIG = "model: anthropic/theirs\nallow: ['shell(make*)']\n";

class Project {
  readonly cwd: string;
  readonly home: string;

  constructor(cwd: string, home = join(cwd, 'home')) {
    this.cwd = cwd;
    this.home = home;
  }

  static async with(config = CONFIG, at?: { readonly cwd: string; readonly home: string }): Promise<Project> {
    const project = at === undefined ? new Project(await temporaryFolder()) : new Project(at.cwd, at.home);
    await mkdir(join(project.cwd, '.git'), { recursive: true });
    await mkdir(join(project.cwd, '.drover'));
    await project.write(config);
    return project;
  }

  get path(): string {
    return join(this.cwd, '.drover', 'config.yaml');
  }

  write(config: string): Promise<void> {
    return writeFile(this.path, config);
  }

  given(given: Given = {}): Given & { readonly cwd: string } {
    return { ...given, cwd: given.cwd ?? this.cwd, env: { DROVER_HOME: this.home, ...given.env } };
  }

  drover(argv: readonly string[], given?: Given): Promise<Ran> {
    return drover(argv, this.given(given));
  }

  /** The model that the project's config sets, and the number of warnings. */
  async heard(cwd = this.cwd): Promise<readonly [string | undefined, number]> {
    const { model, warnings } = await this.settings(cwd);
    return [model, warnings.length];
  }

  settings(cwd = this.cwd) {
    return loadSettings(new FakeIo(this.given()).io, cwd);
  }
}

const APPROVED: readonly [string, number] = ['anthropic/theirs', 0];
const IGNORED: readonly [undefined, number] = [undefined, 1];

test('trust shows the config and asks; yes approves it until a byte changes', async () => {
  const project = await Project.with();
  expect(await project.heard()).toEqual(IGNORED);
  const { code, stdout } = await project.drover(['trust'], { typed: ['y'] });
  expect([code, stdout]).toEqual([
    0,
    `.drover/config.yaml (config)\n  | model: anthropic/theirs\n  | allow: ['shell(make*)']\nApproved. If the file changes or moves, approve it again.\n`,
  ]);
  expect(await project.heard()).toEqual(APPROVED);
  expect((await stat(join(project.home, 'approved.json'))).mode & 0o777).toBe(0o600);
  await project.write(`${CONFIG}# changed\n`);
  expect(await project.heard()).toEqual(IGNORED);
});

test('answering no approves nothing', async () => {
  const project = await Project.with();
  const { code, stdout } = await project.drover(['trust'], { typed: ['n'] });
  expect([code, stdout.endsWith('\nNothing was approved.\n')]).toEqual([0, true]);
  expect(await project.heard()).toEqual(IGNORED);
});

test('--yes approves without a terminal; --revoke removes every approval', async () => {
  const project = await Project.with();
  const refused = await project.drover(['trust']);
  expect([refused.code, refused.stderr]).toEqual([2, 'drover: there is no terminal to ask on; approve with --yes\n']);
  await project.drover(['trust', '--yes']);
  await project.write('workers: 3\n');
  await project.drover(['trust', '--yes']);
  expect((await project.drover(['trust'])).stdout).toBe('.drover/config.yaml is already approved.\n');
  const { stdout } = await project.drover(['trust', '--revoke']);
  expect(stdout).toBe('<cwd> is no longer approved.\n');
  const left = JSON.parse(await readFile(join(project.home, 'approved.json'), 'utf8')) as object;
  expect(left).toEqual({ approvals: [] });
  await project.write(CONFIG);
  expect(await project.heard()).toEqual(IGNORED);
});

test('an approval that the first version stored still counts', async () => {
  const project = await Project.with();
  const sha256 = createHash('sha256').update(CONFIG).digest('hex');
  await mkdir(project.home);
  const entry = { repository: project.cwd, config: '.drover/config.yaml', sha256 };
  await writeFile(join(project.home, 'approved.json'), JSON.stringify({ approvals: [entry] }));
  expect(await project.heard()).toEqual(APPROVED);
});

test('the same content in another repository is not approved, with the reason', async () => {
  const project = await Project.with();
  await project.drover(['trust', '--yes']);
  const other = await Project.with(CONFIG, { cwd: join(await temporaryFolder(), 'other'), home: project.home });
  const { model, warnings } = await other.settings();
  const why = 'it is approved in another folder, which does not count here';
  expect([model, warnings[0]]).toEqual([
    undefined,
    `.drover/config.yaml is not approved: ${why}; look at it again with: drover trust`,
  ]);
  expect((await other.drover(['trust', '--yes'])).stdout).toContain(`\nApprove it again: ${why}.\n`);
  expect([await other.heard(), await project.heard()]).toEqual([APPROVED, APPROVED]);
});

test('a moved repository needs a new approval', async () => {
  const folder = await temporaryFolder();
  const home = join(folder, 'home');
  const project = await Project.with(CONFIG, { cwd: join(folder, 'before'), home });
  await project.drover(['trust', '--yes']);
  await rename(project.cwd, join(folder, 'after'));
  const moved = new Project(join(folder, 'after'), home);
  expect((await moved.heard())[0]).toBe(undefined);
  await rename(moved.cwd, project.cwd);
  expect(await project.heard()).toEqual(APPROVED);
});

test('links to an approved repository, and folders in it, are approved with it', async () => {
  const folder = await temporaryFolder();
  const project = await Project.with(CONFIG, { cwd: join(folder, 'real'), home: join(folder, 'home') });
  await mkdir(join(project.cwd, 'src'));
  await symlink(project.cwd, join(folder, 'link'));
  await project.drover(['trust', '--yes', '--cwd', join(folder, 'link', 'src')]);
  expect(await Promise.all([project.heard(), project.heard(join(folder, 'link'))])).toEqual([APPROVED, APPROVED]);
});

test('a config in a folder of the repository is approved for that folder only', async () => {
  const project = await Project.with();
  await project.drover(['trust', '--yes']);
  const inner = join(project.cwd, 'inner');
  await mkdir(join(inner, '.drover'), { recursive: true });
  await writeFile(join(inner, '.drover', 'config.yaml'), CONFIG);
  expect((await project.heard(inner))[0]).toBe(undefined);
});

test('an approval of an older drover does not count, and the user is told why', async () => {
  const project = await Project.with();
  const sha256 = createHash('sha256').update(CONFIG).digest('hex');
  await mkdir(project.home);
  await writeFile(join(project.home, 'approved.json'), JSON.stringify({ [sha256]: project.path }));
  const { model, warnings } = await project.settings();
  const why = 'an older drover approved it without binding it to a folder, which does not count any more';
  expect([model, warnings[0]]).toEqual([
    undefined,
    `.drover/config.yaml is not approved: ${why}; look at it again with: drover trust`,
  ]);
  expect((await project.drover(['trust', '--yes'])).stdout).toContain(`\nApprove it again: ${why}.\n`);
  expect(await project.heard()).toEqual(APPROVED);
});

test('a config that changes during the question is not approved', async () => {
  const project = await Project.with();
  const fake = new FakeIo(project.given({ typed: ['y'] }));
  fake.io.stderr.on('data', () => writeFileSync(project.path, `${CONFIG}turns: 3\n`));
  expect(await main(['trust'], fake.io)).toBe(0);
  expect(await project.heard()).toEqual(IGNORED);
  await project.write(CONFIG);
  expect(await project.heard()).toEqual(APPROVED);
});

test.each([
  ['an escape sequence', '\u001B', 'U+001B'],
  ['a carriage return', '\rallow', 'U+000D'],
  ['DEL', '\u007F', 'U+007F'],
  ['C1', '\u009B', 'U+009B'],
  ['a bidi override', '\u202E', 'U+202E'],
  ['a bidi isolate', '\u2066', 'U+2066'],
  ['a direction mark', '\u200F', 'U+200F'],
  ['a zero-width space', '\u200B', 'U+200B'],
  ['a joiner', '\u2060', 'U+2060'],
  ['a tag', '\u{E0041}', 'U+E0041'],
])('%s in a config is an error with its place, on loading and in trust', async (_, char, name) => {
  const project = await Project.with(`workers: 2\nmodel: a/b # ${char}hidden\n`);
  const message = `.drover/config.yaml:2:14: the invisible character ${name} may not stand in a config; remove it`;
  await expect(project.settings()).rejects.toThrow(message);
  for (const argv of [
    ['trust', '--yes'],
    ['exec', 'x'],
  ]) {
    const { code, stdout, stderr } = await project.drover(argv);
    expect([code, stdout, stderr]).toEqual([2, '', `drover: <cwd>/${message}\n`]);
  }
});

test('tabs and Windows line ends are accepted', async () => {
  const project = await Project.with('workers: 2 #\ttwo\r\nmodel: a/b\r\n');
  expect((await project.drover(['trust', '--yes'])).code).toBe(0);
  expect((await project.heard())[0]).toBe('a/b');
});

test('trust hides values of secrets and says so, and shows lookalikes', async () => {
  const value = 'correct-horse-battery-staple-42';
  const key = `-----BEGIN ${'PRIVATE'} KEY-----\n# ${'A1b2C3d4'.repeat(8)}`;
  const project = await Project.with(`gates: ["echo ${value}"]\n# ${key}\nsetup: [evil]\n`);
  const { stdout } = await project.drover(['trust', '--yes'], { env: { MY_API_KEY: value, CI: '1' } });
  expect(stdout).not.toContain(value);
  expect(stdout).toContain('  | gates: ["echo [redacted:value]"]\n');
  expect(stdout).toContain('  | setup: [evil]\nValues of your secrets are not shown.\n');
});

test('trust without a project config has nothing to approve', async () => {
  const { code, stderr } = await drover(['trust'], { cwd: await temporaryFolder() });
  expect([code, stderr]).toEqual([2, expect.stringContaining('no file of a project here needs an approval')]);
});
