// Guarantees about containment, tested through `drover exec`: a scripted model sends the commands.
//
// Tests that need a sandbox are skipped on a machine without one, with a line on stderr; .ci/run installs bubblewrap.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { openSandbox } from '@drover/sandbox/open';
import { describe, expect, onTestFinished } from 'vitest';
import { drover, type Ran } from '../cli/fake-io.ts';
import { proves } from '../support/proves.ts';
import { runSync } from '../support/process/run-sync.ts';
import { temporaryFolder } from '../support/workspace.ts';

const CANARY = 'canary-6f1d';
const TEST_MS_MAX = 120_000;

const FOUND = await findSandbox();
if (!FOUND.works)
  process.stderr.write(`\n*** LEFT OUT, for want of a sandbox: promises. ${FOUND.missing}; ${FOUND.fix}.\n\n`);

describe.runIf(FOUND.works)('inside the sandbox', { timeout: TEST_MS_MAX }, () => {
  proves('sandbox.files', 'commands and gates reach no file outside the folder, also with --yes', async () => {
    const world = await World.open();
    const outside = ['.ssh/id', 'other/secret', 'state/runs/other'].map((path) => join(world.home, path));
    for (const path of outside) await world.place(path, CANARY);
    symlinkSync(join(world.home, 'other'), join(world.cwd, 'link'));
    const commands = [
      ...outside.map((path) => `cat '${path}'; echo changed > '${path}'; rm -rf '${dirname(path)}'`),
      'cat ~/.ssh/id link/secret; echo changed > link/secret',
      ...outside.map((path) => `cat /proc/*/root'${path}'; grep -rs ${CANARY.slice(0, -1)} '${world.home}'`),
    ];
    const gate = `cat '${outside[0]}' > gate.txt; echo changed > '${outside[0]}'; true`;
    const { code } = await world.exec(commands, ['--yes', '--gate', gate]);
    expect(code).toBe(0);
    expect(world.results).toHaveLength(commands.length);
    expect(world.results.filter((result) => result.includes(CANARY))).toEqual([]);
    expect(readFileSync(join(world.cwd, 'gate.txt'), 'utf8')).toBe('');
    expect(outside.map((path) => readFileSync(path, 'utf8'))).toEqual(outside.map(() => CANARY));
  });

  proves('sandbox.network', 'a command reaches the hosts that --net names, and no others', async () => {
    const [named, other] = [await listen(), await listen()];
    const world = await World.open();
    const visit = ({ port }: Visited) =>
      `'${process.execPath}' -e 'fetch("http://127.0.0.1:${port}/").then(async (r) => console.log(await r.text()), () => console.log("no"))'`;
    await world.exec([visit(named), visit(other)], ['--yes']);
    expect([named.visits, other.visits]).toEqual([0, 0]);
    await world.exec([visit(named), visit(other)], ['--yes', '--net', `127.0.0.1:${named.port}`]);
    expect([named.visits, other.visits, ...world.results]).toEqual([1, 0, 'welcome', expect.stringContaining('no')]);
  });

  proves('sandbox.processes', 'a command sees and ends no outside process, and leaves none behind', async () => {
    const world = await World.open();
    const bystander = startBystander();
    const left = `86400.${process.pid}`;
    const commands = [
      `grep -aso 'BAIT=[a-z0-9-]*' /proc/*/environ; kill -9 ${bystander.pid}`,
      `setsid nohup sleep ${left} >/dev/null 2>&1 & disown; echo started`,
    ];
    await world.exec(commands, ['--yes']);
    expect(world.results.filter((result) => result.includes(CANARY))).toEqual([]);
    expect(world.results.at(-1)).toContain('started');
    expect([bystander.exitCode, bystander.signalCode]).toEqual([null, null]);
    expect(commandLines().filter((line) => line.includes(left))).toEqual([]);
  });

  proves('sandbox.own-folder', 'no command changes .git or files that other programs run later', async () => {
    const world = await World.open();
    runSync('git', ['init', '--quiet'], { cwd: world.cwd });
    await world.place(join(world.cwd, '.husky/pre-commit'), 'true');
    const before = treeOf(world.cwd);
    const places = ['.git/hooks/post-checkout', '.git/config', '.husky/pre-commit', '.husky/new', '.envrc'];
    const others = ['.vscode/tasks.json', '.claude/settings.json', '.mcp.json', '.idea/x', '.drover/config.yaml'];
    const commands = [
      ...[...places, ...others].map((path) => `mkdir -p ${dirname(path)}; echo run-me > ${path}`),
      'git config core.fsmonitor run-me; mv .git elsewhere; rm -rf .git .husky; echo fine > ordinary',
    ];
    const { code } = await world.exec(commands, ['--yes']);
    expect([code, world.results.length]).toEqual([0, commands.length]);
    expect(treeOf(world.cwd)).toEqual({ ...before, ordinary: 'fine\n' });
  });

  proves('sandbox.deny-paths', 'a denied path is denied to every program, however it is spelled', async () => {
    const world = await World.open();
    await world.place(join(world.cwd, 'secret/key'), CANARY);
    await world.place(join(world.cwd, 'locked.txt'), 'as it was');
    const commands = ['f=sec; cat ${f}ret/key; cp -r s?cret copy; cat copy/key', 'f=locked; echo changed > $f.txt'];
    await world.exec(commands, ['--yes', '--deny', 'read(secret/**)', '--deny', 'write(locked.txt)']);
    // The commands did run: mounts deny the paths, not a scan of the command's text.
    expect(world.results.map((result) => /denied by the rule/.test(result))).toEqual([false, false]);
    expect(world.results.filter((result) => result.includes(CANARY))).toEqual([]);
    expect(readFileSync(join(world.cwd, 'locked.txt'), 'utf8')).toBe('as it was');
  });

  proves('sandbox.never-outside', 'a command whose sandbox does not start is not run at all', async () => {
    const world = await World.open();
    const programs = join(world.home, 'programs');
    const broken = join(world.home, 'broken');
    const bwrap = runSync('bash', ['-c', 'command -v bwrap'], { cwd: '/' }).toString().trim();
    const script = `#!/bin/sh\n[ -e '${broken}' ] && { echo out of order >&2; exit 1; }\nexec '${bwrap}' "$@"\n`;
    await world.place(join(programs, 'bwrap'), script);
    await chmod(join(programs, 'bwrap'), 0o755);
    const env = { PATH: `${programs}${delimiter}${process.env['PATH']}` };
    await world.exec(['touch first'], ['--yes'], env);
    await world.place(broken, '');
    const { code, stdout } = await world.exec(['touch second'], ['--yes'], env);
    expect([code, existsSync(join(world.cwd, 'first')), existsSync(join(world.cwd, 'second'))]).toEqual([
      3,
      true,
      false,
    ]);
    expect(stdout).toContain('the sandbox did not start, so nothing was run in it: out of order');
    // The model gets no chance to work around the failure.
    expect(stdout).not.toContain('That is all.');
  });
});

proves('sandbox.required', 'in CI a machine without a sandbox gets exit code 2, and no session begins', async () => {
  const world = await World.open();
  const programs = join(world.home, 'programs');
  await mkdir(programs);
  const { code, stdout, stderr } = await world.exec(['touch ran'], ['--yes'], { PATH: programs, CI: 'true' });
  expect([code, stdout, existsSync(join(world.cwd, 'ran'))]).toEqual([2, '', false]);
  expect(stderr).toMatch(/there is no sandbox: bubblewrap \(bwrap\) is not installed; install it/);
  expect(globSync('**/*.jsonl', { cwd: join(world.home, 'state') })).toEqual([]);
});

/** A home with a project, and drover's state, all removed after the test. */
class World {
  readonly home: string;
  readonly cwd: string;
  /** The results of the last exec's commands, as the model got them. */
  results: readonly string[] = [];

  private constructor(home: string) {
    this.home = home;
    this.cwd = join(home, 'project');
  }

  static async open(): Promise<World> {
    const world = new World(await temporaryFolder());
    await mkdir(world.cwd);
    return world;
  }

  async place(path: string, content: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }

  async exec(commands: readonly string[], args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
    const calls = commands.map((command) => ({ calls: [{ name: 'shell', args: { command } }] }));
    const script = join(this.home, 'script.yaml');
    await writeFile(script, JSON.stringify({ answers: [...calls, { text: 'That is all.' }] }));
    const ran = await drover(['exec', 'go', '--model', `rehearsal/${script}`, '--json', ...args], {
      cwd: this.cwd,
      env: { HOME: this.home, DROVER_HOME: join(this.home, 'state'), ...env },
    });
    this.results = ran.stdout.split('\n').flatMap(resultIn);
    return ran;
  }
}

function resultIn(line: string): readonly string[] {
  if (line === '') return [];
  const event: unknown = JSON.parse(line);
  if (typeof event !== 'object' || event === null || !('type' in event)) return [];
  return event.type === 'tool_execution_end' && 'output' in event ? [String(event.output)] : [];
}

async function findSandbox(): ReturnType<typeof openSandbox> {
  const state = mkdtempSync(join(tmpdir(), 'drover-test-promises-'));
  process.once('exit', () => rmSync(state, { recursive: true, force: true }));
  const { platform, arch: architecture, execPath: node, env } = process;
  return openSandbox({ state, env, node, platform, architecture });
}

type Visited = { readonly port: number; visits: number };

async function listen(): Promise<Visited> {
  const visited = { port: 0, visits: 0 };
  const server = createServer((_, response) => {
    visited.visits += 1;
    response.end('welcome');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (typeof address === 'object' && address !== null) visited.port = address.port;
  return visited;
}

function startBystander(): ChildProcess {
  const bystander = spawn('sleep', ['600'], { env: { PATH: process.env['PATH'], BAIT: CANARY }, stdio: 'ignore' });
  onTestFinished(() => void bystander.kill('SIGKILL'));
  return bystander;
}

function commandLines(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((id) => {
      try {
        return [readFileSync(`/proc/${id}/cmdline`, 'utf8')];
      } catch (error) {
        // The process has ended meanwhile.
        if (error instanceof Error && 'code' in error) return [];
        throw error;
      }
    });
}

/** Every file below a folder, with its content. */
function treeOf(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  const paths = files.map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'utf8')]));
}
