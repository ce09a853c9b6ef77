// pnpm release:pack-client [folder]: packs @drover/client into a tarball with type declarations, here or in the folder.
//
// Guarantees
//   1. The package holds JavaScript and declarations, and depends on no other package.
//   2. The types of the protocol that the client uses are part of it.

import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

const TOP = join(import.meta.dirname, '..');

const stage = mkdtempSync(join(tmpdir(), 'drover-client-'));
try {
  compileInto(stage);
  const { name, version, license, type } = JSON.parse(
    readFileSync(join(TOP, 'packages', 'client', 'package.json'), 'utf8'),
  ) as Readonly<Record<string, string>>;
  const exports = { './*': { types: './dist/client/src/*.d.ts', default: './dist/client/src/*.js' } };
  const manifest = { name, version, license, type, exports, files: ['dist'] };
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  cpSync(join(TOP, 'LICENSE'), join(stage, 'LICENSE'));
  const folder = resolve(process.argv[2] ?? '.');
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: stage, stdio: 'inherit' });
} finally {
  rmSync(stage, { recursive: true, force: true });
}

/** Compiles the client and the protocol, and makes every import relative. */
function compileInto(folder: string): void {
  const config = join(folder, 'tsconfig.json');
  const options = {
    rootDir: join(TOP, 'packages'),
    outDir: join(folder, 'dist'),
    noEmit: false,
    declaration: true,
    rewriteRelativeImportExtensions: true,
    types: ['node'],
    typeRoots: [join(TOP, 'node_modules', '@types')],
  };
  const include = ['client', 'protocol'].map((name) => join(TOP, 'packages', name, 'src'));
  writeFileSync(config, JSON.stringify({ extends: join(TOP, 'tsconfig.json'), compilerOptions: options, include }));
  execFileSync(join(TOP, 'node_modules', '.bin', 'tsc'), ['-p', config], { cwd: TOP, stdio: 'inherit' });
  rmSync(config);
  for (const file of globSync(join(folder, 'dist', '**', '*.{js,d.ts}'))) writeFileSync(file, relativeImports(file));
}

function relativeImports(file: string): string {
  const [dist = ''] = /^.*\/dist\//.exec(file) ?? [];
  const protocol = relative(dirname(file), join(dist, 'protocol', 'src'));
  return readFileSync(file, 'utf8')
    .replaceAll(/'@drover\/protocol\/([\w-]+)'/g, `'${protocol}/$1.js'`)
    .replaceAll(/(from '\.[^']*)\.ts'/g, "$1.js'");
}
