// Front matter as people write it: tolerant where a value is safe, and with a place for every mistake.

import { expect, test } from 'vitest';
import { frontMatterNames, readFrontMatter, frontMatterText } from '@drover/extensions/front-matter';

/** The name, the description and the body. */
function read(text: string): readonly unknown[] {
  const found = readFrontMatter(text, 'SKILL.md');
  return 'mistake' in found
    ? [found.mistake]
    : [frontMatterText(found, 'name'), frontMatterText(found, 'description'), found.body];
}

test.each([
  ['plain values', '---\nname: pdf\ndescription: Reads PDF files.\n---\nBody', 'Reads PDF files.'],
  [
    'unquoted text with a colon',
    '---\nname: pdf\ndescription: Use when: a file is a PDF\n---\nBody',
    'Use when: a file is a PDF',
  ],
  ['quotes in unquoted text', '---\nname: pdf\ndescription: says "no" # not a comment: x\n---\nBody', undefined],
  ['a literal block', '---\nname: pdf\ndescription: |\n  One.\n  Two: three.\n---\nBody', 'One. Two: three.'],
  ['a folded block', '---\nname: pdf\ndescription: >-\n  One\n  two\n---\nBody', 'One two'],
  ['a value on the next line', '---\nname: pdf\ndescription:\n  On the next line.\n---\nBody', 'On the next line.'],
  [
    'an unindented continuation',
    '---\nname: pdf\ndescription: Begins here\nand goes on.\n---\nBody',
    'Begins here and goes on.',
  ],
  ['CRLF', '---\r\nname: pdf\r\ndescription: Windows.\r\n---\r\nBody', 'Windows.'],
  ['a byte order mark', '\uFEFF---\nname: pdf\ndescription: Marked.\n---\nBody', 'Marked.'],
  ['tabs', '---\nname:\tpdf\ndescription:\tTabbed.\n---\nBody', 'Tabbed.'],
  ['an alias, which stays text', '---\nname: pdf\ndescription: *gone\n---\nBody', '*gone'],
  ['a second description, which does not count', '---\nname: pdf\ndescription: a\ndescription: b\n---\nBody', 'a'],
])('reads %s', (_, text, description) => {
  const [name, told, body] = read(text);
  expect([name, body]).toEqual(['pdf', 'Body']);
  if (description !== undefined) expect(told).toBe(description);
  else expect(told).toMatch(/^says "no"/);
});

test('a broken value leaves the other fields as they are', () => {
  const text = '---\nname: pdf\ndescription: {[ broken\ntools: [Read\nmodel: inherit\n---\n';
  const found = readFrontMatter(text, 'a.md');
  expect(
    'mistake' in found
      ? found
      : [frontMatterText(found, 'name'), frontMatterText(found, 'model'), frontMatterNames(found, 'tools')],
  ).toEqual(['pdf', 'inherit', ['[Read']]);
});

test.each([
  ['a string', 'tools: Read, Grep, Bash(git diff:*, git log:*)', ['Read', 'Grep', 'Bash(git diff:*, git log:*)']],
  ['a list', 'tools:\n  - Read\n  - Grep', ['Read', 'Grep']],
  ['nothing', 'tools:', undefined],
])('reads names from %s', (_, line, names) => {
  const found = readFrontMatter(`---\n${line}\n---\n`, 'a.md');
  expect('mistake' in found ? found : frontMatterNames(found, 'tools')).toEqual(names);
});

test('the body keeps its own --- lines; front matter may end with the file', () => {
  expect(read('---\nname: a\n---\nOne\n---\nTwo')).toEqual(['a', undefined, 'One\n---\nTwo']);
  expect(read('---\nname: a\ndescription: b')).toEqual(['a', 'b', '']);
});

test('a file without front matter is a mistake with its line', () => {
  const fix = 'the front matter is missing; begin the file with a line ---';
  expect([read('# Title\n'), read('\n\nText'), read('')]).toEqual([
    [`SKILL.md:1: ${fix}`],
    [`SKILL.md:3: ${fix}`],
    [`SKILL.md:1: ${fix}`],
  ]);
});
