// A page that is opened in the middle of an answer, and a page whose server is killed in the middle of one.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { planned } from '../support/run/run-desk.ts';
import { inBrowser } from '../support/serve/chromium.ts';
import { pageDesk } from '../support/serve/page-desk.ts';
import { conversationSight, untilState } from '../support/serve/page-sight.ts';
import { TOKEN } from '../support/serve/serve-host.ts';
import { serveProcess } from '../support/serve/serve-process.ts';

/** Longer than any test takes at this speed. */
const WORDS = Array.from({ length: 2_000 }, (_, at) => `word${at}`).join(' ');

/** The text of the last answer. */
const saidOn = (page: Page) => page.locator('.said .prose').last().innerText();

/** Waits until the answer has come to this word, and no further than to its end. */
async function untilWord(page: Page, word: string): Promise<void> {
  await page.locator('.said .prose', { hasText: `${word} ` }).waitFor();
}

/** Reads the answer on a page that was just opened: from its start, in the middle, and still growing. */
async function readsFromStart(page: Page): Promise<void> {
  await untilWord(page, 'word3');
  const seen = await saidOn(page);
  const next = seen.split(' ').length + 3;
  expect([seen.length < WORDS.length, WORDS.startsWith(seen)]).toEqual([true, true]);
  await untilWord(page, `word${next}`);
  expect(WORDS.startsWith(await saidOn(page))).toBe(true);
}

inBrowser('a late reader', (open) => {
  test('a page opened in the middle of a session’s answer shows all of it', async () => {
    const desk = await pageDesk({ answers: [{ text: WORDS, tokensPerSecond: 12 }], chunkChars: 4 });
    const { id } = await desk.client.createSession({});
    const address = `${desk.url}/#/sessions/${id}`;
    const first = await open(address, { token: desk.token });
    await (await desk.client.openExecution(id, { content: 'Speak' })).body?.cancel();
    await untilWord(first.page, 'word3');
    const late = await open(address, { token: desk.token });
    await readsFromStart(late.page);
    await desk.client.cancel(id);
    await untilState(late.page, 'Cancelled');
    const [prompt, said = ''] = await conversationSight(late.page);
    expect([prompt, WORDS.startsWith(said.replace('said: ', ''))]).toEqual(['user: Speak', true]);
    expect(late.complaints).toEqual([]);
  });

  test('a page opened in the middle of a worker’s answer shows all of it', async () => {
    const answer = { text: WORDS, tokensPerSecond: 12 };
    const desk = await pageDesk(planned({ one: { title: 'One', answers: [answer] } }, { chunkChars: 4 }));
    const { id } = await desk.client.startRun({ goal: 'Speak', workers: 0 });
    const address = `${desk.url}/#/runs/${id}`;
    const first = await open(address, { token: desk.token });
    await untilWord(first.page, 'word3');
    const late = await open(address, { token: desk.token });
    await readsFromStart(late.page);
    await desk.client.cancelRun(id);
    expect(late.complaints).toEqual([]);
  });

  test('an answer that a killed server cut off is taken back, also on a new page', async () => {
    const server = await serveProcess({
      answers: [{ text: WORDS, tokensPerSecond: 12 }, { text: 'Said again, and whole.' }],
      chunkChars: 4,
    });
    const { id } = await server.client.createSession({});
    const address = `${server.url}/#/sessions/${id}`;
    const { page } = await open(address, { token: TOKEN });
    await (await server.client.openExecution(id, { content: 'Speak' })).body?.cancel();
    await untilWord(page, 'word3');
    await server.kill();
    await page.getByText('not connected').waitFor();
    await server.start();
    await untilState(page, 'Done');
    const whole = [
      'user: Speak',
      expect.stringMatching(/^note: The answer was taken back: /),
      'said: Said again, and whole.',
    ];
    expect(await conversationSight(page)).toEqual(whole);
    const late = await open(address, { token: TOKEN });
    await untilState(late.page, 'Done');
    expect(await conversationSight(late.page)).toEqual(whole);
    expect(late.complaints).toEqual([]);
  });
});
