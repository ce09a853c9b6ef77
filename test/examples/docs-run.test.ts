// Commands of the README and the docs are run as they are printed, page by page, in a sample project with a scripted
// model. The cookbook has tests of its own.

import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { inTerminal } from './cook.ts';
import { openStage, type PageStage, STAGES } from './stages.ts';

/** Commands that these tests do not run, with the reason. */
const NOT_RUN: readonly (readonly [RegExp, string])[] = [
  [/^export \w+=…/, 'the stage sets the keys'],
  [/^cd path\/to\/your\/project$/, 'the stage is in a project already'],
  [/^npx -y pnpm@[\d.]+ (demo|test|install|release:pack)\b/, 'run by .ci/run, and by the tests of demo and release'],
  [/^npm install -g \.\/drover-\*\.tgz$/, 'run by the test of the installed package'],
  [/^sudo apt-get install bubblewrap/, 'changes the machine'],
  [
    /^(?:\w+=\S+ )?(?:drover .*--queue|drover worker|drover hosts|redis-server)\b/,
    'needs a Redis; run by the tests of hosts',
  ],
  [/^drover mcp log(?:in|out)\b/, 'needs a server that wants a login; run by the tests of mcp'],
  [/^drover chat\b/, 'needs a terminal; run by the tests of chat'],
];

const pages = ['README.md', ...globSync('docs/*.md').toSorted()].filter((page) => page !== 'docs/cookbook.md');
const withCommands = pages.filter((page) => commandsIn(page).length > 0);

test('every page with commands to run has a stage, and no other page', () => {
  expect(withCommands).toEqual(Object.keys(STAGES).toSorted((a, b) => pages.indexOf(a) - pages.indexOf(b)));
});

inTerminal('commands of the docs', () => {
  test.each(withCommands)('commands of %s work as printed', async (page) => {
    const stage = STAGES[page] as PageStage;
    const { run, close } = await openStage(stage);
    for (const command of commandsIn(page)) {
      const { output, status } = await run(command);
      expect({ command, status, output }).toEqual({ command, status: stage.statuses?.[command] ?? 0, output });
    }
    await close();
  });
});

/** The commands of all shell blocks, without comments; continued lines are one. */
function commandsIn(page: string): readonly string[] {
  const blocks = readFileSync(page, 'utf8').matchAll(/^```sh\n([\s\S]*?)^```$/gm);
  return [...blocks]
    .flatMap(([, code = '']) => code.replaceAll(/\\\n\s*/g, '').split('\n'))
    .flatMap((line) => line.replace(/\s+# .*$/, '').split(' && '))
    .map((line) => line.trim())
    .filter((line) => line !== '' && !NOT_RUN.some(([pattern]) => pattern.test(line)));
}
