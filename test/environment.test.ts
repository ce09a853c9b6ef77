// The table of environment variables in the README: every one of drover's and of the providers, and no other.

import { globSync, readFileSync } from 'node:fs';
import { knownProviders } from '@drover/core/model/catalog';
import { expect, test } from 'vitest';

// Drover sets these for its own children, and users do not.
const INTERNAL = ['DROVER_CHILD', 'DROVER_PROBE'];

function tableOf(readme: string): readonly string[] {
  const table = /<!-- environment -->\n([\s\S]*?)<!-- \/environment -->/.exec(readme)?.[1] ?? '';
  return [...table.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name = '']) => name).sort();
}

test('the README lists every variable that drover reads, and no other', () => {
  const sources = globSync(['bin/**/*.{ts,cjs}', 'packages/*/src/**/*.ts']).map((path) => readFileSync(path, 'utf8'));
  const own = sources.flatMap((text) => [...text.matchAll(/\bDROVER_[A-Z_]*[A-Z]\b/g)].map(([name]) => name));
  const providers = knownProviders.flatMap(({ keyEnv, baseUrlEnv }) => [keyEnv, baseUrlEnv]);
  const read = new Set([...own, ...providers]);
  for (const name of INTERNAL) read.delete(name);
  expect(tableOf(readFileSync('README.md', 'utf8'))).toEqual([...read].sort());
});
