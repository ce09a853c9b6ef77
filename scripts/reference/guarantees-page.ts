// The page of guarantees: each sentence with links to the tests that prove it.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { guarantees } from '../../test/guarantees.ts';
import { page } from './markdown.ts';

const ROOT = join(import.meta.dirname, '../..');

export function guaranteesPage(): string {
  const proofs = proofsById();
  const entries = Object.entries(guarantees).map(([id, sentence]) => {
    const files = [...(proofs.get(id) ?? [])].map((path) => `[${path.slice('test/'.length)}](../${path})`);
    return `- ${sentence} *${files.join(', ')}*`;
  });
  return page('What drover guarantees', '`test/guarantees.ts`', [
    'Each sentence links to the tests that try to break it. A guarantee without a test fails the build.',
    entries.join('\n'),
  ]);
}

function proofsById(): ReadonlyMap<string, ReadonlySet<string>> {
  const proofs = new Map<string, Set<string>>();
  for (const path of globSync('test/**/*.test.ts', { cwd: ROOT }).toSorted()) {
    const text = readFileSync(join(ROOT, path), 'utf8');
    for (const [, id = ''] of text.matchAll(/\bproves\(\s*'([\w.-]+)'/g))
      proofs.set(id, (proofs.get(id) ?? new Set()).add(path));
  }
  return proofs;
}
