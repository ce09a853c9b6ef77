// The page on active work: the user answers questions, starts and cancels runs, and talks to sessions. The page waits
// for a server that restarts.

import { expect, test } from 'vitest';
import { inBrowser } from '../support/serve/chromium.ts';
import { pageDesk } from '../support/serve/page-desk.ts';
import { animationsOf, conversationSight, focusOf, runSight, untilState } from '../support/serve/page-sight.ts';
import { calls, planned, says, submits, writes } from '../support/run/run-desk.ts';

const LONG_MS = 600_000; // longer than any test

const COMMAND = 'touch made.txt && echo it is made';
const ASKS = planned({
  tidy: {
    title: 'Tidy up',
    answers: [calls('shell', { command: COMMAND }), submits('It is tidy.')],
  },
});

inBrowser('active runs and sessions', (open) => {
  test('a question is answered with keys, and the run continues to its end', async () => {
    const desk = await pageDesk(ASKS);
    const { id } = await desk.client.startRun({ goal: 'Tidy', workers: 0 });
    const { page, complaints } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
    await page.locator('.question').waitFor();

    expect((await page.locator('.question').innerText()).split('\n').filter(Boolean)).toEqual([
      'Tidy up asks to run shell',
      COMMAND,
      'it would run outside a sandbox. Always allow: exactly this, until the end of its run or session.',
      'Allow once',
      'Always allow',
      'Don’t allow',
    ]);
    expect(await animationsOf(page)).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: 'reduce' });
    expect(await animationsOf(page)).toBe(0);

    expect(await focusOf(page)).toBe(`Tidy up asks to run shell: ${COMMAND}`);
    await page.keyboard.press('Tab');
    expect(await focusOf(page)).toBe(`Allow once: ${COMMAND}`);
    await page.keyboard.press('Enter');
    await untilState(page, 'Done');

    expect((await runSight(page)).tasks).toEqual([['Tidy up', 'landed', 'It is tidy.']]);
    expect(await page.locator('.question').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('a plan is commented on and approved on the page, and its run is merged', async () => {
    const task = (id: string) => ({ id, title: `Do ${id}`, prompt: `Please do ${id}.` });
    const desk = await pageDesk({
      order: 'conversation',
      answers: [
        calls('submit_plan', { tasks: [task('first')] }),
        calls('submit_plan', { tasks: [task('second')] }),
        says('All is done.'),
      ],
      agents: { second: { assigned: 'Your task is second:', answers: [writes('new.txt', 'new\n'), submits('Done.')] } },
    });
    const { page, complaints } = await open(`${desk.url}/#/new/run`, { token: desk.token });
    await page.getByLabel('Goal').fill('One file');
    await page.getByLabel('Workers').fill('0');
    await page.getByRole('button', { name: 'Start the run' }).click();
    await page.locator('.plan summary', { hasText: 'Do first' }).waitFor();
    await page.getByLabel('Comment on the plan').fill('Rather the second.');
    await page.getByRole('button', { name: 'Send comment' }).click();
    await page.locator('.plan summary', { hasText: 'Do second' }).waitFor();
    await page.getByRole('button', { name: 'Run this plan' }).click();
    await untilState(page, 'Done');
    await page.getByRole('button', { name: 'Diff of the run' }).click();
    await page.locator('.run-actions .patch').getByText('new.txt').waitFor();
    await page.getByRole('button', { name: 'Merge', exact: true }).click();
    await page.getByText('What landed is merged into main').waitFor();
    expect(await page.getByRole('button', { name: 'Resume' }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('a run is started from the page with mistakes at their field, and cancelled', async () => {
    const desk = await pageDesk({ answers: [{ text: 'too late', delayMs: LONG_MS }] });
    const { page } = await open(`${desk.url}/`, { token: desk.token });
    expect((await page.locator('.sidebar .empty').innerText()).split('\n').at(0)).toBe('Nothing here yet.');
    await page.getByRole('link', { name: 'New run' }).click();
    await page.getByLabel('Goal').fill('Think for long');
    await page.getByLabel('Folder').fill('..');
    await page.getByRole('button', { name: 'Start the run' }).click();
    await page.locator('.problem:not([hidden])').waitFor();
    expect((await page.locator('.complaint').allInnerTexts()).filter((text) => text !== '')).toEqual([
      'there is no such folder inside of the one that is served',
    ]);
    expect(await page.getByLabel('Folder').getAttribute('aria-invalid')).toBe('true');

    await page.getByLabel('Folder').fill('');
    await page.getByRole('button', { name: 'Start the run' }).click();
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await page.getByRole('button', { name: 'Let it run' }).click();
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await page.getByRole('button', { name: 'Cancel it' }).click();
    await untilState(page, 'Cancelled');
    const id = page.url().split('/').at(-1);
    expect((await runSight(page)).ending).toEqual(['interrupted', `In a terminal drover resume ${id}Copy`]);
    await page.getByRole('link', { name: /^Think for long.* cancelled / }).waitFor();
  });

  test('a call that a rule denies is shown in a session, with the rule', async () => {
    const answers = [calls('write', { path: 'secret/<b>.txt', content: 'x' }), says('I may not.')];
    const desk = await pageDesk({ answers }, { argv: ['--deny', 'write(secret/**)'] });
    const { id } = await desk.client.createSession({});
    const { page, complaints } = await open(`${desk.url}/#/sessions/${id}`, { token: desk.token });
    await page.getByLabel('Message').fill('Write it');
    await page.keyboard.press('Enter');
    await untilState(page, 'Done');
    expect(await conversationSight(page)).toContain(
      'note: Not allowed: write: secret/<b>.txt: denied by the rule write(secret/**)',
    );
    expect(complaints).toEqual([]);
  });

  test('a session is started, sent a message, streams its answer, and is stopped', async () => {
    const desk = await pageDesk({
      answers: [says('Hello.'), { text: 'On and on and on. '.repeat(50), tokensPerSecond: 20 }],
    });
    const { page } = await open(`${desk.url}/#/new/session`, { token: desk.token });
    await page.getByLabel('First message').fill('Good morning');
    await page.getByRole('button', { name: 'Start the session' }).click();
    await untilState(page, 'Done');
    expect(await conversationSight(page)).toEqual(['user: Good morning', 'said: Hello.']);

    await page.getByLabel('Message').fill('Go on');
    await page.keyboard.press('Enter');
    await page.getByText('On and on').waitFor(); // while it streams
    await page.getByRole('button', { name: 'Stop' }).click();
    await untilState(page, 'Cancelled');
    expect(await conversationSight(page)).toEqual([
      'user: Good morning',
      'said: Hello.',
      'user: Go on',
      expect.stringMatching(/^said: On and on/),
      'note: The answer above was cut off',
      'note: Cancelled',
    ]);
  });

  test('a conversation follows its end until the user scrolls back, or sends a message', async () => {
    const desk = await pageDesk({ answers: [says('One line.\n'.repeat(60)), says('The end.'), says('Once more.')] });
    const { id } = await desk.client.createSession({});
    const { page } = await open(`${desk.url}/#/sessions/${id}`, { token: desk.token });
    const fromEnd = () =>
      page.evaluate<number>(`(() => {
        const { scrollHeight, scrollTop, clientHeight } = document.querySelector('.session-body');
        return scrollHeight - scrollTop - clientHeight;
      })()`);
    const say = async (text: string) => {
      await page.getByLabel('Message').fill(text);
      await page.keyboard.press('Enter');
    };
    await say('first');
    await untilState(page, 'Done');
    expect(await fromEnd()).toBeLessThan(2);
    await page.setViewportSize({ width: 1440, height: 600 });
    await expect.poll(fromEnd).toBeLessThan(2);

    await page.locator('.session-body').hover();
    await page.mouse.wheel(0, -400);
    await expect.poll(fromEnd).toBeGreaterThan(300);
    // The question is answered by another client.
    await (await desk.client.session({ id })).execute('second');
    await page.getByText('The end.').waitFor({ state: 'attached' });
    await untilState(page, 'Done');
    expect(await fromEnd()).toBeGreaterThan(300);
    await say('third');
    await page.getByText('Once more.').waitFor();
    await expect.poll(fromEnd).toBeLessThan(2);
  });

  test('the page waits for a lost server and shows later events', async () => {
    const desk = await pageDesk({ answers: [says('One.'), says('Two.')] });
    const { id } = await desk.client.createSession({});
    const { page } = await open(`${desk.url}/#/sessions/${id}`, { token: desk.token });
    await page.getByLabel('Message').fill('first');
    await page.keyboard.press('Enter');
    await untilState(page, 'Done');

    await desk.stop();
    await page.getByText('not connected').waitFor();
    expect(await page.locator('.banner').innerText()).toMatch(/^The connection is lost: /);
    await desk.start();
    await page.getByText('connected', { exact: true }).waitFor();
    await page.locator('.banner').waitFor({ state: 'hidden' });
    await page.getByLabel('Message').fill('second');
    await page.keyboard.press('Enter');
    await page.getByText('Two.').waitFor();
    expect(await conversationSight(page)).toEqual(['user: first', 'said: One.', 'user: second', 'said: Two.']);
  });
});
