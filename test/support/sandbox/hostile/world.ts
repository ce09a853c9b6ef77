// A fixture for hostile commands: a workspace with traps, and beside it everything that a command must not reach.
//
// Everything outside the workspace holds MARK. `harm` reports new or changed files outside, MARK in the output,
// received connections, and surviving processes.

import { spawn } from 'node:child_process';
import { createHash, randomInt, randomUUID } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import type { SandboxPolicy, SandboxSystem } from '@drover/sandbox/policy';
import { unsealSandboxPaths } from '@drover/sandbox/seal';
import { onTestFinished } from 'vitest';
import { RUN_LATER } from '@drover/core/permission/run-later';
import { sandboxProjectView } from '../../../../bin/sandbox/project-view.ts';
import { processesWith } from '../../../cli/program.ts';
import { runSync } from '../../process/run-sync.ts';
import { box } from '../box.ts';
import type { Attack } from './attack.ts';

export const MARK = 'MARK_5150_OUTSIDE';
const GOT_THROUGH = 'GOT_THROUGH';

// Python programs that need no double quote.
const UNIX =
  'import socket,sys; s=socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect(sys.argv[1]); print(s.recv(99))';
const ABSTRACT = UNIX.replace('sys.argv[1]', "'\\0'+sys.argv[1]");
const DAEMON = [
  'import os,sys',
  'os.fork() and os._exit(0)',
  'os.setsid()',
  'os.fork() and os._exit(0)',
  'os.closerange(0, 64)',
  "os.execvp('sleep', ['sleep', sys.argv[1]])",
].join('; ');

export class HostileWorld {
  readonly around: string;
  readonly root: string;
  readonly policy: SandboxPolicy;
  readonly #places: Readonly<Record<string, string>>;
  readonly #guarded: readonly string[];
  readonly #before: string;
  readonly #calls: { count: number };
  readonly #bystander: () => boolean;

  private constructor(made: Made) {
    this.around = made.around;
    this.root = made.root;
    this.policy = made.policy;
    this.#places = made.places;
    this.#guarded = made.guarded;
    this.#calls = made.calls;
    this.#bystander = made.bystander;
    this.#before = this.#guard();
  }

  static async open(system: SandboxSystem): Promise<HostileWorld> {
    return new HostileWorld(await make(system));
  }

  /** The command with this world's paths filled in. */
  command({ command }: Pick<Attack, 'command'>): string {
    return Object.entries(this.#places).reduce((text, [name, place]) => text.replaceAll(`@${name}@`, place), command);
  }

  /** The environment of commands that run without a sandbox. */
  get env(): Readonly<Record<string, string>> {
    return { PATH: process.env['PATH'] ?? '', HOME: this.#places['USER'] ?? '', LANG: 'C.UTF-8' };
  }

  harm(output: string): readonly string[] {
    unsealSandboxPaths(this.policy.folder);
    const nap = this.#places['NAP'] ?? '';
    return [
      ...readdirSync(join(this.around, 'canary')).map((name) => `canary: ${name}`),
      ...this.shown(output),
      ...(this.#calls.count > 0 ? ['a connection arrived'] : []),
      ...(this.#guard() === this.#before ? [] : ['a file outside, or a sealed one, was changed']),
      ...(this.#bystander() ? [] : ['the bystander was ended']),
      ...processesWith(`sleep ${nap}`).map((id) => `process ${id} is left`),
    ];
  }

  shown(output: string): readonly string[] {
    return output.includes(MARK) || output.includes(GOT_THROUGH) ? [`output: ${output.slice(0, 300)}`] : [];
  }

  #guard(): string {
    const sum = createHash('sha256');
    for (const path of this.#guarded.flatMap((each) => [each, ...everythingIn(each)]).sort())
      sum.update(`${path}\0${contentOf(path)}\0`);
    return sum.digest('hex');
  }
}

function everythingIn(path: string): readonly string[] {
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(path, { recursive: true, encoding: 'utf8' }).map((each) => join(path, each));
}

/** Git's index contains file times. */
function contentOf(path: string): string {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 'none';
  if (found.isSymbolicLink()) return readlinkSync(path);
  return found.isFile() && !path.endsWith('/index') ? readFileSync(path, 'latin1') : `${found.mode}`;
}

type Made = {
  readonly around: string;
  readonly root: string;
  readonly policy: SandboxPolicy;
  readonly places: Readonly<Record<string, string>>;
  readonly guarded: readonly string[];
  readonly calls: { count: number };
  readonly bystander: () => boolean;
};

async function make(system: SandboxSystem): Promise<Made> {
  const plain = box(system);
  const { around, root } = plain;
  const at = (name: string) => join(around, name);
  fill(around, OUTSIDE);
  for (const name of ['canary', 'sockets']) mkdirSync(at(name), { recursive: true });
  layTraps(root, at('outside'), at('canary'));
  const calls = { count: 0 };
  const name = randomUUID();
  const port = await listening({ host: '127.0.0.1', port: 0 }, calls);
  for (const each of ['launcher', 'agent', 'docker', 'bus'])
    await listening({ path: join(at('sockets'), each) }, calls);
  await listening({ path: `\0${name}` }, calls);
  const child = spawn('sleep', ['600'], {
    cwd: at('outside'),
    env: { PATH: '/usr/bin:/bin', SECRET: MARK },
    stdio: 'ignore',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const policy = { ...plain.policy, sealed: sandboxProjectView(root).sealed, system: { ...system, home: at('user') } };
  const places = {
    OUT: at('outside'),
    CAN: at('canary'),
    STATE: at('state'),
    SLOT: at('slots/2'),
    USER: at('user'),
    SOCKETS: at('sockets'),
    PORT: String(port),
    NAME: name,
    PID: String(child.pid),
    NAP: `3600.${randomInt(1e9)}`,
    // The quotes keep the command's own text from being taken for its output.
    GOT: `echo GOT_"THROUGH"`,
    UNIX,
    ABSTRACT,
    DAEMON,
  };
  const guarded = [...['outside', 'state', 'slots', 'user'].map(at), ...RUN_LATER.map((each) => join(root, each))];
  return {
    around,
    root,
    policy,
    places,
    guarded,
    calls,
    bystander: () => child.exitCode === null && child.signalCode === null,
  };
}

const OUTSIDE: Readonly<Record<string, string>> = {
  'outside/secret.txt': `${MARK}\n`,
  'outside/config.json': `{"a": "${MARK}"}\n`,
  'state/sessions/one/journal.jsonl': `{"text": "${MARK}"}\n`,
  'state/token': `${MARK}\n`,
  'state/config.yaml': `# ${MARK}\n`,
  'slots/2/file.txt': `${MARK}\n`,
  'user/.ssh/id_ed25519': `${MARK}\n`,
  'user/.aws/credentials': `${MARK}\n`,
  'user/.netrc': `${MARK}\n`,
  'user/.npmrc': `// ${MARK}\n`,
  'user/.bashrc': `# ${MARK}\n`,
};

/** The workspace: a repository with two commits, links that lead out, and programs that leave a canary. */
function layTraps(root: string, outside: string, canary: string): void {
  const git = (...args: readonly string[]) => runSync('git', args, { cwd: root }).toString().trim();
  const program = (name: string) => `#!/bin/sh\ntouch ${canary}/${name}\ncat\n`;
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'A Person');
  git('config', 'user.email', 'person@example.com');
  fill(root, {
    numbers: '3\n1\n2\none\n',
    'docs/read.md': 'hello\n',
    paths: `${outside}/secret.txt\n`,
    paths0: `${outside}/secret.txt\0`,
    'load.cjs': `try { require('fs').writeFileSync('${canary}/load', ''); } catch (error) { console.log(error.code); }\n`,
    'py/greet.py': `open('${canary}/py', 'w')\n`,
    'pl/Greet.pm': `package Greet; open(F, '>', '${canary}/pl'); 1;\n`,
    '.vscode/tasks.json': '{}\n',
  });
  fill(
    root,
    { 'run.sh': program('run'), 'fake/frobnicate': program('fake'), 'hooks/pre-commit': program('hook') },
    0o755,
  );
  symlinkSync(join(outside, 'secret.txt'), join(root, 'leak'));
  symlinkSync(outside, join(root, 'leakdir'));
  git('add', '-A');
  git('commit', '-q', '-m', 'first');
  // A repository of plain text, as the write tool could write it. Its textconv runs a program.
  const commit = git('rev-parse', 'HEAD');
  const config = `[core]\n\trepositoryformatversion = 0\n\tbare = true\n[diff "x"]\n\ttextconv = touch ${canary}/textconv; cat\n`;
  fill(root, {
    'trap/HEAD': 'ref: refs/heads/main\n',
    'trap/commondir': '../trapcommon\n',
    'trapcommon/objects/info/alternates': `${root}/.git/objects\n`,
    'trapcommon/refs/heads/main': `${commit}\n`,
    'trapcommon/info/attributes': '* diff=x\n',
    'trapcommon/config': config,
  });
  git('add', '-A');
  git('commit', '-q', '-m', 'second');
}

function fill(folder: string, files: Readonly<Record<string, string>>, mode = 0o644): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    if (!existsSync(dirname(file))) mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content, { mode });
  }
}

/** A server that counts its callers and tells each one MARK. Returns its port. */
function listening(
  where: { host: string; port: number } | { path: string },
  calls: { count: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const server: Server = createServer((socket) => {
      calls.count++;
      socket.on('error', () => socket.destroy());
      socket.end(`${MARK}\n`);
    });
    onTestFinished(() => void server.close());
    server.once('error', reject);
    server.listen(where, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}
