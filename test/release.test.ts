// The manifest of the package that users install. test/slow/release installs it.

import { expect, test } from 'vitest';
import { releaseManifest } from '../scripts/release.ts';

test('the released package depends on ripgrep only, in an exact version', () => {
  const manifest = releaseManifest();
  expect(Object.keys(manifest['dependencies'] ?? {})).toEqual(['@vscode/ripgrep']);
  expect(Object.values(manifest['dependencies'] ?? {})).toEqual([expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
  expect(JSON.stringify(manifest)).not.toMatch(/@drover\/|workspace:|catalog:|"private"|https?:/);
});

test('the released manifest names the program and the files of the package', () => {
  expect(releaseManifest()).toMatchObject({
    name: 'drover',
    bin: { drover: 'bin/drover.cjs' },
    files: ['bin', 'dist', 'examples', 'THIRD-PARTY-LICENSES'],
  });
});
