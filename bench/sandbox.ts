// The cost that the sandbox adds to a command: in a workspace, in the user's own folder, and with allowed hosts, next
// to the same command in the open. All are started as drover starts them, one after the other in turn. A command finds
// its sandbox started, since it was while the model thought; the first of a turn does too. Others, such as gates, start
// theirs.

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseHostRule } from '@drover/sandbox/net/hosts';
import { openSandboxProxy } from '@drover/sandbox/net/proxy';
import { openSandbox } from '@drover/sandbox/open';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { newId } from '@drover/core/ids';
import { setTimeout as delay } from 'node:timers/promises';
import { unsealSandboxPaths } from '@drover/sandbox/seal';
import { keepProcessBoxes } from '@drover/core/tools/process/boxes';
import { prepareShellProcess, runShell } from '@drover/core/tools/process/run-shell';
import { sandboxProjectView } from '../bin/sandbox/project-view.ts';
import { newFolder } from './folder.ts';

const TIMES = 61;
const TURNS = 21;
const THOUGHT_MS = 300; // between the start of a turn and its first command
const ADDED_MS_AIM = 10;

/** The lines to print. */
export async function lines(): Promise<readonly string[]> {
  const folder = newFolder();
  const root = join(folder, 'project');
  mkdirSync(root, { recursive: true });
  execFileSync('git', ['init', '--quiet'], { cwd: root });
  const { env, execPath: node, platform, arch: architecture } = process;
  const found = await openSandbox({ state: join(folder, 'state'), env, node, platform, architecture });
  if (!found.works) return [`the sandbox was not measured: ${found.missing}`];
  const plain = { readable: [], writable: [], sealed: [], hidden: [], groups: [] };
  const workspace: SandboxPolicy = { ...plain, system: found.system, root, folder: privateFolder(join(folder, 'box')) };
  const rules = [parseHostRule('packages.example.com')];
  const socket = join(folder, 'proxy');
  const proxy = await openSandboxProxy({ rules, socket, onConnection: () => undefined });
  const own = { ...workspace, ...sandboxProjectView(root) };
  const hosts = { ...workspace, proxy: { socket, rules } };
  const again = (policy: SandboxPolicy, name: string) => ({ ...policy, folder: privateFolder(join(folder, name)) });
  const policies = {
    open: undefined,
    workspace,
    folder: own,
    hosts,
    workspaceAgain: again(workspace, 'again'),
    folderAgain: again(own, 'own-again'),
    hostsAgain: again(hosts, 'hosts-again'),
  };
  const kept = [policies.workspaceAgain, policies.folderAgain, policies.hostsAgain].map(keepProcessBoxes);
  const figures = await measured(policies, root);
  for (const boxes of kept) boxes[Symbol.dispose]();
  const first = await firstOfTurn({ workspace, folder: own, hosts }, root);
  await proxy.close();
  const row = (what: string, ms: number, aim = '') =>
    `${what}: ${figures.open.toFixed(1)} ms in the open, ${ms.toFixed(1)} ms contained: ${(ms - figures.open).toFixed(1)} ms more${aim}`;
  const aim = ` (aim ${ADDED_MS_AIM} ms)`;
  return [
    row('a command in a workspace', figures.workspaceAgain, aim),
    row("a command in the user's own folder", figures.folderAgain, aim),
    row('a command with allowed hosts', figures.hostsAgain, aim),
    row('the first command of a turn in a workspace', first.workspace, aim),
    row("the first command of a turn in the user's own folder", first.folder, aim),
    row('the first command of a turn with allowed hosts', first.hosts, aim),
    row('a sandbox that is not started ahead, in a workspace', figures.workspace),
    row("a sandbox that is not started ahead, in the user's own folder", figures.folder),
    row('a sandbox that is not started ahead, with allowed hosts', figures.hosts),
  ];
}

function privateFolder(folder: string): string {
  for (const name of ['home', 'tmp']) mkdirSync(join(folder, name), { recursive: true });
  return folder;
}

async function measured<Name extends string>(
  policies: Readonly<Record<Name, SandboxPolicy | undefined>>,
  cwd: string,
): Promise<Record<Name, number>> {
  const names = Object.keys(policies) as Name[];
  const times = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let n = 0; n < TIMES; n++) {
    for (const name of names) {
      times.get(name)?.push(await timed(policies[name], cwd));
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times.get(name) ?? [])])) as Record<Name, number>;
}

/** Each command has a turn of its own, and the model thinks before it. */
async function firstOfTurn<Name extends string>(
  policies: Readonly<Record<Name, SandboxPolicy>>,
  cwd: string,
): Promise<Record<Name, number>> {
  const names = Object.keys(policies) as Name[];
  const times = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let n = 0; n < TURNS; n++) {
    for (const name of names) {
      const sandbox = policies[name];
      unsealSandboxPaths(sandbox.folder);
      using _boxes = keepProcessBoxes(sandbox);
      prepareShellProcess({ cwd, env: ENV, sandbox }, 'certain');
      await delay(THOUGHT_MS);
      times.get(name)?.push(await timed(sandbox, cwd));
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times.get(name) ?? [])])) as Record<Name, number>;
}

const ENV = { PATH: process.env['PATH'] ?? '' };

async function timed(sandbox: SandboxPolicy | undefined, cwd: string): Promise<number> {
  const begun = performance.now();
  const spec = { script: 'true', cwd, env: ENV, sandbox, callId: newId('call'), timeoutMs: 60_000 };
  const end = await runShell({ ...spec, onOutput: () => undefined }, new AbortController().signal);
  if (end.exitCode !== 0) throw new Error(`the command ended with ${end.exitCode}`);
  return performance.now() - begun;
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? 0;
}
