// ARCHITECTURE.md names every source folder, and each file and function that it names is where it says.

import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';

const lines = readFileSync('ARCHITECTURE.md', 'utf8').split('\n');
const PATH = /`((?:bin|packages|test)\/[\w./-]*)`/g;

const pathsIn = (line: string): readonly string[] => [...line.matchAll(PATH)].map(([, path = '']) => path);

test('every source folder has a row in ARCHITECTURE.md', () => {
  const folders = globSync(['bin', 'bin/**', 'packages/*/src', 'packages/*/src/**']).filter(
    (path) => statSync(path).isDirectory() && globSync(`${path}/*.{ts,css}`).length > 0,
  );
  const rows = new Set(lines.filter((line) => line.startsWith('| `')).flatMap(pathsIn));
  expect(folders.length).toBeGreaterThan(100);
  expect(folders.filter((folder) => !rows.has(`${folder}/`) && !folder.endsWith('coordinator/src'))).toEqual([]);
});

test('a file that a row of ARCHITECTURE.md names is in a folder of that row', () => {
  const lost = lines.flatMap((line) => {
    const folders = pathsIn(line).filter((path) => path.endsWith('/'));
    const files = [...line.matchAll(/`([\w-]+\.ts)`/g)].map(([, file = '']) => file);
    if (folders.length === 0) return [];
    return files.filter((file) => !folders.some((folder) => existsSync(`${folder}${file}`)));
  });
  expect(lost).toEqual([]);
});

test('a function that ARCHITECTURE.md names in a file is in that file', () => {
  const named = lines.flatMap((line) => [...line.matchAll(/`(\w+)` in `((?:bin|packages)\/[\w./-]+\.ts)`/g)]);
  expect(named.length).toBeGreaterThan(10);
  const gone = named.filter(([, name, path]) => !new RegExp(`\\b${name}\\b`).test(readFileSync(path ?? '', 'utf8')));
  expect(gone.map(([text]) => text)).toEqual([]);
});
