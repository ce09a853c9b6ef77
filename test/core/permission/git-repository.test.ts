// git starts what a repository's settings say; so a reading command runs unasked only where they say nothing of the kind.

import { appendFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runInBash, sampleRepository } from './sample-repository.ts';
import { judgeCommand } from './tools.ts';

async function repository(config: string): Promise<string> {
  const { root, remove } = await sampleRepository();
  onTestFinished(remove);
  await appendFile(join(root, '.git/config'), config);
  return root;
}

async function effectOf(command: string, root: string): Promise<string> {
  return (await judgeCommand(command, { root })).effect;
}

test.each([
  '[core]\n\tfsmonitor = touch made; false\n',
  '[core] fsmonitor = touch made\n',
  '[CORE]\nFsMonitor=touch made\n',
  '[diff "x"]\n\ttextconv = touch made; cat\n',
  '[diff "x"]\n\tcommand = touch made\n',
  '[diff]\n\texternal = touch made\n',
  '[filter "x"]\n\tclean = touch made; cat\n',
  '[filter "x"]\n\tprocess = touch made\n',
  '[log]\n\tshowSignature = true\n[gpg]\n\tprogram = touch made\n',
  '[pager]\n\tlog = touch made\n',
  '[core]\n\tpager = touch made\n',
  '[core]\n\tworktree = /etc\n',
  '[include]\n\tpath = ../other\n',
  '[includeIf "gitdir:/"]\n\tpath = ../other\n',
  '[remote "origin"]\n\tpromisor = true\n\tuploadpack = touch made\n',
  '[extensions]\n\tpartialClone = origin\n',
  '[alias]\n\tstatus = !touch made\n',
  '[user]\n\tname = a \\\n[core]\n\tfsmonitor = touch made\n',
  '[branch "a]\n[core"]\n\tfsmonitor = touch made\n',
  '[core]\n\thooksPath = "hooks"\n',
  'fsmonitor = touch made\n',
])('a repository with the setting %j is asked about', async (config) => {
  const root = await repository(config);
  expect([
    await effectOf('git status', root),
    await effectOf('git log --oneline', root),
    await effectOf('ls', root),
  ]).toEqual(['ask', 'ask', 'allow']);
});

test('the settings of an ordinary clone start nothing', async () => {
  const root = await repository(`; a comment
[remote "origin"]
	url = git@example.com:a/b.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[user]
	name = A "quoted" name # and a comment
[pull] rebase = true
[core]
	autocrlf
[http "https://example.com/"]
	extraheader = AUTHORIZATION: basic x
`);
  expect([await effectOf('git status', root), await effectOf('git diff HEAD~1', root)]).toEqual(['allow', 'allow']);
});

test('a hook for a refreshed index is asked about, wherever hooks are kept', async () => {
  const plain = await repository('');
  await mkdir(join(plain, '.git/hooks'), { recursive: true });
  await writeFile(join(plain, '.git/hooks/pre-commit'), '');
  expect(await effectOf('git status', plain)).toBe('allow');
  await writeFile(join(plain, '.git/hooks/post-index-change'), '');
  expect(await effectOf('git status', plain)).toBe('ask');

  const elsewhere = await repository('[core]\n\thooksPath = tools/hooks\n');
  expect(await effectOf('git status', elsewhere)).toBe('allow');
  await mkdir(join(elsewhere, 'tools/hooks'), { recursive: true });
  await writeFile(join(elsewhere, 'tools/hooks/post-index-change'), '');
  expect(await effectOf('git status', elsewhere)).toBe('ask');
});

test('submodules, linked worktrees and folders that look like a repository are looked at, too', async () => {
  const root = await repository('');
  await mkdir(join(root, 'bare/objects'), { recursive: true });
  await writeFile(join(root, 'bare/HEAD'), 'ref: refs/heads/main');
  await mkdir(join(root, 'inner/.git'), { recursive: true });
  await writeFile(join(root, 'inner/.git/HEAD'), 'ref: refs/heads/main');
  await writeFile(join(root, 'inner/.git/config'), '[core]\n\tfsmonitor = touch made\n');
  await mkdir(join(root, 'linked'));
  await writeFile(join(root, 'linked/.git'), 'gitdir: ../inner/.git\n');
  const effects = async () =>
    Promise.all(
      [
        'git status',
        'git -C src log',
        'cd bare && git status',
        'cd inner; git log',
        'git -C inner diff',
        'cd linked && git log',
        'command cd inner && git log',
      ].map((command) => effectOf(command, root)),
    );
  expect(await effects()).toEqual(['allow', 'allow', 'ask', 'ask', 'ask', 'ask', 'ask']);
  await writeFile(join(root, '.gitmodules'), '');
  expect((await effects()).slice(0, 2)).toEqual(['ask', 'ask']);
});

test('a workspace below the top of its repository is judged by that repository', async () => {
  const root = await repository('[core]\n\tfsmonitor = touch made\n');
  expect(await effectOf('git status', join(root, 'src'))).toBe('ask');
});

test('where there is no repository, git may say so', async () => {
  const root = await mkdtemp(join(tmpdir(), 'drover-test-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await symlink('/dev/null', join(root, 'null'));
  expect(await effectOf('git status', root)).toBe('allow');
});

test('behind the settings there is a second wall: the environment switches off monitor, signatures and the index', async () => {
  const made = (root: string) => existsSync(join(root, 'made'));
  const root = await repository(
    '[core]\n\tfsmonitor = touch made; false\n[log]\n\tshowSignature = true\n[gpg]\n\tprogram = touch made\n',
  );
  await runInBash(['git status', 'git diff', 'git log -1', 'git stash list'], root);
  expect(made(root)).toBe(false);
  await runInBash(['GIT_CONFIG_COUNT=0 git status'], root);
  expect(made(root)).toBe(true);
});
