// Programs are found as the system finds them, and the result is cached while it exists.

import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import {
  distrustProgramFolders,
  findProgramOn,
  environmentOfTrustedPrograms,
  pathOfTrustedPrograms,
} from '@drover/core/tools/process/program';
import { startProcess } from '@drover/core/tools/process/start';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/workspace.ts';

function program(file: string, says: string): string {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\necho ${says}\n`);
  chmodSync(file, 0o755);
  return file;
}

test('the first executable on PATH is found, and no folder or relative entry', async () => {
  const folder = await temporaryFolder();
  const on = ['.', '', 'here', join(folder, 'none'), ...['a', 'b', 'c', 'd'].map((name) => join(folder, name))].join(
    ':',
  );
  mkdirSync(join(folder, 'a', 'tool'), { recursive: true });
  chmodSync(program(join(folder, 'b', 'tool'), 'b'), 0o644);
  program(join(folder, 'd', 'tool'), 'd');
  expect(findProgramOn(on, 'tool')).toBe(join(folder, 'd', 'tool'));
  expect(findProgramOn(on, 'another')).toBeUndefined();

  // A program added later to an earlier folder is not noticed; a removed one is.
  program(join(folder, 'c', 'tool'), 'c');
  expect(findProgramOn(on, 'tool')).toBe(join(folder, 'd', 'tool'));
  rmSync(join(folder, 'd', 'tool'));
  expect(findProgramOn(on, 'tool')).toBe(join(folder, 'c', 'tool'));
});

test('a program that was found keeps the name it was asked for', async () => {
  const env = { PATH: process.env['PATH'] ?? '' };
  const spec = { file: 'bash', args: ['-c', 'echo $0; no-such-command'], cwd: '/', env, detached: false };
  const { stdout, stderr } = await startProcess(spec);
  // Both streams are read at once: Node drops output that is unread when the process ends.
  expect(await Promise.all([text(stdout), text(stderr)])).toEqual([
    'bash\n',
    'bash: line 1: no-such-command: command not found\n',
  ]);
});

test('a program in a folder that commands may write to is not found, even by link', async () => {
  const folder = await temporaryFolder();
  const [project, bin, link] = [join(folder, 'project'), join(folder, 'project', 'bin'), join(folder, 'link')];
  program(join(bin, 'tool'), 'planted');
  program(join(folder, 'own', 'tool'), 'own');
  symlinkSync(bin, link);
  const on = [bin, link, '.', join(folder, 'own')].join(':');
  expect(findProgramOn(on, 'tool')).toBe(join(bin, 'tool'));
  distrustProgramFolders([project]);
  expect([findProgramOn(on, 'tool'), pathOfTrustedPrograms(on)]).toEqual([
    join(folder, 'own', 'tool'),
    join(folder, 'own'),
  ]);
});

test('no variable leads a process outside to a folder that commands may write', async () => {
  const folder = await temporaryFolder();
  const [project, own] = [join(folder, 'project'), join(folder, 'own')];
  mkdirSync(project);
  mkdirSync(own);
  distrustProgramFolders([project]);
  const env = {
    PATH: `${project}:${own}`,
    LD_LIBRARY_PATH: `:${project}/lib:lib:${own}`,
    XDG_CONFIG_HOME: join(project, '.config'),
    GIT_CONFIG_GLOBAL: join(project, 'gitconfig'),
    LANG: 'C',
  };
  expect(environmentOfTrustedPrograms(env)).toEqual({ PATH: own, LD_LIBRARY_PATH: own, LANG: 'C' });
  expect(environmentOfTrustedPrograms({ LD_LIBRARY_PATH: project })).toEqual({});

  const { stdout } = await startProcess({ file: '/usr/bin/env', args: [], cwd: project, env, detached: false });
  expect((await text(stdout)).trim().split('\n').toSorted()).toEqual([
    `LANG=C`,
    `LD_LIBRARY_PATH=${own}`,
    `PATH=${own}`,
  ]);
});

test.each([
  [{ LD_LIBRARY_PATH: '/opt/lib:' }, { LD_LIBRARY_PATH: '/opt/lib' }],
  [{ LD_LIBRARY_PATH: '::lib' }, {}],
  [{ PATH: '.:/bin:' }, { PATH: '/bin' }],
  [{ XDG_CONFIG_HOME: '.config' }, {}],
  [{ XDG_CONFIG_HOME: '/h/.config' }, { XDG_CONFIG_HOME: '/h/.config' }],
])('a process does not look into its current folder for code: %j', (env, passed) => {
  expect(childProcessEnvironment(env)).toEqual(passed);
});

test('a program that is only in a distrusted folder is refused, with the fix', async () => {
  const project = await temporaryFolder();
  program(join(project, 'bin', 'only-here'), 'here');
  distrustProgramFolders([project]);
  const env = { PATH: join(project, 'bin') };
  const spec = { file: 'only-here', args: [], cwd: '/', env, detached: false };
  const why = `only-here is only in ${join(project, 'bin')}, where commands of agents can write, so drover does not run it`;
  await expect(startProcess(spec)).rejects.toThrow(`${why} outside the sandbox; put another only-here on the PATH`);
  await expect(startProcess({ ...spec, file: 'nowhere' })).rejects.toThrow('ENOENT');
});
