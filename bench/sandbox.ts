// The cost that the sandbox adds to a command: in a workspace, in the user's own folder, and with allowed hosts, next to
// the same command in the open. All are started as drover starts them, one after the other in turn. A first command
// starts its sandbox; one that follows finds it started, since it was while the model thought.

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseHostRule } from '@drover/sandbox/net/hosts';
import { openProxy } from '@drover/sandbox/net/proxy';
import { openSandbox } from '@drover/sandbox/open';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { keepBoxes } from '@drover/core/tools/process/boxes';
import { runShell } from '@drover/core/tools/process/run-shell';
import { projectView } from '../bin/sandbox/project-view.ts';
import { newFolder } from './folder.ts';

const TIMES = 61;
const ADDED_MS_AIM = 10;

/** Lines to print. */
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
  const proxy = await openProxy({ rules, socket, onConnection: () => undefined });
  const own = { ...workspace, ...projectView(root) };
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
  const kept = [policies.workspaceAgain, policies.folderAgain, policies.hostsAgain].map(keepBoxes);
  const figures = await measured(policies, root);
  for (const boxes of kept) boxes[Symbol.dispose]();
  await proxy.close();
  const row = (what: string, ms: number, aim = '') =>
    `${what}: ${figures.open.toFixed(1)} ms in the open, ${ms.toFixed(1)} ms contained: ${(ms - figures.open).toFixed(1)} ms more${aim}`;
  const aim = ` (aim ${ADDED_MS_AIM} ms)`;
  return [
    row('a command in a workspace', figures.workspaceAgain, aim),
    row("a command in the user's own folder", figures.folderAgain, aim),
    row('a command with allowed hosts', figures.hostsAgain, aim),
    row('the first command in a workspace', figures.workspace),
    row("the first command in the user's own folder", figures.folder),
    row('the first command with allowed hosts', figures.hosts),
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
      const begun = performance.now();
      const spec = { script: 'true', cwd, env: { PATH: process.env['PATH'] ?? '' }, sandbox: policies[name] };
      const how = { callId: `bench-${n}-${name}`, timeoutMs: 60_000, onOutput: () => undefined };
      const end = await runShell({ ...spec, ...how }, new AbortController().signal);
      if (end.exitCode !== 0) throw new Error(`${name}: the command ended with ${end.exitCode}`);
      times.get(name)?.push(performance.now() - begun);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times.get(name) ?? [])])) as Record<Name, number>;
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? 0;
}
