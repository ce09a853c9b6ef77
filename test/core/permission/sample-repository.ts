// A small repository in a temporary folder, for commands to be judged in and really run in.

import { execFile } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { createRequire } from 'node:module';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { childEnvironment } from '@drover/core/tools/process/environment';
import { gitEnvironment } from '@drover/core/tools/process/git-environment';
import { runSync } from '../../support/run-sync.ts';

const run = promisify(execFile);
const core = createRequire(new URL('../../../packages/core/package.json', import.meta.url));

const FILES: Readonly<Record<string, string>> = {
  'package.json':
    '{\n  "name": "sample",\n  "version": "1.2.3",\n  "scripts": { "test": "true" },\n  "dependencies": { "left": "1.0.0" }\n}\n',
  'tsconfig.json': '{ "compilerOptions": { "strict": true } }\n',
  'README.md': '# Sample\n\nHow to install: v1.2 needs foo a.b and a user.\n\nTODO: more words here than there were\n',
  '.gitignore': '# what is made\nnode_modules\ndist\n',
  '.env.example': 'NAME=value\n',
  'data.csv': 'name,city,age\nann,rome,31\nbob,oslo,45\n',
  'ci.yaml': 'name: checks\n',
  'src/index.ts':
    "import { user } from './lib/user.ts';\n\nexport function fetchUser() {\n  // TODO: api/users\n  return user;\n}\n",
  'src/lib/user.ts': "export const user = 'foo error';\n",
  'test/index.test.ts': "it('knows the user', () => {});\n",
  'packages/core/package.json': '{ "name": "core", "version": "0.1.0" }\n',
};

/** For git, so that neither the machine's settings nor its user matter. */
export const plainGit = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_AUTHOR_NAME: 'dev',
  GIT_AUTHOR_EMAIL: 'dev@example.com',
  GIT_COMMITTER_NAME: 'dev',
  GIT_COMMITTER_EMAIL: 'dev@example.com',
};

export async function sampleRepository(): Promise<{ readonly root: string; readonly remove: () => Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'drover-sample-'));
  for (const [path, text] of Object.entries(FILES)) await put(root, path, text);
  const git = (...args: readonly string[]) =>
    void runSync('git', args, { cwd: root, env: { ...childEnvironment(process.env), ...plainGit } });
  git('init', '-q', '-b', 'main', '--template=');
  for (const message of ['begin', 'fix a thing', 'go on']) {
    await put(root, 'src/index.ts', `${FILES['src/index.ts']}// ${message}\n`);
    git('add', '-A');
    git('commit', '-q', '-m', message);
  }
  git('tag', 'v1.0.0');
  await put(root, 'src/index.ts', `${FILES['src/index.ts']}// not yet committed\n`);
  await put(root, 'notes.txt', 'untracked\n');
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}

async function put(root: string, path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

// Each command in a shell of its own, as the shell tool does it: no input, both outputs as one.
const EACH = `while IFS= read -r -d '' command; do bash -c "exec 2>&1; $command" </dev/null >/dev/null; echo $?; done`;

/** Runs commands one after another, with the environment the shell tool gives them. Returns their exit codes. */
export async function runInBash(commands: readonly string[], root: string): Promise<readonly number[]> {
  const { rgPath } = (await import(core.resolve('@vscode/ripgrep'))) as { readonly rgPath: string };
  const env: Record<string, string> = { ...childEnvironment(process.env), ...plainGit, ...gitEnvironment };
  const PATH = `${env['PATH']}:${dirname(rgPath)}`;
  const running = run('bash', ['-c', EACH], { cwd: root, env: { ...env, PATH } });
  running.child.stdin?.end(commands.map((command) => `${command}\0`).join(''));
  const { stdout } = await running;
  return stdout.trim().split('\n').map(Number);
}

/** Every file of a folder, git's own included, with what changes when it is written to. */
export async function contentsOf(root: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(root, { recursive: true });
  const rows = entries.map((name) => {
    const { ino, mode, size, mtimeMs, ctimeMs } = lstatSync(join(root, name));
    return [name, [ino, mode, size, mtimeMs, ctimeMs].join(' ')] as const;
  });
  return Object.fromEntries(rows);
}
