// Every promise is proven by a test that cites it, and the README lists them all.

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

test('the README lists the guarantees as they are', () => {
  const list = Object.values(guarantees)
    .map((sentence) => `- ${sentence}`)
    .join('\n');
  const section = /<!-- guarantees -->\n([\s\S]*?)\n<!-- \/guarantees -->/.exec(readFileSync('README.md', 'utf8'));
  expect(section?.[1]).toBe(list);
});
