// Dependencies that a project's workspaces would lack, by lockfile and ignored folder, for every packager.

import { findDependencies, dependencyInstallCommand } from '@drover/coordinator/dependencies/detect';
import { expect, test } from 'vitest';
import { userRepository, writeFiles } from './user-repository.ts';

const IGNORED = { '.gitignore': 'node_modules/\n.venv/\nvendor/\ntarget/\n' };
const PIP = 'python3 -m venv .venv && .venv/bin/python -m pip install -q';

/** [what, committed files, ignored files, [packager, how, lockfile, folders, command]] */
const PROJECTS: readonly (readonly [string, readonly string[], readonly string[], readonly unknown[]])[] = [
  ['npm', ['package-lock.json'], ['node_modules/a/x'], ['npm', 'bring', 'package-lock.json', ['node_modules'], '']],
  [
    'npm without a lockfile',
    ['package.json'],
    ['node_modules/a/x'],
    ['npm', 'bring', 'package.json', ['node_modules'], ''],
  ],
  [
    'pnpm with nested packages',
    ['pnpm-lock.yaml', 'packages/b/package.json'],
    ['node_modules/.pnpm/x', 'packages/b/node_modules/y'],
    ['pnpm', 'bring', 'pnpm-lock.yaml', ['node_modules', 'packages/b/node_modules'], ''],
  ],
  ['yarn 1', ['yarn.lock'], ['node_modules/a/x'], ['yarn', 'bring', 'yarn.lock', ['node_modules'], '']],
  ['yarn with PnP', ['yarn.lock', '.pnp.cjs'], [], ['yarn', 'install', 'yarn.lock', [], 'yarn install --immutable']],
  ['bun', ['bun.lock'], ['node_modules/a/x'], ['bun', 'bring', 'bun.lock', ['node_modules'], '']],
  ['an older bun', ['bun.lockb'], ['node_modules/a/x'], ['bun', 'bring', 'bun.lockb', ['node_modules'], '']],
  ['uv', ['uv.lock'], ['.venv/x'], ['uv', 'install', 'uv.lock', ['.venv'], 'uv sync --frozen']],
  [
    'poetry',
    ['poetry.lock'],
    ['.venv/x'],
    [
      'poetry',
      'install',
      'poetry.lock',
      ['.venv'],
      'POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction',
    ],
  ],
  [
    'pip',
    ['requirements.txt'],
    ['.venv/x'],
    ['pip', 'install', 'requirements.txt', ['.venv'], `${PIP} -r requirements.txt`],
  ],
  [
    'pip by a manifest',
    ['pyproject.toml'],
    ['.venv/x'],
    ['pip', 'install', 'pyproject.toml', ['.venv'], `${PIP} -e .`],
  ],
  ['cargo', ['Cargo.lock'], ['target/x'], ['cargo', 'nothing', 'Cargo.lock', ['target'], '']],
  [
    'bundler',
    ['Gemfile.lock'],
    ['vendor/bundle/x'],
    ['bundler', 'install', 'Gemfile.lock', ['vendor'], 'BUNDLE_PATH=vendor/bundle BUNDLE_FROZEN=true bundle install'],
  ],
  [
    'composer',
    ['composer.lock'],
    ['vendor/x'],
    ['composer', 'install', 'composer.lock', ['vendor'], 'composer install --no-interaction'],
  ],
  [
    'pip in a folder',
    ['api/requirements.txt'],
    ['api/.venv/x'],
    ['pip', 'install', 'api/requirements.txt', ['api/.venv'], `cd api && ${PIP} -r requirements.txt`],
  ],
];

async function found(committed: readonly string[], ignored: readonly string[]) {
  const user = await userRepository({ ...IGNORED, ...Object.fromEntries(committed.map((path) => [path, 'x\n'])) });
  await writeFiles(user.top, Object.fromEntries(ignored.map((path) => [path, 'x\n'])));
  return findDependencies(await user.open(), user.env);
}

test.each(PROJECTS)('a project of %s is recognised', async (_, committed, ignored, expected) => {
  const { needs } = await found(committed, ignored);
  const rows = needs.map((need) => {
    const { packager, lockfile, folders } = need;
    return [packager.name, packager.how, lockfile, folders, dependencyInstallCommand(need)];
  });
  expect(rows).toEqual([expected]);
});

test('a Go project lacks nothing, since modules are outside of it', async () => {
  const { needs, locked, unexplained } = await found(['go.mod', 'go.sum'], []);
  expect([needs, locked.map(({ packager }) => packager.name), unexplained]).toEqual([[], ['go'], []]);
});

test('a folder that nothing explains is named, and a target folder is not', async () => {
  const { needs, unexplained } = await found(['a.txt'], ['node_modules/x', '.venv/x', 'target/x']);
  expect([needs, unexplained]).toEqual([[], ['.venv', 'node_modules']]);
});
