// README and docs: links lead somewhere, and commands that they show exist with their flags.

import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, test } from 'vitest';
import { commands } from '../../bin/drover.ts';
import { listOptionNames, type Command, SHORT_FORMS } from '../../bin/start/command.ts';

const GENERAL = ['help', 'version', 'completion', '--help', '--version', '-v'];
const pages = [...globSync('*.md'), ...globSync('docs/**/*.md')].toSorted();
const loaded = new Map(
  await Promise.all(commands.map(async ({ name, load }): Promise<[string, Command]> => [name, await load()])),
);

test.each(pages)('links of %s lead to files and headings that exist', (page) => {
  const text = readFileSync(page, 'utf8');
  const links = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  const broken = links.filter((link) => !/^[a-z]+:/.test(link) && !leadsSomewhere(page, link));
  expect(broken).toEqual([]);
});

test.each(pages)('commands in %s exist, with their flags', (page) => {
  expect(commandLines(readFileSync(page, 'utf8')).flatMap(mistakesIn)).toEqual([]);
});

test('every message in docs/troubleshooting.md is one that drover prints', () => {
  const table = readFileSync('docs/troubleshooting.md', 'utf8');
  const messages = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, message = '']) => message);
  const code = globSync(['bin/**/*.ts', 'packages/*/src/**/*.ts']).map((path) => readFileSync(path, 'utf8'));
  expect(messages.length).toBeGreaterThan(20);
  expect(messages.filter((message) => !code.some((text) => text.includes(message)))).toEqual([]);
});

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#');
  const file = path === '' ? page : normalize(join(dirname(page), path));
  if (!existsSync(file)) return false;
  return anchor === undefined || anchorsOf(readFileSync(file, 'utf8')).includes(anchor);
}

function anchorsOf(text: string): readonly string[] {
  return [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, '');
}

/** Lines of shell blocks that start drover, continued lines joined. */
function commandLines(text: string): readonly string[] {
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code.replaceAll('\\\n', ' '));
  return blocks.flatMap((code) =>
    [...code.matchAll(/(?:^|[;&|(] *)drover +([^\n#;|&]*)/gm)].map(([, rest = '']) => rest),
  );
}

function mistakesIn(line: string): readonly string[] {
  const words = line.replaceAll(/"[^"]*"|'[^']*'/g, 'TEXT').split(/\s+/);
  const [name = ''] = words;
  if (GENERAL.includes(name)) return [];
  const command = loaded.get(name);
  if (command === undefined) return [`drover ${line}: no such command`];
  const names = new Set(listOptionNames(command.options).map(([key]) => `--${key}`));
  for (const [key, letter] of SHORT_FORMS) if (names.has(`--${key}`)) names.add(`-${letter}`);
  const flags = words.filter((word) => /^--?[a-zA-Z]/.test(word)).map((word) => word.split('=')[0] ?? '');
  return flags.filter((flag) => !names.has(flag) && flag !== '--help').map((flag) => `drover ${name} has no ${flag}`);
}
