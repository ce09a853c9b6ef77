// The package that users install: its manifest, its files, and the licenses of the libraries in its bundle.
//
// Guarantees
//   1. The package holds the bundle, the page, examples, README and LICENSE: no sources and no tests.
//   2. It depends on ripgrep only, which is a program, and on no package of this workspace.

import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type RolldownOutput } from 'rolldown';
import { parse } from 'yaml';
import parts from '../rolldown.config.ts';

const TOP = join(import.meta.dirname, '..');
const UNBUNDLED = ['@vscode/ripgrep'];
const EXAMPLES = ['batch.schema.json', 'ci', 'no-console', 'no-console.yaml', 'rehearsal'];

type Manifest = Readonly<Record<string, unknown>>;

/** The manifest of the installable package. Exact versions come from the catalog of the workspace. */
export function releaseManifest(): Manifest {
  const { name, version, description, license, engines } = readJson(join(TOP, 'package.json'));
  const { catalog } = parse(readFileSync(join(TOP, 'pnpm-workspace.yaml'), 'utf8')) as {
    readonly catalog: Readonly<Record<string, string>>;
  };
  return {
    name,
    version,
    description,
    license,
    engines,
    bin: { drover: 'bin/drover.cjs' },
    files: ['bin', 'dist', 'examples', 'THIRD-PARTY-LICENSES'],
    dependencies: Object.fromEntries(UNBUNDLED.map((library) => [library, catalog[library]])),
  };
}

/** Writes all files of the package into an empty folder. */
export async function stageRelease(folder: string): Promise<void> {
  const outputs = await bundleInto(join(folder, 'dist'));
  mkdirSync(join(folder, 'bin'));
  for (const path of ['bin/drover.cjs', 'README.md', 'LICENSE', ...EXAMPLES.map((name) => `examples/${name}`)])
    cpSync(join(TOP, path), join(folder, path), { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(releaseManifest(), null, 2)}\n`);
  writeFileSync(join(folder, 'THIRD-PARTY-LICENSES'), licensesOf(outputs));
}

async function bundleInto(dir: string): Promise<readonly RolldownOutput[]> {
  const outputs: RolldownOutput[] = [];
  for (const part of parts) {
    const [output] = [part.output ?? []].flat();
    outputs.push(await build({ ...part, cwd: TOP, output: { ...output, dir }, logLevel: 'silent' }));
  }
  return outputs;
}

/** The license text of every library that is part of the bundle. */
function licensesOf(outputs: readonly RolldownOutput[]): string {
  const modules = outputs.flatMap(({ output }) =>
    output.flatMap((each) => (each.type === 'chunk' ? each.moduleIds : [])),
  );
  const folders = new Set(modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0] ?? []));
  const texts = [...folders].map((folder) => {
    const { name, version, license } = readJson(join(folder, 'package.json'));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const text = file === undefined ? '' : `\n\n${readFileSync(join(folder, file), 'utf8').trim()}`;
    return `${String(name)} ${String(version)} (${String(license)})${text}\n`;
  });
  return [...new Set(texts)].toSorted().join(`\n${'-'.repeat(80)}\n\n`);
}

function readJson(path: string): Manifest {
  return JSON.parse(readFileSync(path, 'utf8')) as Manifest;
}
