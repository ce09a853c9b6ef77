// Files that other programs run later: in the user's own folder the file tools ask before they change them.

import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { judgeCall, type Policy } from '@drover/core/permission/policy';
import { RUN_LATER } from '@drover/core/permission/run-later';
import { edit } from '@drover/core/tools/edit';
import { write } from '@drover/core/tools/write';
import { expect, test } from 'vitest';
import { workspace } from '../../support/workspace.ts';

async function effect(path: string, isOwnFolder: boolean): Promise<string> {
  const { cwd: root } = await workspace({ 'kept/x': '' });
  symlinkSync('.', join(root, 'loop'));
  const policy: Policy = { root, rules: [], yes: false, workspace: true, contained: true, isOwnFolder };
  return (await judgeCall(policy, write, { path, content: 'x' })).effect;
}

test.each([
  ...RUN_LATER,
  '.claude/settings.json',
  'packages/a/.envrc',
  '.HUSKY/pre-commit',
  './x/../.mcp.json',
  'loop/.envrc',
])('%s is asked about in the user’s own folder', async (path) => {
  expect(await effect(path, true)).toBe('ask');
});

test.each(['.envrc.example', 'claude/settings.json', 'src/.vscode/settings.json', 'a.idea'])(
  '%s is written without approval',
  async (path) => {
    expect(await effect(path, true)).toBe('allow');
  },
);

test('a task workspace has no such files, except .git', async () => {
  expect(await effect('.envrc', false)).toBe('allow');
  expect(await effect('.git/config', false)).toBe('ask');
});

test('further files that run later, and files in such folders, are asked about', async () => {
  const { cwd: root } = await workspace({ 'tools/hooks/x': '', 'shared.gitconfig': '' });
  symlinkSync('tools/hooks', join(root, 'link'));
  const runLater = ['tools/hooks', 'shared.gitconfig'].map((path) => join(root, path));
  const policy: Policy = { root, rules: [], yes: false, workspace: true, contained: true, isOwnFolder: true, runLater };
  const paths = ['tools/hooks/pre-commit', 'link/pre-commit', './shared.gitconfig', 'tools/other', 'tools/hooks2'];
  const verdicts = await Promise.all(paths.map((path) => judgeCall(policy, write, { path, content: 'x' })));
  expect(verdicts.map((each) => each.effect)).toEqual(['ask', 'ask', 'ask', 'allow', 'allow']);
});

test('edit follows the same rules', async () => {
  const { cwd: root } = await workspace({ '.envrc': 'x' });
  const policy: Policy = { root, rules: [], yes: false, workspace: true, contained: true, isOwnFolder: true };
  const verdict = await judgeCall(policy, edit, { path: '.envrc', old: 'x', new: 'y' });
  expect(verdict).toMatchObject({ effect: 'ask', why: 'other programs run what it says there' });
});
