// Package managers work inside with the host they need allowed, and fail within seconds without it.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findProgramOn } from '@drover/core/tools/process/program';
import { parseHostRule } from '@drover/sandbox/net/hosts';
import { openSandboxProxy } from '@drover/sandbox/net/proxy';
import { expect, onTestFinished, test } from 'vitest';
import { box, type Box, inSandbox, runInside } from '../../support/sandbox/box.ts';
import { crateRegistry, goProxy, npmRegistry, pythonIndex } from '../../support/sandbox/registries.ts';

const PNPM = findPnpm();

function has(name: string): boolean {
  if (findProgramOn(process.env['PATH'] ?? '', name) !== undefined) return true;
  process.stderr.write(`\n*** LEFT OUT, for want of ${name}: packages of ${name} inside the sandbox.\n\n`);
  return false;
}

/** The pnpm on the PATH, or the one that the project pins, from the registry. */
function findPnpm(): string | undefined {
  const found = findProgramOn(process.env['PATH'] ?? '', 'pnpm');
  if (found !== undefined) return found;
  try {
    const args = ['--yes', '--package', 'pnpm@12.18.0', '--call', 'command -v pnpm'];
    return execFileSync('npx', args, { encoding: 'utf8', timeout: 120_000, cwd: tmpdir() }).trim();
  } catch {
    process.stderr.write('\n*** LEFT OUT, for want of pnpm and a registry: pnpm install inside the sandbox.\n\n');
    return undefined;
  }
}

inSandbox('package managers inside the sandbox', (system) => {
  /** A box in which commands reach these hosts. All names resolve to this machine. */
  async function connected(hosts: readonly string[]): Promise<Box & { readonly seen: readonly string[] }> {
    const folder = mkdtempSync(join(tmpdir(), 'drover-net-'));
    const seen: string[] = [];
    const rules = hosts.map((host) => parseHostRule(host));
    const socket = join(folder, 'proxy');
    const proxy = await openSandboxProxy({
      rules,
      socket,
      resolve: async () => ['127.0.0.1'],
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

  test.runIf(has('cargo'))('cargo builds a crate with a path dependency and one of an allowed registry', async () => {
    const { port, asked } = await crateRegistry();
    const here = await connected([`localhost:${port}`]);
    fill(here.root, {
      'Cargo.toml':
        '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\ntiny-crate = "1.0.0"\nbeside = { path = "beside" }\n',
      'src/main.rs': 'fn main() { println!("{} {}", tiny_crate::NAME, beside::twice(21)); }\n',
      'beside/Cargo.toml': '[package]\nname = "beside"\nversion = "0.1.0"\nedition = "2021"\n',
      'beside/src/lib.rs': 'pub fn twice(n: u32) -> u32 { 2 * n }\n',
      '.cargo/config.toml': `[source.crates-io]\nreplace-with = "mirror"\n[source.mirror]\nregistry = "sparse+http://localhost:${port}/index/"\n`,
    });
    const ran = await runInside(here, 'cargo build -q 2>&1 && target/debug/app');
    expect(ran.output).toBe('tiny crate 42\n');
    expect(asked).toContain('/crates/tiny-crate/1.0.0/download');
    expect(new Set(here.seen)).toEqual(new Set([`localhost:${port}`]));
  });

  test.runIf(has('go'))('go builds a module with a package of its own and one of an allowed proxy', async () => {
    const { port, asked } = await goProxy();
    // Go never uses a proxy for localhost, so the mirror has a name.
    const mirror = `mirror.example.com:${port}`;
    const here = await connected([mirror, `127.0.0.1:${port}`]);
    fill(here.root, {
      'go.mod': 'module example.com/app\n\ngo 1.18\n\nrequire example.com/tiny v1.0.0\n',
      'main.go':
        'package main\n\nimport (\n\t"fmt"\n\n\t"example.com/app/beside"\n\t"example.com/tiny"\n)\n\nfunc main() { fmt.Println(tiny.Name, beside.Twice(21)) }\n',
      'beside/beside.go': 'package beside\n\nfunc Twice(n int) int { return 2 * n }\n',
    });
    const settings = `GOPROXY=http://${mirror} GOSUMDB=off GOFLAGS=-mod=mod CGO_ENABLED=0`;
    const ran = await runInside(here, `${settings} go build -o app . 2>/dev/null; ./app`, { timeoutMs: 300_000 });
    expect(ran.output).toBe('tiny module 42\n');
    expect(asked).toContain('/example.com/tiny/@v/v1.0.0.zip');
    expect(new Set(here.seen)).toEqual(new Set([mirror]));
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

function fill(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}
