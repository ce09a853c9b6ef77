// drover as users have it: packed into a tarball, and installed by npm into an empty prefix.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export class Installed {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'drover-installed-')));
  readonly prefix = join(this.folder, 'prefix');
  /** The package's folder, as npm unpacked it. */
  readonly package = join(this.prefix, 'lib/node_modules/drover');
  readonly tarball: string;
  readonly #node: string;
  #projects = 0;

  /** `node` is the program that runs drover. */
  constructor(node = process.execPath) {
    this.#node = node;
    mkdirSync(this.prefix);
    execFileSync(process.execPath, ['scripts/release-pack.ts', this.folder], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.tarball = join(this.folder, readdirSync(this.folder).find((name) => name.endsWith('.tgz')) ?? '');
    // Runs in an empty folder, so that no package of this repository is found. npm keeps the user's settings.
    execFileSync('npm', ['install', '-g', '--no-audit', '--no-fund', '--prefix', this.prefix, this.tarball], {
      cwd: this.prefix,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  }

  /** A git repository with these files, all committed. */
  project(files: Readonly<Record<string, string>>): string {
    const top = join(this.folder, `project-${(this.#projects += 1)}`);
    writeFiles(top, files);
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd: top });
    git('init', '-q');
    git('add', '.');
    git('commit', '-q', '-m', 'first');
    return top;
  }

  environment(more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
    const path = [dirname(this.#node), join(this.prefix, 'bin'), process.env['PATH'] ?? ''].join(delimiter);
    return { PATH: path, HOME: this.folder, ...more };
  }

  run(args: readonly string[], cwd = this.folder, more: Readonly<Record<string, string>> = {}): Ended {
    const { status, stdout, stderr } = spawnSync('drover', args, {
      cwd,
      env: this.environment(more),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return { code: status, stdout, stderr };
  }

  /** Like `run`, for a command that asks a server which `start` began. */
  async ran(args: readonly string[], cwd: string, more: Readonly<Record<string, string>>): Promise<Ended> {
    const child = spawn('drover', args, { cwd, env: this.environment(more), stdio: ['ignore', 'pipe', 'pipe'] });
    const [[code], stdout, stderr] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]);
    return { code: code as number | null, stdout, stderr };
  }

  /** Starts a server, and returns it with its first piece of output. */
  async start(args: readonly string[], cwd = this.folder): Promise<{ child: ChildProcess; first: string }> {
    const child = spawn('drover', args, { cwd, env: this.environment(), stdio: ['ignore', 'pipe', 'inherit'] });
    const [first] = (await once(child.stdout, 'data')) as [Buffer];
    return { child, first: first.toString() };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function writeFiles(top: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(top, path)), { recursive: true });
    writeFileSync(join(top, path), content);
  }
}

export async function ended(child: ChildProcess): Promise<number | null> {
  const gone = once(child, 'close');
  child.kill('SIGTERM');
  return ((await gone) as [number | null])[0];
}

/** Whether npm can reach a registry: without one the package's only dependency can't be installed. */
export function hasRegistry(): boolean {
  const { status } = spawnSync('npm', ['view', '@vscode/ripgrep', 'version'], { stdio: 'ignore' });
  if (status !== 0) process.stderr.write('\n*** LEFT OUT, because npm reaches no registry: the installed package\n\n');
  return status === 0;
}
