// drover trust: a project's config may set what a project may not once a person has approved its very content.

import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadSettings } from '../../bin/settings.ts';
import { drover, FakeIo, type Given, type Ran, temporaryFolder } from './fake-io.ts';

const CONFIG = "model: anthropic/theirs\nallow: ['shell(make*)']\n";

class Project {
  readonly cwd: string;

  private constructor(cwd: string) {
    this.cwd = cwd;
  }

  static async with(config = CONFIG): Promise<Project> {
    const project = new Project(await temporaryFolder());
    await mkdir(join(project.cwd, '.git'));
    await mkdir(join(project.cwd, '.drover'));
    await project.write(config);
    return project;
  }

  write(config: string): Promise<void> {
    return writeFile(join(this.cwd, '.drover', 'config.yaml'), config);
  }

  #given(given: Given = {}): Given & { readonly cwd: string } {
    return { ...given, cwd: this.cwd, env: { DROVER_HOME: join(this.cwd, 'home') } };
  }

  drover(argv: readonly string[], given?: Given): Promise<Ran> {
    return drover(argv, this.#given(given));
  }

  /** The model that its config sets, and how many warnings there are. */
  async heard(): Promise<readonly [string | undefined, number]> {
    const { model, warnings } = await loadSettings(new FakeIo(this.#given()).io, this.cwd);
    return [model, warnings.length];
  }
}

test('what it says is shown and asked about; who says yes has approved it, until a byte of it is changed', async () => {
  const project = await Project.with();
  expect(await project.heard()).toEqual([undefined, 1]);
  const { code, stdout } = await project.drover(['trust'], { typed: ['y'] });
  expect([code, stdout]).toEqual([
    0,
    `<cwd>/.drover/config.yaml\n  | model: anthropic/theirs\n  | allow: ['shell(make*)']\nIt is approved as it is; a change of it has to be approved again.\n`,
  ]);
  expect(await project.heard()).toEqual(['anthropic/theirs', 0]);
  expect((await stat(join(project.cwd, 'home', 'approved.json'))).mode & 0o777).toBe(0o600);
  await project.write(`${CONFIG}# changed\n`);
  expect(await project.heard()).toEqual([undefined, 1]);
});

test('who says no has approved nothing', async () => {
  const project = await Project.with();
  const { code, stdout } = await project.drover(['trust'], { typed: ['n'] });
  expect([code, stdout.endsWith('\nNothing was approved.\n')]).toEqual([0, true]);
  expect(await project.heard()).toEqual([undefined, 1]);
});

test('where nobody can be asked, --yes approves it; --revoke takes it back, and what else was approved stays', async () => {
  const project = await Project.with();
  const refused = await project.drover(['trust']);
  expect([refused.code, refused.stderr]).toEqual([2, 'drover: nobody is here to approve it; say so with --yes\n']);
  await project.drover(['trust', '--yes']);
  await project.write('workers: 3\n');
  await project.drover(['trust', '--yes']);
  expect((await project.drover(['trust'])).stdout).toBe(
    '<cwd>/.drover/config.yaml is approved already, just as it is.\n',
  );
  await project.drover(['trust', '--revoke']);
  const left = JSON.parse(await readFile(join(project.cwd, 'home', 'approved.json'), 'utf8')) as object;
  expect(Object.values(left)).toEqual([join(project.cwd, '.drover', 'config.yaml')]);
  await project.write(CONFIG);
  expect(await project.heard()).toEqual(['anthropic/theirs', 0]);
});

test('escape sequences in it are seen, not obeyed', async () => {
  const project = await Project.with('model: a/b # \u001B[2K\u001B[1Ahidden\n');
  // eslint-disable-next-line no-control-regex
  expect((await project.drover(['trust', '--yes'])).stdout).not.toMatch(/\u001B/);
});

test('without a config of a project there is nothing to approve', async () => {
  const { code, stderr } = await drover(['trust'], { cwd: await temporaryFolder() });
  expect([code, stderr]).toEqual([2, expect.stringContaining('no project here has a .drover/config.yaml')]);
});
