// Registries on loopback, each with one tiny package, for package managers inside the sandbox.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { runSync } from '../process/run-sync.ts';
import { temporary } from './box.ts';

export type Registry = { readonly port: number; readonly asked: readonly string[] };

/** Serves `tiny-package` 1.0.0 to npm and its kin. */
export function npmRegistry(): Promise<Registry> {
  const folder = temporary();
  write(folder, {
    'package/package.json': JSON.stringify({ name: 'tiny-package', version: '1.0.0', main: 'index.js' }),
    'package/index.js': "module.exports = 'tiny';\n",
  });
  runSync('tar', ['czf', 'tiny.tgz', 'package'], { cwd: folder });
  const tarball = readFileSync(join(folder, 'tiny.tgz'));
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  return serve((path, origin) => {
    if (path === '/tiny-package/-/tiny-package-1.0.0.tgz') return tarball;
    if (path !== '/tiny-package') return undefined;
    const dist = { tarball: `${origin}/tiny-package/-/tiny-package-1.0.0.tgz`, integrity };
    const version = { name: 'tiny-package', version: '1.0.0', main: 'index.js', dist };
    return JSON.stringify({ name: 'tiny-package', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } });
  });
}

/** Serves the wheel of `tiny_wheel` 1.0.0 as a simple index. */
export function pythonIndex(): Promise<Registry> {
  const folder = temporary();
  write(folder, {
    'tiny_wheel.py': "NAME = 'tiny wheel'\n",
    'tiny_wheel-1.0.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: tiny-wheel\nVersion: 1.0.0\n',
    'tiny_wheel-1.0.0.dist-info/WHEEL':
      'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    'tiny_wheel-1.0.0.dist-info/RECORD':
      'tiny_wheel.py,,\ntiny_wheel-1.0.0.dist-info/METADATA,,\ntiny_wheel-1.0.0.dist-info/WHEEL,,\ntiny_wheel-1.0.0.dist-info/RECORD,,\n',
  });
  const file = 'tiny_wheel-1.0.0-py3-none-any.whl';
  runSync('python3', ['-m', 'zipfile', '-c', file, 'tiny_wheel.py', 'tiny_wheel-1.0.0.dist-info'], { cwd: folder });
  const wheel = readFileSync(join(folder, file));
  return serve((path) => {
    if (path === '/simple/tiny-wheel/') return `<!DOCTYPE html><a href="/files/${file}">${file}</a>`;
    return path === `/files/${file}` ? wheel : undefined;
  });
}

/** Serves the crate `tiny-crate` 1.0.0 as a sparse index of cargo, below `/index/`. */
export function crateRegistry(): Promise<Registry> {
  const folder = temporary();
  write(folder, {
    'tiny-crate-1.0.0/Cargo.toml': '[package]\nname = "tiny-crate"\nversion = "1.0.0"\nedition = "2021"\n',
    'tiny-crate-1.0.0/src/lib.rs': 'pub const NAME: &str = "tiny crate";\n',
  });
  runSync('tar', ['czf', 'tiny.crate', 'tiny-crate-1.0.0'], { cwd: folder });
  const crate = readFileSync(join(folder, 'tiny.crate'));
  const cksum = createHash('sha256').update(crate).digest('hex');
  return serve((path, origin) => {
    if (path === '/index/config.json') return JSON.stringify({ dl: `${origin}/crates` });
    if (path === '/crates/tiny-crate/1.0.0/download') return crate;
    if (path !== '/index/ti/ny/tiny-crate') return undefined;
    return JSON.stringify({ name: 'tiny-crate', vers: '1.0.0', deps: [], cksum, features: {}, yanked: false });
  });
}

/** Serves the module `example.com/tiny` v1.0.0 as GOPROXY does. */
export function goProxy(): Promise<Registry> {
  const folder = temporary();
  const mod = 'module example.com/tiny\n\ngo 1.18\n';
  const module = 'example.com/tiny@v1.0.0';
  write(folder, { [`${module}/go.mod`]: mod, [`${module}/tiny.go`]: 'package tiny\n\nconst Name = "tiny module"\n' });
  const add = `import os, zipfile; z = zipfile.ZipFile('tiny.zip', 'w'); [z.write('${module}/' + f) for f in os.listdir('${module}')]; z.close()`;
  runSync('python3', ['-c', add], { cwd: folder });
  const zip = readFileSync(join(folder, 'tiny.zip'));
  const answers: Readonly<Record<string, string | Buffer>> = {
    '/example.com/tiny/@v/list': 'v1.0.0\n',
    '/example.com/tiny/@v/v1.0.0.info': JSON.stringify({ Version: 'v1.0.0', Time: '2026-01-01T00:00:00Z' }),
    '/example.com/tiny/@v/v1.0.0.mod': mod,
    '/example.com/tiny/@v/v1.0.0.zip': zip,
  };
  return serve((path) => answers[path]);
}

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

type Answer = (path: string, origin: string) => string | Buffer | undefined;

function serve(answer: Answer): Promise<Registry> {
  const asked: string[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    asked.push(path);
    const body = answer(path, `http://${request.headers.host ?? 'localhost'}`);
    const type = typeof body === 'string' && body.startsWith('{') ? 'application/json' : 'text/html';
    response.writeHead(body === undefined ? 404 : 200, {
      'content-type': typeof body === 'string' ? type : 'application/octet-stream',
    });
    response.end(body ?? 'none');
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve({ port: typeof address === 'object' && address !== null ? address.port : 0, asked });
    });
  });
}
