// Questions that wait for the user, shown outside the page: in the title of the tab, its icon, and notifications.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { inBrowser } from '../support/serve/chromium.ts';
import { type PageDesk, pageDesk } from '../support/serve/page-desk.ts';
import { calls, planned, says, submits } from '../support/run/run-desk.ts';

const SCRIPT = planned({
  tidy: { title: 'Tidy up', answers: [calls('shell', { command: 'touch made.txt' }), submits('It is tidy.')] },
});

/** Keeps what the page asks for and shows; the browser does both. */
const WATCH = `
  globalThis.asked = 0;
  globalThis.shown = [];
  globalThis.Notification = class extends Notification {
    static requestPermission() {
      asked += 1;
      return super.requestPermission();
    }
    constructor(title, options) {
      super(title, options);
      shown.push([title, options.body, options.tag]);
    }
  };
`;

const iconOf = (page: Page) => page.evaluate<string>(`new URL(document.querySelector('link[rel=icon]').href).pathname`);

async function answer(desk: PageDesk, id: string): Promise<void> {
  const { questions } = await desk.client.run(id);
  for (const { requestId } of questions) await desk.client.answerRun(id, requestId, { allowed: true });
}

inBrowser('what waits for the user', (open) => {
  test('the title, the icon and the list say that a question waits, on every screen', async () => {
    const desk = await pageDesk(SCRIPT);
    const { page, complaints } = await open(`${desk.url}/#/new/session`, { token: desk.token });
    await expect.poll(() => page.title()).toBe('New session – drover');
    expect(await iconOf(page)).toBe('/page/icon.svg');
    const { id } = await desk.client.startRun({ goal: 'Tidy', workers: 0 });
    await expect.poll(() => page.title(), { timeout: 30_000 }).toBe('(1) New session – drover');
    expect(await iconOf(page)).toBe('/page/icon-asking.svg');
    expect(await page.locator('.kept-about').innerText()).toMatch(/^asks you · project · /);
    expect(await page.locator('.kept-link .mark').getAttribute('data-state')).toBe('asking');
    expect((await fetch(`${desk.url}/page/icon-asking.svg`)).headers.get('content-type')).toBe('image/svg+xml');

    await page.getByRole('link', { name: 'Tidy' }).click();
    await expect.poll(() => page.title()).toBe('(1) Tidy · project – drover');
    await answer(desk, id);
    await expect.poll(() => page.title(), { timeout: 30_000 }).toBe('Tidy · project – drover');
    expect(await iconOf(page)).toBe('/page/icon.svg');
    expect(complaints).toEqual([]);
  });

  test('a plan and the question of a session wait in the title too', async () => {
    const desk = await pageDesk({
      ...SCRIPT,
      agents: {
        ...SCRIPT.agents,
        chat: { assigned: 'Ask me', answers: [calls('shell', { command: 'touch x' }), says('Fine.')] },
      },
    });
    await desk.client.startRun({ goal: 'Tidy', workers: 0, approve: true });
    const { page } = await open(`${desk.url}/`, { token: desk.token });
    await expect.poll(() => page.title(), { timeout: 30_000 }).toBe('(1) drover');
    const { id } = await desk.client.createSession({});
    await (await desk.client.openExecution(id, { content: 'Ask me' })).body?.cancel();
    await expect.poll(() => page.title(), { timeout: 30_000 }).toBe('(2) drover');
  });

  test('notifications come after a press of the button only, and lead to the run', async () => {
    const desk = await pageDesk(SCRIPT);
    const look = { token: desk.token, before: WATCH, permissions: ['notifications'] };
    const { page, complaints } = await open(`${desk.url}/`, look);
    await page.evaluate('document.hasFocus = () => false'); // as if another window were in front
    const first = await desk.client.startRun({ goal: 'Tidy', workers: 0 });
    await expect.poll(() => page.title(), { timeout: 30_000 }).toBe('(1) drover');
    expect(await page.evaluate('[asked, shown]')).toEqual([0, []]);
    await answer(desk, first.id);
    await expect.poll(() => page.title(), { timeout: 30_000 }).toBe('drover');

    await page.getByRole('button', { name: 'Notify me' }).click();
    await page.getByRole('button', { name: 'Notifying', pressed: true }).waitFor();
    const { id } = await desk.client.startRun({ goal: 'Once more', workers: 0 });
    await expect
      .poll(() => page.evaluate('shown'), { timeout: 30_000 })
      .toEqual([['Once more', `It waits for your answer, in ${desk.run.repository}.`, id]]);
    await page.getByRole('button', { name: 'Notifying' }).click();
    await page.getByRole('button', { name: 'Notify me', pressed: false }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('the browser is asked for its permission on a click, and its no is shown', async () => {
    const desk = await pageDesk(SCRIPT);
    // The headless browser says no without asking: until the click it has not been asked.
    const before = `${WATCH} Object.defineProperty(Notification, 'permission', { get: () => (asked === 0 ? 'default' : 'denied') });`;
    const { page } = await open(`${desk.url}/`, { token: desk.token, before });
    await page.getByText('Nothing here yet.').waitFor();
    expect(await page.evaluate('asked')).toBe(0);
    await page.getByRole('button', { name: 'Notify me' }).click();
    await page.getByRole('button', { name: 'Notifications blocked', disabled: true }).waitFor();
    expect(await page.evaluate('asked')).toBe(1);
  });
});
