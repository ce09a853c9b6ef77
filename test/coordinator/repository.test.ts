// The user's repository as a run finds it, and drover's errors for unusable ones.

import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkGitVersion, openRepository } from '@drover/coordinator/git/repository';
import { Slots } from '@drover/coordinator/slots/slots';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/workspace.ts';
import { everyByte, gitAs, userRepository } from './user-repository.ts';

test('a repository is described by folders, commit, branch and uncommitted files', async () => {
  const user = await userRepository();
  await user.write({ 'src/a.ts': 'changed', 'new folder/one': '1', 'new folder/two': '2', 'x.log': 'ignored' });
  user.git('rm', '--quiet', 'README.md');
  const gitDir = join(user.top, '.git');
  expect(await openRepository(join(user.top, 'src/deep'), user.env)).toEqual({
    top: user.top,
    gitDir,
    commonDir: gitDir,
    objects: join(gitDir, 'objects'),
    objectFormat: 'sha1',
    head: user.git('rev-parse', 'HEAD'),
    branch: 'main',
    notIncluded: ['README.md', 'src/a.ts', 'new folder/'],
    identity: { name: 'drover', email: 'drover@localhost' },
    filters: [],
  });
});

test('reading a repository changes nothing', async () => {
  const user = await userRepository();
  // Touched, so that git would rewrite its index.
  await user.write({ 'src/a.ts': 'export const a = 1;\n' });
  const before = everyByte(user.top);
  await user.open();
  expect(everyByte(user.top)).toEqual(before);
});

test('the user’s identity comes from the repository’s or the global config', async () => {
  const user = await userRepository();
  writeFileSync(join(user.folder, '.gitconfig'), '[user]\nname = All\nemail = all@example.com\n');
  expect((await user.open()).identity).toEqual({ name: 'All', email: 'all@example.com' });
  user.git('config', 'user.name', 'This "one"');
  expect((await user.open()).identity).toEqual({ name: 'This "one"', email: 'all@example.com' });
});

test('GIT_CONFIG_GLOBAL names the config with the user’s identity', async () => {
  const user = await userRepository();
  writeFileSync(join(user.folder, '.gitconfig'), '[user]\nname = Home\nemail = home@example.com\n');
  const own = join(user.folder, 'elsewhere');
  writeFileSync(own, '[user]\nname = Elsewhere\nemail = elsewhere@example.com\n');
  const { identity } = await openRepository(user.top, { ...user.env, GIT_CONFIG_GLOBAL: own });
  expect(identity).toEqual({ name: 'Elsewhere', email: 'elsewhere@example.com' });
});

test('globally ignored files do not count as uncommitted', async () => {
  const user = await userRepository();
  writeFileSync(join(user.folder, '.gitconfig'), '[core]\nexcludesFile = ~/ignored\n');
  writeFileSync(join(user.folder, 'ignored'), '.DS_Store\n');
  await user.write({ '.DS_Store': 'x', other: 'x' });
  expect((await user.open()).notIncluded).toEqual(['other']);
});

test('a detached HEAD has no branch, and a linked worktree is a full checkout', async () => {
  const user = await userRepository();
  user.git('worktree', 'add', '--quiet', '--detach', '../linked');
  const linked = await openRepository(join(user.folder, 'linked'), user.env);
  expect(linked.branch).toBeUndefined();
  expect([linked.top, linked.gitDir, linked.commonDir]).toEqual([
    join(user.folder, 'linked'),
    join(user.top, '.git/worktrees/linked'),
    join(user.top, '.git'),
  ]);
});

test('git variables of an enclosing hook are ignored', async () => {
  const user = await userRepository();
  const other = await userRepository({ other: 'x' });
  const env = { ...user.env, GIT_DIR: join(other.top, '.git'), GIT_WORK_TREE: other.top, GIT_INDEX_FILE: 'x' };
  expect((await openRepository(user.top, env)).top).toBe(user.top);
});

test('filters, hooks and monitors of the repository are not run', async () => {
  const user = await userRepository({ 'a.txt': 'text', '.gitattributes': '*.txt filter=odd=name\n' });
  const marker = join(user.folder, 'sprung');
  const trap = join(user.folder, 'trap');
  writeFileSync(trap, `#!/bin/sh\ntouch "${marker}"\ncat\n`);
  chmodSync(trap, 0o755);
  user.git('config', 'filter.odd=name.clean', trap);
  user.git('config', 'core.fsmonitor', trap);
  mkdirSync(join(user.top, '.git/hooks'));
  writeFileSync(join(user.top, '.git/hooks/post-index-change'), `#!/bin/sh\ntouch "${marker}"\n`);
  chmodSync(join(user.top, '.git/hooks/post-index-change'), 0o755);
  await user.write({ 'a.txt': 'texT' });
  const { filters, notIncluded } = await user.open();
  expect({ filters, notIncluded, sprung: existsSync(marker) }).toEqual({
    filters: ['odd=name'],
    notIncluded: ['a.txt'],
    sprung: false,
  });
  user.git('status');
  expect(existsSync(marker)).toBe(true);
});

test('a file name that holds the mode of a submodule is not a submodule', async () => {
  const user = await userRepository({ 'mode 160000 here': 'x' });
  expect((await user.open()).notIncluded).toEqual([]);
});

describe('drover explains the problem and the fix', () => {
  test('outside of a repository', async () => {
    const user = await userRepository();
    await expect(openRepository(user.folder, user.env)).rejects.toThrow(
      `${user.folder} is not in a git repository, and drover works on one: go to yours, or make one with git init and a first commit`,
    );
  });

  test('before the first commit', async () => {
    const user = await userRepository();
    user.git('checkout', '--quiet', '--orphan', 'empty');
    await expect(user.open()).rejects.toThrow(
      `empty in ${user.top} has no commit yet, and work has to start from one: git add what is there, then git commit; or check out a branch that has one`,
    );
  });

  test('in a bare repository, and inside a git folder', async () => {
    const user = await userRepository();
    const bare = join(user.folder, 'bare.git');
    gitAs(user.folder, user.env, ['clone', '--quiet', '--bare', user.top, bare]);
    await expect(openRepository(bare, user.env)).rejects.toThrow('is a bare repository');
    await expect(openRepository(join(user.top, '.git'), user.env)).rejects.toThrow('is inside a git folder');
  });

  test('in a submodule, and above one', async () => {
    const user = await userRepository();
    const inner = await userRepository({ inner: 'x' });
    user.git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner.top, 'sub');
    await expect(openRepository(join(user.top, 'sub'), user.env)).rejects.toThrow('is a submodule of');
    // The file is uncommitted, so no task would see it.
    expect((await user.open()).notIncluded).toEqual(['.gitmodules']);
    user.git('-c', 'user.name=U', '-c', 'user.email=u@x', 'commit', '--quiet', '--message=sub');
    await expect(user.open()).rejects.toThrow(`${user.top} contains submodules (sub), which drover can't copy`);
  });

  test('without git, and with an old one', async () => {
    const user = await userRepository();
    const folder = await temporaryFolder();
    const env = { ...user.env, PATH: folder };
    await expect(openRepository(user.top, env)).rejects.toThrow('git was not found');
    writeFileSync(join(folder, 'git'), '#!/bin/sh\necho git version 2.37.9\n');
    chmodSync(join(folder, 'git'), 0o755);
    await expect(openRepository(user.top, env)).rejects.toThrow(
      'this is git version 2.37.9, and drover needs 2.38 or newer: update git',
    );
  });

  test('in a missing folder, not in the absence of git', async () => {
    const user = await userRepository();
    const missing = join(user.top, 'missing');
    await expect(checkGitVersion(missing, user.env)).rejects.not.toThrow('git was not found');
  });

  test('for a home inside the repository', async () => {
    const user = await userRepository();
    const home = join(user.top, '.drover-home');
    await expect(Slots.open({ home, repository: await user.open(), run: 'run_1', env: user.env })).rejects.toThrow(
      'set DROVER_HOME to a folder outside',
    );
  });
});
