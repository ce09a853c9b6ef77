// The cookbook works as printed: every block of every recipe is run, and its output is compared with the document.

import { expect, test } from 'vitest';
import { inBrowser, type Opening } from '../support/serve/chromium.ts';
import { type Browse, cook, inTerminal } from './cook.ts';
import { parseCookbook, readCookbook } from './cookbook.ts';

const document = readCookbook();
const cookbook = parseCookbook(document);
const isOnPage = ({ steps }: { readonly steps: readonly { readonly type: string }[] }) =>
  steps.some(({ type }) => type === 'browse');

test('the cookbook has ten recipes, each with a problem, a change and a list entry', () => {
  const { recipes } = cookbook;
  expect(recipes.map(({ title }) => title.split('.')[0])).toEqual(Array.from({ length: 10 }, (_, at) => `${at + 1}`));
  for (const { title, text } of recipes) {
    const anchor = title
      .toLowerCase()
      .replaceAll(/[^\w -]/g, '')
      .replaceAll(' ', '-');
    expect(document).toContain(`${title.replace('. ', '. [')}](#${anchor})`);
    expect(text.match(/^\*\*(Problem|Change):\*\* \S.*$/gm)).toHaveLength(2);
  }
});

inTerminal('recipes of the cookbook', () => {
  const recipes = cookbook.recipes.filter((recipe) => !isOnPage(recipe));
  test.each(recipes)('recipe $title prints what the cookbook shows', async (recipe) => {
    const { shown, printed } = await cook(cookbook, recipe);
    expect(printed).toEqual(shown);
  });

  inBrowser('the recipe of the cookbook for a page', (open) => {
    test.each(cookbook.recipes.filter(isOnPage))('recipe $title shows what the cookbook says', async (recipe) => {
      const { shown, printed } = await cook(cookbook, recipe, browseWith(open));
      expect(printed).toEqual(shown);
    });
  });
});

function browseWith(open: Opening): Browse {
  return async (steps, printed) => {
    const [, url = '', token = ''] = /page: +(\S+)\s+token: +(\S+)/.exec(printed) ?? [];
    const { page, complaints } = await open(url);
    for (const { label, value } of steps) {
      if (value === undefined) await page.getByRole('button', { name: label }).click();
      else await page.getByLabel(label).fill(value === 'token' ? token : value);
    }
    await page.locator('#answer[data-outcome]').waitFor();
    return [await page.locator('#answer').textContent(), ...complaints].join('\n');
  };
}
