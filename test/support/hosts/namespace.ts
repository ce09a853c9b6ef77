// Network namespaces that stand in for other machines. Only root can make them.

import { spawnSync } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, onTestFinished } from 'vitest';
import { runSync } from '../process/run-sync.ts';
import { temporaryFolder } from '../workspace.ts';

export type Namespace = {
  /** The address of this machine, seen from there. */
  readonly here: string;
  /** A program that runs Node there. */
  readonly node: string;
  /** Unplugs the cable, or plugs it in again. */
  readonly link: (state: 'up' | 'down') => void;
};

/** A group of tests that need namespaces. Where none can be made they are left out, and a line says so. */
export function withNamespaces(title: string, tests: (open: (n: number) => Promise<Namespace>) => void): void {
  const canOpen = spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up']).status === 0;
  if (!canOpen) process.stderr.write(`\n*** LEFT OUT, because only root can make network namespaces: ${title}.\n\n`);
  describe.skipIf(!canOpen)(title, () => tests(openNamespace));
}

async function openNamespace(n: number): Promise<Namespace> {
  const name = `drover${process.pid}n${n}`;
  const [near, far] = [`dv${process.pid % 10_000}n${n}a`, `dv${process.pid % 10_000}n${n}b`];
  const [here, there] = [`10.213.${n}.1`, `10.213.${n}.2`];
  const ip = (...args: readonly string[]) => void runSync('ip', args, { cwd: '/' });
  ip('netns', 'add', name);
  // Its end of the cable goes with it.
  onTestFinished(() => ip('netns', 'del', name));
  ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', name);
  ip('addr', 'add', `${here}/24`, 'dev', near);
  ip('link', 'set', near, 'up');
  ip('-n', name, 'addr', 'add', `${there}/24`, 'dev', far);
  ip('-n', name, 'link', 'set', far, 'up');
  ip('-n', name, 'link', 'set', 'lo', 'up');
  const node = join(await temporaryFolder(), 'node');
  await writeFile(node, `#!/bin/sh\nexec ip netns exec ${name} '${process.execPath}' "$@"\n`);
  await chmod(node, 0o755);
  return { here, node, link: (state) => ip('link', 'set', near, state) };
}
