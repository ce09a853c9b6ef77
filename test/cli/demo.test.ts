// The demo: the real tools do the real work, and it leaves nothing behind.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { drover } from './fake-io.ts';

test('the demo ends with a mended library, passing tests, and what to type next', async () => {
  const { code, stdout, stderr } = await drover(['demo'], { env: { ANTHROPIC_BASE_URL: 'nonsense' } });
  const folder = /drover rehearsal\/demo in (\S+)/.exec(stdout)?.[1] ?? '';
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(existsSync(dirname(folder))).toBe(false);
  const steady = stdout
    .replace(folder, '<folder>')
    .replace(/\d+(\.\d+)? m?s\b/g, '<time>')
    .replace(/[\d,]+ tokens in.*out/, '<tokens>')
    .replace(/, \d+ lines/, ', <n> lines')
    .replace(/(<time> {2})\d+ lines$/gm, '$1<n> lines')
    // The two run side by side: either may be first, and what directly follows its call is not named again.
    .replace(/(read: test\/slug\.test\.js\n)(?: *✓ .*\n){2}/, '$1  ✓ both\n');
  expect(`\n${steady}`).toMatchInlineSnapshot(`
    "
    A small library with a failing test, and an agent that is told:
      A test of this library fails. Find out why, mend the library, and show that
      the tests pass.

    drover rehearsal/demo in <folder>

    I start with the tests, to see what fails.

      ▸ shell: node --test
      ✗ <time>  exit code 1, <n> lines

    Titles with several separators in a row fail. I read the code and what is expected of it.

      ▸ read: src/slug.js
      ▸ read: test/slug.test.js
      ✓ both

    Each character that is no letter and no digit becomes a dash of its own, so ", " becomes two. A run of them should become one: the pattern lacks a plus.

      ▸ edit: src/slug.js
      ✓ <time>  edited src/slug.js (+1 -1)
           export function slug(title) {
             return title
               .toLowerCase()
          -    .replace(/[^a-z0-9]/g, '-')
          +    .replace(/[^a-z0-9]+/g, '-')
               .replace(/^-+|-+$/g, '');
           }

    Now the tests again.

      ▸ shell: node --test
      ✓ <time>  <n> lines

    Done. In \`src/slug.js\` a run of separators now becomes a single dash. All three tests pass; nothing else was changed.

    ✓ done  <time> · <tokens>

    What changed in src/slug.js, and now node --test passes:
      -    .replace(/[^a-z0-9]/g, '-')
      +    .replace(/[^a-z0-9]+/g, '-')

    Only the model was scripted. With a real one:
      export ANTHROPIC_API_KEY=…
      drover exec --model anthropic/claude-sonnet-4-5 "fix the failing test"
    "
  `);
});

test('--keep leaves the sample project to look at', async () => {
  const { code, stdout } = await drover(['demo', '--keep']);
  const folder = /The project is in (\S+)/.exec(stdout)?.[1] ?? '';
  onTestFinished(() => rm(dirname(folder), { recursive: true, force: true }));
  expect([code, existsSync(`${folder}/src/slug.js`)]).toEqual([0, true]);
});

test('without git the demo says so', async () => {
  const { code, stdout, stderr } = await drover(['demo'], { env: { PATH: '/nowhere' } });
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr: 'drover: the demo needs git, and there is none on the PATH; install it and try again\n',
  });
});
