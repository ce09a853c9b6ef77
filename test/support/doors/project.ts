// A fixture for the files that a project brings: a repository with them, the user's HOME, and drover's state.

import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Project } from '@drover/trust/project';
import { findTrustProject } from '../../../bin/trust/open-project.ts';
import { drover, FakeIo, type Given, type Ran, temporaryFolder } from '../../cli/fake-io.ts';

export class StrangeProject {
  readonly folder: string;
  readonly top: string;
  readonly user: string;
  readonly home: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.top = join(folder, 'project');
    this.user = join(folder, 'user');
    this.home = join(folder, 'state');
  }

  static async with(files: Readonly<Record<string, string>>): Promise<StrangeProject> {
    const project = new StrangeProject(await temporaryFolder());
    await mkdir(join(project.top, '.git'), { recursive: true });
    await mkdir(project.user);
    await project.write(files);
    return project;
  }

  async write(files: Readonly<Record<string, string>>, top = this.top): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(top, name)), { recursive: true });
      await writeFile(join(top, name), text);
    }
  }

  given(given: Given = {}): Given & { readonly cwd: string } {
    return {
      ...given,
      cwd: given.cwd ?? this.top,
      env: { HOME: this.user, DROVER_HOME: this.home, ...given.env },
    };
  }

  drover(argv: readonly string[], given?: Given): Promise<Ran> {
    return drover(argv, this.given(given));
  }

  find(trustsAll = false): Promise<Project> {
    return findTrustProject(new FakeIo(this.given()).io, this.top, { trustsAll });
  }

  /** The names of the files that count as approved. */
  async counting(trustsAll = false): Promise<readonly string[]> {
    const project = await this.find(trustsAll);
    const ignored = new Set(project.ignored.map(({ name }) => name));
    return project.files.map(({ name }) => name).filter((name) => !ignored.has(name));
  }
}
