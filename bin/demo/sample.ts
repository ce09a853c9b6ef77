// The demo's sample project: a small library with its tests, in a repository of its own.

import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { UsageError } from '@drover/core/errors';

const FILES: Readonly<Record<string, string>> = {
  'package.json': `{
  "name": "shop",
  "version": "1.0.0",
  "type": "module",
  "scripts": { "test": "node --test" }
}
`,
  'README.md': `# shop

A few functions for a small shop. \`node --test\` tests them.
`,
  'src/index.js': `// The functions of the shop.

export { total } from './price.js';
`,
  'src/price.js': `// What a basket costs.

export function total(items) {
  let sum = 0;
  for (const { price, count } of items) sum += price * count;
  return sum;
}
`,
  'src/format.js': `// Money as people read it.

export function format(amount) {
  return amount.toFixed(2) + ' EUR';
}
`,
  'test/price.test.js': `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { total } from '../src/price.js';

test('a basket costs the sum of its items', () => {
  assert.equal(total([{ price: 2.5, count: 2 }, { price: 1, count: 1 }]), 6);
});
`,
  'test/format.test.js': `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format } from '../src/format.js';

test('money has two digits and a currency', () => {
  assert.equal(format(3), '3.00 EUR');
});
`,
};

// Neither the user's git config nor their hooks and templates have a say in a sample.
const GIT = ['-c', 'user.name=demo', '-c', 'user.email=demo@example.invalid', '-c', 'commit.gpgsign=false'];
const GIT_ENV = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' };

export async function makeDemoSample(folder: string, path: string): Promise<void> {
  for (const [name, text] of Object.entries(FILES)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  await runDemoGit(folder, path, ['init', '--quiet', '--template=', '--initial-branch=main']);
  await runDemoGit(folder, path, ['add', '.']);
  await runDemoGit(folder, path, ['commit', '--quiet', '--message', 'A small shop']);
}

/** The history of a branch since the sample was made, the newest first. */
export async function readDemoHistory(folder: string, path: string, branch: string): Promise<readonly string[]> {
  return (await runDemoGit(folder, path, ['log', '--format=%h %s', `main..${branch}`])).trim().split('\n');
}

async function runDemoGit(folder: string, path: string, args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('git', [...GIT, ...args], {
      cwd: folder,
      env: { PATH: path, ...GIT_ENV },
    });
    return stdout;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new UsageError('the demo needs git, and there is none on the PATH; install it and try again', {
        cause: error,
      });
    }
    throw error;
  }
}
