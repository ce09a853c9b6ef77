// The demo's sample project: a small library with a test that fails, in a repository of its own.

import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { UsageError } from '@drover/core/failure';

const FILES: Readonly<Record<string, string>> = {
  'package.json': `{
  "name": "slugs",
  "version": "1.0.0",
  "type": "module",
  "scripts": { "test": "node --test" }
}
`,
  'src/slug.js': `// The part of an address that names a page, made from the page's title.

export function slug(title) {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '-')
    .replace(/^-+|-+$/g, '');
}
`,
  'test/slug.test.js': `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { slug } from '../src/slug.js';

test('letters become lower case', () => {
  assert.equal(slug('Hello'), 'hello');
});

test('a space becomes a dash', () => {
  assert.equal(slug('Hello World'), 'hello-world');
});

test('several separators become one dash', () => {
  assert.equal(slug('Hello, World & friends'), 'hello-world-friends');
});
`,
};

// Neither the user's git config nor their hooks and templates have a say in a sample.
const GIT = ['-c', 'user.name=demo', '-c', 'user.email=demo@example.invalid', '-c', 'commit.gpgsign=false'];
const GIT_ENV = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' };

export async function makeSample(folder: string, path: string): Promise<void> {
  for (const [name, text] of Object.entries(FILES)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  await git(folder, path, ['init', '--quiet', '--template=']);
  await git(folder, path, ['add', '.']);
  await git(folder, path, ['commit', '--quiet', '--message', 'A library with a failing test']);
}

/** What differs from the sample as it was made. */
export async function changesIn(folder: string, path: string): Promise<string> {
  return git(folder, path, ['diff', '--no-color', '--no-ext-diff', '--unified=0']);
}

async function git(folder: string, path: string, args: readonly string[]): Promise<string> {
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
