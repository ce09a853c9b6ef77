// The test of the cookbook fails for a recipe that no longer works or prints something else.

import { expect, test } from 'vitest';
import { cook, inTerminal } from './cook.ts';
import { parseCookbook, readCookbook } from './cookbook.ts';

const CHANGES = [
  { change: 'a tool of another name', number: 1, before: "name: 'stock'", after: "name: 'shelf'" },
  { change: 'other output', number: 4, before: 'write: list.txt\n', after: 'write: lists.txt\n' },
  { change: 'a smaller budget', number: 5, before: '--budget 10ktok', after: '--budget 1ktok' },
  { change: 'a yes to everything', number: 9, before: "event.subject.endsWith('.txt')", after: 'true' },
];

inTerminal('changed recipes of the cookbook', () => {
  test.each(CHANGES)('recipe $number with $change does not pass', async ({ number, before, after }) => {
    const document = readCookbook();
    const text = parseCookbook(document).recipes[number - 1]?.text ?? '';
    expect(text).toContain(before);
    const cookbook = parseCookbook(document.replace(text, () => text.replace(before, () => after)));
    const recipe = cookbook.recipes[number - 1];
    if (recipe === undefined) throw new Error(`there is no recipe ${number}`);
    const { shown, printed } = await cook(cookbook, recipe);
    expect(printed).not.toEqual(shown);
  });
});
