// Packagers, such as npm or uv: their lockfiles, the ignored folders that they fill, and how a workspace gets those.
//
//   bring    the folder of the checkout works at another path: it is shown read-only, or linked to a private copy
//   install  the folder holds absolute paths or leads out of itself: a command makes a new one in each workspace
//   nothing  the packager keeps packages outside the project, or the folder must not be shared

export type Packager = {
  readonly name: string;
  readonly lockfiles: readonly string[];
  /** Files that replace a lockfile which names no packages, with their command for `install`. */
  readonly manifests?: { readonly files: readonly string[]; readonly command?: string };
  readonly tool: string;
  readonly folders: readonly string[];
  readonly how: 'bring' | 'install' | 'nothing';
  /** Runs in the folder of the lockfile. `{folder}` is the name of the folder to fill. */
  readonly command?: string;
  /** Hosts that the command contacts, unless its cache has everything. */
  readonly hosts?: readonly string[];
};

const PYTHON_HOSTS = ['pypi.org', 'files.pythonhosted.org'];
const PYTHON_FOLDERS = ['.venv', 'venv'];

/** Yarn with Plug'n'Play has no folder: this file contains paths into a cache. */
export const PNP_FILE = '.pnp.cjs';

export const YARN_PNP: Packager = {
  name: 'yarn',
  lockfiles: ['yarn.lock'],
  tool: 'yarn',
  folders: [],
  how: 'install',
  command: 'yarn install --immutable',
  hosts: ['registry.yarnpkg.com'],
};

/** The first packager whose lockfile exists owns the folder. */
export const PACKAGERS: readonly Packager[] = [
  { name: 'pnpm', lockfiles: ['pnpm-lock.yaml'], tool: 'pnpm', folders: ['node_modules'], how: 'bring' },
  {
    name: 'npm',
    lockfiles: ['package-lock.json', 'npm-shrinkwrap.json'],
    manifests: { files: ['package.json'] },
    tool: 'npm',
    folders: ['node_modules'],
    how: 'bring',
  },
  { name: 'yarn', lockfiles: ['yarn.lock'], tool: 'yarn', folders: ['node_modules'], how: 'bring' },
  { name: 'bun', lockfiles: ['bun.lock', 'bun.lockb'], tool: 'bun', folders: ['node_modules'], how: 'bring' },
  {
    name: 'uv',
    lockfiles: ['uv.lock'],
    tool: 'uv',
    folders: PYTHON_FOLDERS,
    how: 'install',
    command: 'uv sync --frozen',
    hosts: PYTHON_HOSTS,
  },
  {
    name: 'poetry',
    lockfiles: ['poetry.lock'],
    tool: 'poetry',
    folders: PYTHON_FOLDERS,
    how: 'install',
    command: 'POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction',
    hosts: PYTHON_HOSTS,
  },
  {
    name: 'pip',
    lockfiles: ['requirements.txt'],
    manifests: {
      files: ['pyproject.toml', 'setup.py'],
      command: 'python3 -m venv {folder} && {folder}/bin/python -m pip install -q -e .',
    },
    tool: 'python3',
    folders: PYTHON_FOLDERS,
    how: 'install',
    command: 'python3 -m venv {folder} && {folder}/bin/python -m pip install -q -r requirements.txt',
    hosts: PYTHON_HOSTS,
  },
  { name: 'cargo', lockfiles: ['Cargo.lock'], tool: 'cargo', folders: ['target'], how: 'nothing' },
  { name: 'go', lockfiles: ['go.sum', 'go.mod'], tool: 'go', folders: [], how: 'nothing' },
  {
    name: 'bundler',
    lockfiles: ['Gemfile.lock'],
    tool: 'bundle',
    folders: ['vendor'],
    how: 'install',
    command: 'BUNDLE_PATH=vendor/bundle BUNDLE_FROZEN=true bundle install',
    hosts: ['rubygems.org', 'index.rubygems.org'],
  },
  {
    name: 'composer',
    lockfiles: ['composer.lock'],
    tool: 'composer',
    folders: ['vendor'],
    how: 'install',
    command: 'composer install --no-interaction',
    hosts: ['repo.packagist.org', 'api.github.com', 'codeload.github.com'],
  },
];

const SETTINGS =
  'pnpm-workspace.yaml .npmrc .yarnrc .yarnrc.yml Cargo.toml Gemfile composer.json setup.cfg requirements-dev.txt constraints.txt .tool-versions .nvmrc .python-version Makefile';

/** Names of files that decide what an installation makes, in any folder. */
export const MANIFESTS: ReadonlySet<string> = new Set([
  ...PACKAGERS.flatMap(({ lockfiles, manifests }) => [...lockfiles, ...(manifests?.files ?? [])]),
  ...SETTINGS.split(' '),
]);
