// Allow rules for the shell: which command lines they cover, word by word.

import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { plainShellCommands } from '@drover/core/permission/shell/plain-commands';
import { Questions } from '@drover/core/permission/questions';
import { loadShellParser } from '@drover/core/permission/shell/shell-parser';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { everyday } from './everyday.ts';
import { judgeCommand } from './tools.ts';

test.each([
  // without a wildcard: exactly these words
  ['shell(git status)', 'git status', true],
  ['shell(git status)', '  git   "status"\n', true],
  ['shell(git status)', 'git status -s', false],
  ['shell(git status)', "git status ''", false],
  ['shell(git status)', "git '' status", false],
  ['shell(git status)', 'git', false],
  ['shell(git status)', 'GIT status', false],
  ['shell(git status)', '/tmp/git status', false],
  ['shell(git   status)', 'git status', true],
  // a last word that ends in *: text within that word, then any words
  ['shell(git log*)', 'git log', true],
  ['shell(git log*)', 'git log --oneline -5', true],
  ['shell(git log*)', 'git logx', true],
  ['shell(git log*)', 'git --no-pager log', false],
  ['shell(npm run *)', 'npm run build --watch', true],
  ['shell(npm run *)', 'npm runx', false],
  ['shell(npm run *)', 'npm run', false],
  // * within a word stays within it
  ['shell(npm run test:*)', 'npm run test:unit', true],
  ['shell(git * --stat)', 'git show --stat', true],
  ['shell(git * --stat)', 'git show HEAD --stat', false],
  ['shell(git * --stat)', 'git show --stat -p', false],
  ['shell(node --test*/a.ts)', 'node --test src/a.ts', false],
  // a quoted word is one word
  ['shell(echo a b)', 'echo a b', true],
  ['shell(echo a b)', 'echo "a b"', false],
  ['shell(echo *)', 'echo "a b" c', true],
  ['shell(grep *)', String.raw`grep -n 'it'\''s $x' "end$" HEAD~1 @{1} a\ b [`, true],
])('%s covers %j: %s', async (rule, command, isCovered) => {
  expect((await judgeCommand(command, { rules: { allow: [rule] } })).effect).toBe(isCovered ? 'allow' : 'ask');
});

test.each([
  ['pnpm test', 'allow'],
  ['pnpm test 2>&1 >/dev/null', 'allow'],
  ['pnpm test &> /dev/null </dev/null', 'allow'],
  ['pnpm test | head -20', 'allow'],
  ['cd src && ! time pnpm test || head -1;', 'allow'],
  ['pnpm test \\\n  --watch=false\n\ncd src', 'allow'],
  ['pnpm install', 'ask'],
  ['pnpm test; touch made', 'ask'],
  ['pnpm test | tee made', 'ask'],
  ['pnpm test $(touch made)', 'ask'],
  ['pnpm test "$X"', 'ask'],
  ['pnpm test src/*.ts', 'ask'],
  ['pnpm test {a,b}', 'ask'],
  ['pnpm test ~/x', 'ask'],
  ['pnpm test a=~/x', 'ask'],
  [`pnpm test $'a'`, 'ask'],
  ['pnpm test > made', 'ask'],
  ['pnpm test > /dev/null/../../made', 'ask'],
  ['pnpm test < made', 'ask'],
  ['pnpm test <<< made', 'ask'],
  ['pnpm test {fd}>/dev/null', 'ask'],
  ['CI=1 pnpm test', 'ask'],
  ['PATH=. pnpm test', 'ask'],
  ['env pnpm test', 'ask'],
  ['$X pnpm test', 'ask'],
  ['pnpm test &', 'ask'],
  ['pnpm test & pnpm test', 'ask'],
  ['(pnpm test)', 'ask'],
  ['for p in a b; do pnpm test; done', 'ask'],
  ['pnpm() { pnpm test; }', 'ask'],
  ['if pnpm test; then pnpm test; fi', 'ask'],
  ['[[ -e x ]] && pnpm test', 'ask'],
  ['pnpm test # that was it', 'ask'],
  ['pnpm test )', 'ask'],
  ["pnpm test 'unfinished", 'ask'],
  ['pnpm\u00a0test', 'ask'],
  ['pnpm test\r', 'ask'],
  ['', 'ask'],
])('with pnpm test, cd and head allowed, %j: %s', async (command, effect) => {
  const allow = ['shell(pnpm test*)', 'shell(cd *)', 'shell(head -*)'];
  expect((await judgeCommand(command, { rules: { allow } })).effect).toBe(effect);
});

test('the verdict names every rule it used', async () => {
  const allow = ['shell(make)', 'shell(pnpm test*)', 'shell(head -*)'];
  expect((await judgeCommand('pnpm test && pnpm test a | head -3', { rules: { allow } })).why).toBe(
    'allowed by the rules shell(pnpm test*), shell(head -*)',
  );
});

test('a refusal names rules that allow the command, and never the whole shell', async () => {
  const questions = new Questions(undefined);
  const never = new AbortController().signal;
  const label = { callId: 'a', toolUseId: 'a', callIndex: 0, index: 0, name: 'shell', summary: '' };
  let narrow = 0;
  for (const subject of everyday) {
    const asked = { requestId: 'a', tool: 'shell', input: subject, subject, why: 'it is new', label };
    const { reason = '' } = await questions.ask(asked, never);
    expect(reason).toContain('--yes would allow it');
    const flags = / --allow '(.*)' or --yes/s.exec(reason)?.[1];
    if (flags === undefined) continue;
    const allow = flags.split("' --allow '").map((rule) => rule.replaceAll(`'\\''`, "'"));
    narrow += 1;
    expect(allow).not.toContain('shell');
    expect((await judgeCommand(subject, { rules: { allow } })).effect, flags).toBe('allow');
  }
  expect(narrow).toBeGreaterThan(100);
});

test('a plain command has exactly the words that bash parses', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'drover-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const parser = await loadShellParser();
  const pieces = [
    'a',
    'b1',
    ' ',
    '  ',
    "'",
    '"',
    '\\',
    '$',
    '`',
    '*',
    '?',
    '[',
    ']',
    '{',
    '}',
    ',',
    '.',
    '..',
    '/',
    '~',
  ];
  const more = [
    '=',
    ':',
    '!',
    '#',
    '-',
    '@',
    '%',
    '^',
    '+',
    '(',
    ')',
    '<',
    '>',
    '|',
    ';',
    '&',
    '\n',
    'é',
    '\u00a0',
    '$x',
  ];
  const text = fc.array(fc.constantFrom(...pieces, ...more), { maxLength: 8 }).map((parts) => parts.join(''));
  const plain = fc.sample(text, 5_000).flatMap((given) => {
    const commands = plainShellCommands(`printf '%s\\0' ${given}`, parser);
    const isPrinted = commands?.length === 1 && !given.includes('>&-'); // `>&-` closes stdout
    return isPrinted ? [{ given, words: commands[0]?.slice(2) ?? [] }] : [];
  });
  expect(plain.length).toBeGreaterThan(100);
  const script = plain.map(({ given }) => `printf '%s\\0' ${given}\nprintf '\\1'`).join('\n');
  const output = execFileSync('bash', { cwd: folder, encoding: 'utf8', input: script });
  // Without arguments printf prints one empty string.
  const expected = plain.map(({ words }) => (words.length === 0 ? '\0' : words.map((word) => `${word}\0`).join('')));
  expect(output.split('\u0001').slice(0, -1)).toEqual(expected);
});
