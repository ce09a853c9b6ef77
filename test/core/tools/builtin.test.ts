// The built-in tools as a set.

import { execFileSync } from 'node:child_process';
import { builtinTools } from '@drover/core/tools/builtin';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { submitResult } from '@drover/core/tools/submit-result';
import { expect, test } from 'vitest';
import { callIn } from '../../support/workspace.ts';

const definitions = [...builtinTools, submitResult].map(({ name, description, schema }) => ({
  name,
  description,
  schema,
}));

test('the tools have a fixed order, each with its effects', () => {
  expect(builtinTools.map(({ name, access, repeatable, alone }) => ({ name, access, repeatable, alone }))).toEqual([
    { name: 'read', access: 'read', repeatable: true, alone: false },
    { name: 'write', access: 'write', repeatable: true, alone: false },
    { name: 'edit', access: 'write', repeatable: false, alone: false },
    { name: 'list', access: 'read', repeatable: true, alone: false },
    { name: 'glob', access: 'read', repeatable: true, alone: false },
    { name: 'grep', access: 'read', repeatable: true, alone: false },
    { name: 'shell', access: 'run', repeatable: false, alone: false },
    { name: 'git', access: 'read', repeatable: true, alone: false },
  ]);
});

test('the definitions of all tools cost less than 1,500 tokens', () => {
  expect(Array.from(JSON.stringify(definitions)).length / 4).toBeLessThan(1_500);
});

test('the definitions are the same bytes in every process', () => {
  const other = execFileSync(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { builtinTools } from '@drover/core/tools/builtin';
       import { submitResult } from '@drover/core/tools/submit-result';
       const list = [...builtinTools, submitResult].map(({ name, description, schema }) => ({ name, description, schema }));
       process.stdout.write(JSON.stringify(list));`,
    ],
    { encoding: 'utf8' },
  );
  expect(other).toBe(JSON.stringify(definitions));
});

test('every schema is a closed object without noise', () => {
  for (const { schema } of definitions) {
    expect(schema).toMatchObject({ type: 'object', additionalProperties: false });
    expect(JSON.stringify(schema)).not.toMatch(/\$schema|9007199254740991/);
  }
});

test('a worker’s report is received with its details', async () => {
  expect(await callIn({}, submitResult, { summary: 'did it', files: ['a.ts'] })).toEqual({
    output: 'received',
    details: { summary: 'did it', files: ['a.ts'] },
  });
  expect(submitResult.parse({})).toEqual({ ok: false, problem: 'summary: required' });
});

test('a child sees the variables it needs, and no secret', () => {
  const needed = { PATH: '/bin', HOME: '/h', LANG: 'C', LC_ALL: 'C', TERM: 'xterm', TMPDIR: '/t', TZ: 'UTC', CI: '1' };
  const secret = {
    ANTHROPIC_API_KEY: 'k',
    OPENAI_API_KEY: 'k',
    GITHUB_TOKEN: 't',
    AWS_SECRET_ACCESS_KEY: 's',
    NPM_TOKEN: 't',
    SSH_AUTH_SOCK: '/agent',
    DATABASE_URL: 'postgres://user:password@host',
    NODE_OPTIONS: '--require=x',
    BASH_ENV: '/x',
    ENV: '/x',
    LD_PRELOAD: '/x.so',
    GIT_SSH_COMMAND: 'x',
    'BASH_FUNC_ls%%': '() { evil; }',
    HTTPS_PROXY: 'http://user:password@proxy',
    UNSET: undefined,
  };
  expect(childProcessEnvironment({ ...needed, ...secret, HTTP_PROXY: 'http://proxy' })).toEqual({
    ...needed,
    HTTP_PROXY: 'http://proxy',
  });
});

test('relative entries of PATH are dropped: a workspace file could replace a command', () => {
  expect(childProcessEnvironment({ PATH: '/usr/bin:bin:./node_modules/.bin::/bin' })).toEqual({
    PATH: '/usr/bin:/bin',
  });
});
