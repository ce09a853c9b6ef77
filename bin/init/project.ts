// Detects from a project's files how it is tested and where its sources are.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readOwnFile } from '@drover/core/files/own-file';

const GATES_MAX = 3;
const SCRIPTS = ['test', 'lint', 'types', 'typecheck'];
// The test script that npm init writes, which always fails.
const NO_TEST = /no test specified/;

export type Project = { readonly gates: readonly string[]; readonly sources: string };

export async function detectProject(folder: string): Promise<Project> {
  const texts = new Map<string, string>();
  for (const name of ['package.json', 'tsconfig.json', 'Makefile', ...KINDS.map(({ file }) => file)]) {
    const found = await readOwnFile({ path: join(folder, name), within: folder });
    if (found.kind === 'read') texts.set(name, found.bytes.toString('utf8'));
  }
  const kinds = KINDS.filter(({ file }) => texts.has(file));
  const targets = [...(texts.get('Makefile') ?? '').matchAll(/^(test|check)\s*:(?!=)/gm)].map(([, name]) => name);
  const gates = [
    ...listProjectScripts(folder, texts.get('package.json') ?? '{}'),
    ...kinds.map(({ gate }) => gate),
    ...targets.slice(0, 1).map((name) => `make ${name}`),
  ];
  const script = texts.has('tsconfig.json') ? '**/*.ts' : '**/*.js';
  const sources = texts.has('package.json') ? script : (kinds[0]?.sources ?? '**/*.md');
  return { gates: gates.slice(0, GATES_MAX), sources };
}

const LOCKS: ReadonlyMap<string, string> = new Map([
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
]);

const KINDS = [
  { file: 'Cargo.toml', gate: 'cargo test', sources: '**/*.rs' },
  { file: 'go.mod', gate: 'go test ./...', sources: '**/*.go' },
  { file: 'pyproject.toml', gate: 'python -m pytest', sources: '**/*.py' },
] as const;

function listProjectScripts(folder: string, text: string): readonly string[] {
  const runner = [...LOCKS].find(([file]) => existsSync(join(folder, file)))?.[1] ?? 'npm';
  const scripts = readPackageScripts(text);
  return SCRIPTS.filter((name) => scripts.has(name) && !NO_TEST.test(scripts.get(name) ?? '')).map((name) =>
    name === 'test' && runner !== 'bun' ? `${runner} test` : `${runner} run ${name}`,
  );
}

/** Scripts of a package.json; none if it is invalid. */
function readPackageScripts(text: string): ReadonlyMap<string, string> {
  try {
    const { scripts } = JSON.parse(text) as { readonly scripts?: Readonly<Record<string, unknown>> };
    return new Map(Object.entries(scripts ?? {}).map(([name, script]) => [name, String(script)]));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return new Map();
    throw error;
  }
}
