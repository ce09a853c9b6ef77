// A command in the user's own folder cannot plant programs that git runs later because the repository says so. Each
// test lets a command try, and then runs plain git as the user would.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unsealSandboxPaths } from '@drover/sandbox/seal';
import { expect, test } from 'vitest';
import { listGitRunLater } from '../../../bin/sandbox/git-run-later.ts';
import { sandboxProjectView } from '../../../bin/sandbox/project-view.ts';
import { runSync } from '../../support/process/run-sync.ts';
import { box, inSandbox, runInside, temporary } from '../../support/sandbox/box.ts';

const PERSON = ['-c', 'user.name=A Person', '-c', 'user.email=person@example.com'];

inSandbox('what git runs later', (system) => {
  /** A user's repository, and a canary file that a planted program would write. */
  function repository() {
    const { root } = box(system);
    const canary = join(temporary(), 'canary');
    const home = temporary();
    const env = { PATH: process.env['PATH'] ?? '', HOME: home };
    const git = (...args: readonly string[]) => runSync('git', [...PERSON, ...args], { cwd: root, env }).toString();
    git('init', '-q', '-b', 'main');
    writeFileSync(join(root, 'a.txt'), 'one\n');
    git('add', '-A');
    git('commit', '-q', '-m', 'first');
    const attempt = async (script: string) => {
      const runLater = await listGitRunLater({ root, env });
      const here = box(system, { root, sealed: sandboxProjectView(root, runLater).sealed });
      const { output } = await runInside(here, script);
      unsealSandboxPaths(here.policy.folder);
      return output;
    };
    return { root, home, canary, git, attempt };
  }

  test.each(['empty', 'missing', 'with a file'])('a submodule is not made of a folder that is %s', async (state) => {
    const { root, canary, git, attempt } = repository();
    git('update-index', '--add', '--cacheinfo', `160000,${git('rev-parse', 'HEAD').trim()},lib/sub`);
    git('commit', '-q', '-m', 'a submodule');
    if (state !== 'missing') mkdirSync(join(root, 'lib', 'sub'), { recursive: true });
    if (state === 'with a file') writeFileSync(join(root, 'lib', 'sub', 'kept'), '');
    const commit = `git ${PERSON.join(' ').replace('A Person', 'person')} commit -q --allow-empty -m x`;
    await attempt(
      `mkdir -p lib/sub; cd lib/sub && git init -q . && ${commit}; git config core.fsmonitor 'touch ${canary}; false'`,
    );
    git('status', '--short');
    git('diff');
    expect(existsSync(canary)).toBe(false);
  });

  test('a command cannot create a submodule inside a submodule', async () => {
    const { root, canary, git, attempt } = repository();
    const commit = git('rev-parse', 'HEAD').trim();
    const sub = join(root, 'sub');
    const inner = (...args: readonly string[]) => runSync('git', [...PERSON, ...args], { cwd: sub });
    mkdirSync(join(sub, 'deep'), { recursive: true });
    inner('init', '-q', '-b', 'main');
    inner('update-index', '--add', '--cacheinfo', `160000,${commit},deep`);
    inner('commit', '-q', '-m', 'a submodule');
    git('add', 'sub');
    git('commit', '-q', '-m', 'a submodule');
    await attempt(`cd sub/deep && git init -q . && git config core.fsmonitor 'touch ${canary}; false'`);
    git('status', '--short');
    expect(existsSync(canary)).toBe(false);
  });

  test.each([
    ['include.path', '../shared.gitconfig'],
    ['includeIf.gitdir:/.path', '../shared.gitconfig'],
  ])('a file that %s names is read-only', async (name, value) => {
    const { root, canary, git, attempt } = repository();
    writeFileSync(join(root, 'shared.gitconfig'), '');
    git('config', name, value);
    await attempt(`echo '[core] fsmonitor = "touch ${canary}; false"' > shared.gitconfig`);
    git('status', '--short');
    expect(existsSync(canary)).toBe(false);
  });

  test.each(['project', 'user'])('a missing hook folder that a config of the %s names is not made', async (whose) => {
    const { root, home, canary, git, attempt } = repository();
    if (whose === 'project') git('config', 'core.hooksPath', 'tools/git/hooks');
    else writeFileSync(join(home, '.gitconfig'), '[core]\n\thooksPath = tools/git/hooks\n');
    const hook = 'tools/git/hooks/pre-commit';
    const output = await attempt(
      `mkdir -p tools/git/hooks; printf '#!/bin/sh\\ntouch ${canary}\\n' > ${hook}; chmod +x ${hook}; echo tried`,
    );
    git('commit', '-q', '--allow-empty', '-m', 'by the user');
    expect({ ran: existsSync(canary), tried: output.endsWith('tried\n') }).toEqual({ ran: false, tried: true });
    expect(readdirSync(root).toSorted()).toEqual(['.git', 'a.txt']);
  });
});
