// pnpm release:pack [folder]: packs drover into a tarball that npm installs, here or in the folder.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { stageRelease } from './release.ts';

const folder = resolve(process.argv[2] ?? '.');
const stage = mkdtempSync(join(tmpdir(), 'drover-release-'));
try {
  await stageRelease(stage);
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: stage, stdio: 'inherit' });
} finally {
  rmSync(stage, { recursive: true, force: true });
}
