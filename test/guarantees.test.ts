// Every guarantee is proven by a test that cites it. `docs/guarantees.md` lists them all with their tests.

import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { guarantees } from './guarantees.ts';

test('every guarantee is proven by a test', () => {
  const cited = globSync('test/**/*.test.ts').flatMap((path) => [
    ...readFileSync(path, 'utf8').matchAll(/\bproves\(\s*'([\w.-]+)'/g),
  ]);
  const proven = new Set(cited.map((match) => match[1]));
  expect(Object.keys(guarantees).filter((id) => !proven.has(id))).toEqual([]);
});
