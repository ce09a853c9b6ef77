// The visible content of the page, as values to compare.

import type { Locator, Page } from 'playwright-core';

export type RunSight = {
  readonly title: string;
  readonly state: string;
  readonly figures: Readonly<Record<string, string>>;
  readonly ending: readonly string[];
  readonly lanes: readonly string[];
  readonly tasks: readonly (readonly [title: string, state: string, doing: string])[];
  readonly inspector: string;
};

// A string, because it runs in the browser, whose types the tests lack.
const LOOK = `(() => {
  const text = (root, selector) => root.querySelector(selector)?.textContent.trim() ?? '';
  const all = (selector) => [...document.querySelectorAll(selector)];
  return {
    title: text(document, 'h1'),
    state: text(document, '.pill'),
    figures: Object.fromEntries(all('.figures > div').map((each) => [text(each, 'dt'), text(each, 'dd .numbers')])),
    ending: all('.ending:not([hidden]) > *').map((each) => each.textContent),
    lanes: all('.lane-name > span').map((each) => [...each.childNodes].map((node) => node.textContent).filter(Boolean).join(': ')),
    tasks: all('.task').map((each) => [text(each, '.task-title'), text(each, '.task-state'), text(each, '.task-doing')]),
    inspector: text(document, '#inspector-title'),
  };
})()`;

export function runSight(page: Page): Promise<RunSight> {
  return page.evaluate(LOOK);
}

/** The visible conversation: the kind of each entry, and its text. */
export function conversationSight(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('.entries > li')].map((entry) => {
    const said = entry.querySelector('.call-title, .prose, h3, p')?.textContent ?? '';
    return entry.className.replace(' found', '') + ': ' + said;
  })`);
}

/** The visible diff, in patch format. */
export function diffSight(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('.file')].flatMap((file) => [
    file.querySelector('summary').textContent,
    ...[...file.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join('|')),
  ])`);
}

/** The focused element, as a screen reader announces it. */
export function focusOf(page: Page): Promise<string> {
  return page.evaluate(`(() => {
    const it = document.activeElement;
    if (it === document.body || it.id === 'main') return it.id === 'main' ? 'the content' : 'nothing';
    const option = document.getElementById(it.getAttribute('aria-activedescendant'))?.getAttribute('aria-label');
    const name = it.getAttribute('aria-label') ?? it.innerText.split('\\n')[0];
    return option == null ? name : name.split(':')[0] + ' > ' + option.split(',')[0];
  })()`);
}

/** The named colours that occur in the timeline's pixels. */
export function coloursOnCanvas(page: Page, names: readonly string[]): Promise<readonly string[]> {
  return page.evaluate(`(() => {
    const canvas = document.querySelector('canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const drawn = new Set();
    for (let at = 0; at < data.length; at += 4)
      drawn.add('#' + [...data.slice(at, at + 3)].map((part) => part.toString(16).padStart(2, '0')).join(''));
    const style = getComputedStyle(document.documentElement);
    return ${JSON.stringify(names)}.filter((name) => drawn.has(style.getPropertyValue('--' + name).trim()));
  })()`);
}

export function widthOf(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth');
}

/** The number of running animations. */
export function animationsOf(page: Page): Promise<number> {
  return page.evaluate('document.getAnimations().length');
}

/** Waits until the header shows this text. */
export async function untilState(page: Page, word: string): Promise<void> {
  await page.locator('.pill').getByText(word, { exact: true }).waitFor();
}

/** Selects a task in the list, and waits until it is shown. */
export async function chooseTask(page: Page, title: string): Promise<void> {
  await page.locator('.task', { hasText: title }).click();
  await page.locator('#inspector-title').getByText(title, { exact: true }).waitFor();
}

export async function chooseTab(page: Page, tab: 'Conversation' | 'Task' | 'Diff'): Promise<void> {
  await page.getByRole('tab', { name: tab }).click();
  await page.locator({ Conversation: '.entries', Task: '.facts', Diff: '.patch' }[tab]).waitFor();
}

/** Presses a button, and returns what it copied. */
export async function copiedBy(page: Page, button: Locator): Promise<string> {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await button.click();
  await button.getByText('Copied').or(page.getByText('Not copied')).first().waitFor();
  return page.evaluate('navigator.clipboard.readText()');
}
