// House rule for prose: counts sentence openers, impersonal words and turns of phrase that plain English does without.
//
// Each area has a number, which may only fall. Lower it when you rewrite a text; never raise it.

import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const OPENER = /(?:^|[.!?] )(?:What|Who|Whoever|Whatever|That|Of|So much|So many|Where [^.,]* is)\b/g;
const IMPERSONAL = /\b(?:somebody|nobody|whoever|anybody|one's own)\b/gi;
// Turns of phrase for: is not a, continues, is in, none of, if there is none.
const ODD =
  /(?<!there )\b(?:is|are|was|were) no (?!longer|more|other|such|better|larger)\w+|\b(?:go|goes|going|gone|went) on\b|\bstands? (?:behind|between|in(?! for)|on|at)\b|\bnothing of\b|\b(?:that|which) (?:is|are) none\b|\bwhere there (?:is|are)\b/gi;

/** Comments of a source text, one string each: neighbouring `//` lines are one comment. */
function commentsIn(text: string): readonly string[] {
  const blocks = text.match(/\/\*[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n?)+|(?<=[;,{)] )\/\/ .*/gm) ?? [];
  return blocks.map((block) => block.replaceAll(/^[ \t]*(?:\/\*\*?|\*\/|\*|\/\/)[ \t]?|\*\/$/gm, ''));
}

const headerIn = (text: string): string => commentsIn(text.replace(/^#!.*\n/, ''))[0] ?? '';
const stringsIn = (text: string): readonly string[] => text.match(/'(?:[^'\\\n]|\\.)*'|`[^`]*`/g) ?? [];
const paragraphsIn = (text: string): readonly string[] =>
  text
    .replaceAll(/```[\s\S]*?```/g, '')
    .replaceAll(/^(?:[-*|] |\d+\. |#+ .*)/gm, '')
    .split('\n');

function count(pattern: string | readonly string[], partsOf: (text: string) => readonly string[]): number {
  const texts = globSync(pattern).filter(
    (path) => !/^test\/(tidy|recordings)|node_modules|^docs\/reference/.test(path),
  );
  const parts = texts.flatMap((path) => partsOf(readFileSync(path, 'utf8')).map((part) => part.trim()));
  const found = parts.map((part) => part.replaceAll(/^['`]|\s*\n\s*/g, (m) => (m.includes('\n') ? ' ' : '')));
  return found.reduce(
    (sum, part) => sum + [OPENER, IMPERSONAL, ODD].flatMap((each) => [...part.matchAll(each)]).length,
    0,
  );
}

const SOURCES = ['bin/**/*.ts', 'packages/*/src/**/*.ts'];
const HELP = ['bin/drover.ts', 'bin/commands/*.ts', 'bin/**/*-options.ts'];

const areas: readonly [string, number, () => number][] = [
  ['headers of source files', 0, () => count(SOURCES, (text) => [headerIn(text)])],
  ['comments of bin', 0, () => count('bin/**/*.ts', commentsIn)],
  ['comments of packages', 0, () => count('packages/*/src/**/*.ts', commentsIn)],
  // Two strings of tests hold glob patterns that look like comments.
  ['comments of tests', 2, () => count(['test/**/*.ts', 'bench/**/*.ts', 'scripts/*.ts'], commentsIn)],
  ['help', 0, () => count(HELP, stringsIn)],
  ['README.md', 0, () => count('README.md', paragraphsIn)],
  ['other documents', 0, () => count(['[A-QS-Z]*.md', 'docs/*.md', 'examples/**/*.md'], paragraphsIn)],
];

test.each(areas)('%s hold at most %i odd turns of phrase', (_, most, counted) => {
  expect(counted()).toBeLessThanOrEqual(most);
});
