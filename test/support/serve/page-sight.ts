// The visible content of the page, as values to compare.

import type { Page } from 'playwright-core';

export type RunSight = {
  readonly title: string;
  readonly state: string;
  readonly figures: Readonly<Record<string, string>>;
  readonly ending: readonly string[];
  readonly lanes: readonly string[];
  readonly tasks: readonly (readonly [title: string, state: string, doing: string])[];
  readonly inspector: string;
};

// Written as text: it runs in the browser, whose types the tests don't know.
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

/** The conversation that is shown: of each entry what it is, and its words. */
export function conversationSight(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('.entries > li')].map((entry) => {
    const said = entry.querySelector('.call-title, .prose, h3, p')?.textContent ?? '';
    return entry.className.replace(' found', '') + ': ' + said;
  })`);
}

/** The diff that is shown, as a patch would tell it. */
export function diffSight(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('.file')].flatMap((file) => [
    file.querySelector('summary').textContent,
    ...[...file.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join('|')),
  ])`);
}

/** What has the focus, as those who listen are told. */
export function focusOf(page: Page): Promise<string> {
  return page.evaluate(`(() => {
    const it = document.activeElement;
    if (it === document.body || it.id === 'main') return it.id === 'main' ? 'the content' : 'nothing';
    const option = document.getElementById(it.getAttribute('aria-activedescendant'))?.getAttribute('aria-label');
    const name = it.getAttribute('aria-label') ?? it.innerText.split('\\n')[0];
    return option == null ? name : name.split(':')[0] + ' > ' + option.split(',')[0];
  })()`);
}

/** Those of the named colours that the timeline has pixels of. */
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

/** How many things move. */
export function animationsOf(page: Page): Promise<number> {
  return page.evaluate('document.getAnimations().length');
}

/** Until the head says so of what is shown. */
export async function untilState(page: Page, word: string): Promise<void> {
  await page.locator('.pill').getByText(word, { exact: true }).waitFor();
}

/** Chooses a task in the list, and waits until it is looked at. */
export async function chooseTask(page: Page, title: string): Promise<void> {
  await page.locator('.task', { hasText: title }).click();
  await page.locator('#inspector-title').getByText(title, { exact: true }).waitFor();
}

export async function chooseTab(page: Page, tab: 'Conversation' | 'Task' | 'Diff'): Promise<void> {
  await page.getByRole('tab', { name: tab }).click();
  await page.locator({ Conversation: '.entries', Task: '.facts', Diff: '.patch' }[tab]).waitFor();
}
