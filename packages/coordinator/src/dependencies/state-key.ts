// Names the state of installed dependencies by their lockfiles and by what the packager noted.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Packagers note what they installed; a change of these files means another state. */
const STATES = [
  'package.json',
  'package-lock.json',
  'npm-shrinkwrap.json',
  'pnpm-lock.yaml',
  'yarn.lock',
  'bun.lock',
  'bun.lockb',
];
const INSTALLED = ['.package-lock.json', '.yarn-integrity', '.modules.yaml'];

/** Equal for equal lockfiles and folders. */
export function dependencyStateKey(folders: readonly string[], top: string): string {
  const hash = createHash('sha256');
  const beside = new Set(['.', ...folders.map((path) => dirname(path))]);
  const files = [
    ...[...beside].flatMap((at) => STATES.map((name) => join(at, name))),
    ...folders.flatMap((path) => INSTALLED.map((name) => join(path, name))),
  ];
  for (const file of files) {
    const path = join(top, file);
    hash.update(`${file}\0`).update(existsSync(path) ? readFileSync(path) : '');
  }
  return hash.update(folders.join('\0')).digest('hex').slice(0, 16);
}
