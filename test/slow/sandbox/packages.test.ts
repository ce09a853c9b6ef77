// Package managers work inside with the host they need allowed, and fail within seconds without it.

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programOn } from '@drover/core/tools/process/program';
import { parseHostRule } from '@drover/sandbox/net/hosts';
import { openProxy } from '@drover/sandbox/net/proxy';
import { expect, onTestFinished, test } from 'vitest';
import { box, type Box, inSandbox, runInside } from '../../support/sandbox/box.ts';
import { npmRegistry, pythonIndex } from '../../support/sandbox/registries.ts';

const PNPM = programOn(process.env['PATH'] ?? '', 'pnpm');
const has = (name: string) => programOn(process.env['PATH'] ?? '', name) !== undefined;

inSandbox('package managers inside the sandbox', (system) => {
  /** A box in which commands reach these hosts. */
  async function connected(hosts: readonly string[]): Promise<Box & { readonly seen: readonly string[] }> {
    const folder = mkdtempSync(join(tmpdir(), 'drover-net-'));
    const seen: string[] = [];
    const rules = hosts.map((host) => parseHostRule(host));
    const socket = join(folder, 'proxy');
    const proxy = await openProxy({
      rules,
      socket,
      onConnection: ({ host, port }) => void seen.push(`${host}:${port}`),
    });
    onTestFinished(async () => {
      await proxy.close();
      rmSync(folder, { recursive: true, force: true });
    });
    const plain = box(system);
    return { ...plain, policy: { ...plain.policy, proxy: { socket, rules } }, seen };
  }

  const project = (root: string, port: number) => {
    writeFileSync(
      join(root, 'package.json'),
      JSON.stringify({ name: 'app', version: '1.0.0', dependencies: { 'tiny-package': '1.0.0' } }),
    );
    writeFileSync(
      join(root, '.npmrc'),
      `registry=http://localhost:${port}/\nupdate-notifier=false\nfund=false\naudit=false\n`,
    );
  };

  test.runIf(has('npm'))('npm install and npm ci work with their registry allowed', async () => {
    const { port, asked } = await npmRegistry();
    const here = await connected([`localhost:${port}`]);
    project(here.root, port);
    const ran = await runInside(
      here,
      'npm install --silent && rm -rf node_modules && npm ci --silent && node -p "require(\'tiny-package\')"',
    );
    expect(ran.output).toBe('tiny\n');
    expect(asked).toContain('/tiny-package/-/tiny-package-1.0.0.tgz');
    expect(new Set(here.seen.map((each) => each.replace(/^.*:/, '')))).toEqual(new Set([String(port)]));
  });

  test.runIf(PNPM !== undefined)('pnpm install works with its registry allowed', async () => {
    const { port } = await npmRegistry();
    const there = await connected([`localhost:${port}`]);
    const program = realpathSync(PNPM ?? '');
    const here = { ...there, policy: { ...there.policy, readable: [join(program, '../..')] } };
    project(here.root, port);
    const install = `'${program}' install --silent --config.manage-package-manager-versions=false`;
    const ran = await runInside(here, `${install} && '${system.node}' -p "require('tiny-package')"`);
    expect(ran.output).toMatch(/tiny\n$/);
  });

  test.runIf(has('python3'))('pip install works with its index allowed', async () => {
    const { port } = await pythonIndex();
    const here = await connected([`localhost:${port}`]);
    // A pyenv shim would update its own folder afterwards; the folder is read-only, so it would fail.
    const python = '"$(python3 -c "import sys; print(sys.executable)")"';
    const index = `--index-url http://localhost:${port}/simple/ --trusted-host localhost`;
    const install = `${python} -m pip install -q --disable-pip-version-check --no-cache-dir --root-user-action=ignore`;
    const use = 'PYTHONPATH=lib python3 -c "import tiny_wheel; print(tiny_wheel.NAME)"';
    const ran = await runInside(here, `${install} ${index} --target lib tiny-wheel && ${use}`);
    expect(ran.output).toMatch(/tiny wheel\n$/);
  });

  test.runIf(has('npm'))('npm fails within seconds if its registry is not allowed, and names the host', async () => {
    const here = await connected(['other.example.com']);
    project(here.root, 1);
    const begun = performance.now();
    const ran = await runInside(here, 'npm install --registry http://packages.example.com/ 2>&1', {
      timeoutMs: 30_000,
    });
    expect(ran.exitCode).not.toBe(0);
    expect(ran.output).toContain('packages.example.com');
    expect(performance.now() - begun).toBeLessThan(15_000);
  });

  test.runIf(has('npm'))('npm fails within seconds without a network', async () => {
    const here = box(system);
    project(here.root, 1);
    const begun = performance.now();
    const ran = await runInside(here, 'npm install --registry http://packages.example.com/ 2>&1', {
      timeoutMs: 30_000,
    });
    expect(ran.exitCode).not.toBe(0);
    expect(performance.now() - begun).toBeLessThan(15_000);
  });
});
