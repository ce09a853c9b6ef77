// Markdown on a terminal: blocks, half-arrived tables, links and hostile text.

import { styleText } from 'node:util';
import { expect, test } from 'vitest';
import { MarkdownStream, prepareMarkdown } from '../../../bin/views/markdown/markdown-stream.ts';
import type { Looks } from '../../../bin/views/markdown/spans.ts';

const PLAIN: Looks = { style: (_format, text) => text, isColoured: false, isAscii: false, hasLinks: false };
const COLOURED: Looks = {
  ...PLAIN,
  style: (format, text) => styleText(format, text, { validateStream: false }),
  isColoured: true,
};

async function streamOf(text: string, { looks = PLAIN, columns = 40 }: { looks?: Looks; columns?: number } = {}) {
  await prepareMarkdown(text, looks.isColoured);
  return new MarkdownStream({ columns: () => columns, looks });
}

async function rendered(text: string, options: { looks?: Looks; columns?: number } = {}): Promise<readonly string[]> {
  const stream = await streamOf(text, options);
  return [...stream.push(text), ...stream.end()];
}

const DOCUMENT = `# Title

Some **bold** text that is long enough to be wrapped, with \`code\`.

- one
- two
  1. deep
- [x] task

> quoted

| name | value |
|:-----|------:|
| a | 1 |
| bb | 22 |

\`\`\`ts
const a = 1;
\`\`\`

[docs](https://example.com/x) &lt;b&gt;
`;

test('headings, lists, quotes, tables, code and links become rows', async () => {
  expect(await rendered(DOCUMENT)).toEqual([
    '# Title',
    '',
    'Some **bold** text that is long enough',
    'to be wrapped, with `code`.',
    '',
    '• one',
    '• two',
    '  1. deep',
    '• [x] task',
    '',
    '│ quoted',
    '',
    'name │ value',
    '─────┼──────',
    'a    │     1',
    'bb   │    22',
    '',
    '  const a = 1;',
    '',
    'docs (https://example.com/x) <b>',
  ]);
});

test('a document fed character by character gives the same rows as the whole', async () => {
  const stream = await streamOf(DOCUMENT);
  const rows = Array.from(DOCUMENT).flatMap((char) => {
    stream.live();
    return stream.push(char);
  });
  expect([...rows, ...stream.end()]).toEqual(await rendered(DOCUMENT));
});

test('half a table is live as far as it came, and stays only when it is whole', async () => {
  const stream = await streamOf('| a');
  expect(stream.push('| name | value |\n|---|')).toEqual([]);
  expect(stream.live()[0]).toContain('| name | value |');
  expect(stream.push('---|\n| a | 1')).toEqual([]);
  expect(stream.live()).toEqual(['name │ value', '─────┼──────', 'a    │ 1']);
  expect(stream.push(' |\n\nNext\n')).toEqual(['name │ value', '─────┼──────', 'a    │ 1']);
  expect(stream.end()).toEqual(['', 'Next']);
});

test('a table wraps its cells to the width, and becomes records if there is no room', async () => {
  const table = '| a | b |\n|---|---|\n| x | some words that are long |\n';
  const narrow = await rendered(table, { columns: 20 });
  expect(narrow.every((row) => row.length <= 20)).toBe(true);
  expect(narrow).toContain('x │ some words that');
  expect(
    await rendered('| alpha | bravo | delta |\n|---|---|---|\n| one two | three | four |\n', { columns: 20 }),
  ).toEqual(['alpha: one two', 'bravo: three', 'delta: four']);
});

test('code is highlighted in colour, and plain without colour', async () => {
  const code = '```ts\nconst a = "x";\n```\n';
  const [coloured] = await rendered(code, { looks: COLOURED });
  expect(coloured).toContain('\u001B[35mconst\u001B[39m');
  expect(coloured).toContain('\u001B[32m"x"\u001B[39m');
  expect(await rendered(code)).toEqual(['  const a = "x";']);
});

test('escape sequences, bidirectional marks and links of the model are inert', async () => {
  const evil =
    'a\u001B]8;;https://evil.example\u0007b\u001B]8;;\u0007 \u202Ec &#27;[31md &#x202e;e\n\n```\n\u001B[2Jx\n```\n';
  const text = (await rendered(evil, { looks: { ...PLAIN, hasLinks: true } })).join('\n');
  // oxlint-disable-next-line no-control-regex
  expect(/[\u001B\u202E\u0007\u0080-\u009F]/.test(text)).toBe(false);
  expect(text).toContain('ab c d e');
});

test('links use OSC 8 where supported, and show an address that their words hide', async () => {
  const looks = { ...PLAIN, hasLinks: true };
  expect(await rendered('[docs](https://example.com/a)', { looks })).toEqual([
    '\u001B]8;;https://example.com/a\u001B\\docs\u001B]8;;\u001B\\',
  ]);
  const [disguised] = await rendered('[bank.com](https://evil.example/)', { looks, columns: 80 });
  expect(disguised).toContain('(https://evil.example/)');
  expect(await rendered('[x](javascript:alert)', { looks })).toEqual(['x (javascript:alert)']);
});
