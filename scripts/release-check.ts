// pnpm release:check: what must hold before a version is published. Prints a line for each, and exits with 1 if one
// fails.

import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

type Manifest = { readonly version: string };
type Check = readonly [name: string, problem: () => string | undefined];

const version = versionOf('package.json');
const folder = mkdtempSync(join(tmpdir(), 'drover-release-'));

const checks: readonly Check[] = [
  ['all packages have one version', differentVersions],
  ['CHANGELOG.md has a section for the version', missingSection],
  ['the work tree is clean', uncommitted],
  ['the tarball is packed', () => run('node', ['scripts/release-pack.ts', folder], ROOT)],
  ['npm installs the tarball', () => run('npm', ['install', '-g', '--prefix', folder, ...tarballs()], folder)],
  ['the installed drover prints its version', () => installed(['--version'])],
  ['the installed drover runs the demo', () => installed(['demo'])],
];

let failed = 0;
for (const [name, problem] of checks) {
  const found = problem();
  if (found !== undefined) failed++;
  process.stdout.write(found === undefined ? `✓ ${name}\n` : `✗ ${name}: ${found}\n`);
}
rmSync(folder, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);

function versionOf(path: string): string {
  return (JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Manifest).version;
}

function differentVersions(): string | undefined {
  const others = globSync('packages/*/package.json', { cwd: ROOT }).filter((path) => versionOf(path) !== version);
  return others.length === 0 ? undefined : `${others.join(', ')} ${others.length === 1 ? 'is' : 'are'} not ${version}`;
}

function missingSection(): string | undefined {
  const headings = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').matchAll(/^## (.+)$/gm);
  const has = [...headings].some(([, heading = '']) => heading.startsWith(version));
  return has ? undefined : `rename "Not yet released" to "${version}", with the date`;
}

function uncommitted(): string | undefined {
  const { stdout } = spawnSync('git', ['status', '--porcelain'], { cwd: ROOT, encoding: 'utf8' });
  return stdout === '' ? undefined : 'commit or remove the changed files';
}

function tarballs(): readonly string[] {
  return globSync('drover-[0-9]*.tgz', { cwd: folder }).map((name) => join(folder, name));
}

function installed(args: readonly string[]): string | undefined {
  return run(join(folder, 'bin/drover'), args, folder);
}

/** Returns the end of the program's output if it fails; undefined if it succeeds. */
function run(program: string, args: readonly string[], cwd: string): string | undefined {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  return status === 0
    ? undefined
    : `exit code ${status}: ${`${stdout}${stderr}`.trim().split('\n').slice(-3).join(' ')}`;
}
