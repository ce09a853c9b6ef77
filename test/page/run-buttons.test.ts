// The buttons of a run: retry of one failed task, resume, copy, and the choice of a model and a folder.

import { expect, test } from 'vitest';
import { inBrowser } from '../support/serve/chromium.ts';
import { pageDesk } from '../support/serve/page-desk.ts';
import { chooseTab, chooseTask, copiedBy, runSight, untilState } from '../support/serve/page-sight.ts';
import { calls, planned, says, submits, writes } from '../support/run/run-desk.ts';

const LONG_MS = 600_000; // longer than any test
const COMMAND = 'printf "%s\\n" "two  words" # <b>';

inBrowser('the buttons of a run', (open) => {
  test('a failed task is retried on the page after the run has ended', async () => {
    const desk = await pageDesk(
      planned({
        good: { title: 'The good one', answers: [writes('good.txt', 'good\n'), submits('Good.')] },
        bad: {
          title: 'The bad one',
          answers: [
            { when: { step: 1 }, times: 1, text: 'I refuse.', stop: 'refusal' },
            writes('bad.txt', 'mended\n'),
            submits('Mended.'),
          ],
        },
      }),
    );
    const { id } = await desk.client.startRun({ goal: 'Two tasks', workers: 0 });
    const { page, complaints } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
    await untilState(page, 'Incomplete');
    await chooseTask(page, 'The bad one');
    await page.getByRole('button', { name: 'Retry task' }).click();
    await untilState(page, 'Done');
    expect((await runSight(page)).tasks.map(([title, state]) => [title, state])).toEqual([
      ['The good one', 'landed'],
      ['The bad one', 'landed'],
    ]);
    expect(await page.getByRole('button', { name: 'Retry task' }).count()).toBe(0);
    expect(desk.run.delivered(id)['bad.txt']).toBe('mended');
    expect(complaints).toEqual([]);
  });

  test('a cancelled run that is resumed on the page is shown as running, then as done', async () => {
    const desk = await pageDesk(
      planned({
        slow: {
          title: 'Slow',
          answers: [
            { when: { step: 1 }, times: 1, text: 'too late', delayMs: LONG_MS },
            { when: { step: 1 }, times: 1, ...calls('shell', { command: 'touch asked.txt' }) },
            { when: { tool: 'shell' }, ...submits('At last.') },
          ],
        },
      }),
    );
    const { id } = await desk.client.startRun({ goal: 'Slowly', workers: 0 });
    const { page, complaints } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
    await page.locator('.task').waitFor();
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await page.getByRole('button', { name: 'Cancel it' }).click();
    await untilState(page, 'Cancelled');
    expect((await runSight(page)).ending).toEqual(['interrupted', `In a terminal drover resume ${id}Copy`]);
    await page.getByRole('link', { name: / cancelled / }).waitFor();

    await page.getByRole('button', { name: 'Resume' }).click();
    await page.locator('.question').waitFor(); // the worker asks, so the run stays as it is now
    const { state, ending, tasks } = await runSight(page);
    expect({ state, ending, tasks }).toEqual({
      state: 'Running',
      ending: [],
      tasks: [['Slow', 'asks you', 'shell: touch asked.txt']],
    });
    await expect.poll(() => page.locator('.kept-link .mark').getAttribute('data-state')).toBe('asking');
    await page.getByLabel('Words with a no').fill('write nothing');
    await page.getByRole('button', { name: /^Don’t allow/ }).click();
    await untilState(page, 'Done');
    expect(JSON.stringify(desk.run.server.requests.at(-2)?.body)).toContain('the user said no: write nothing');
    expect(complaints).toEqual([]);
  });

  test('answers, commands and diffs are copied as they were said', async () => {
    const answer = 'All is **done**:\n\n```sh\nls\n```';
    const script = planned({
      one: {
        title: 'One',
        answers: [calls('shell', { command: COMMAND }), writes('new.txt', 'new\n'), submits('Done.')],
      },
    });
    const desk = await pageDesk({ ...script, answers: [...(script.answers ?? []).slice(0, 1), says(answer)] });
    const { id } = await desk.client.startRun({ goal: 'Copy', workers: 0 });
    const { page } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
    await page.getByRole('button', { name: /^Allow once/ }).click();
    await untilState(page, 'Done');
    expect(await copiedBy(page, page.locator('.ending').getByRole('button', { name: 'Copy the answer' }))).toBe(answer);
    const next = await page.locator('.next code').first().innerText();
    expect(await copiedBy(page, page.locator('.next').getByRole('button', { name: 'Copy' }).first())).toBe(next);
    await page.getByRole('button', { name: 'Diff of the run' }).click();
    const { patch } = await desk.client.runDiff(id);
    expect(await copiedBy(page, page.locator('.run-actions').getByRole('button', { name: 'Copy the diff' }))).toBe(
      patch,
    );
    await chooseTask(page, 'One');
    await page.getByText('shell: ').first().click();
    const call = page.locator('.call').first();
    expect(await copiedBy(page, call.getByRole('button', { name: 'Copy the command' }))).toBe(COMMAND);
    expect(await copiedBy(page, call.getByRole('button', { name: 'Copy the output' }))).toContain('two  words');
    await chooseTab(page, 'Diff');
    await page.locator('.diff').getByRole('button', { name: 'Copy the diff' }).waitFor();
  });

  test('a new run offers the models of the catalog that have a key, and names the folder', async () => {
    const desk = await pageDesk(planned({ one: { answers: [submits('Nothing to do.')] } }));
    const { page, complaints } = await open(`${desk.url}/#/new/run`, { token: desk.token });
    await page.locator('#models option').first().waitFor({ state: 'attached' });
    const offered = await page.evaluate<string[]>(
      '[...document.querySelectorAll("#models option")].map((o) => o.label)',
    );
    expect(offered.find((label) => label.startsWith('anthropic/claude-haiku-4-5'))).toBe(
      'anthropic/claude-haiku-4-5 · $1 in, $5 out per million tokens · 200.0 k context',
    );
    expect(offered.filter((label) => !label.startsWith('anthropic/'))).toEqual([]); // no other key is set
    expect(await page.getByLabel('Model').getAttribute('placeholder')).toBe('anthropic/claude-sonnet-4-5');
    const { repository } = desk.run;
    expect(await page.getByLabel('Folder').getAttribute('placeholder')).toBe(repository);
    expect(await page.locator('.served').innerText()).toBe(repository);

    await page.getByLabel('Goal').fill('With another model');
    await page.getByLabel('Model').fill('anthropic/claude-haiku-4-5');
    await page.getByRole('button', { name: 'Start the run' }).click();
    await page.getByRole('button', { name: 'Run this plan' }).click();
    await untilState(page, 'Done');
    expect(await page.locator('.head .about').innerText()).toContain(
      `${repository} on main  ·  anthropic/claude-haiku-4-5`,
    );
    expect(await page.locator('.kept-about').innerText()).toMatch(/^project · 1\/1 tasks/);
    expect(await page.title()).toBe('With another model · project – drover');
    expect(complaints).toEqual([]);
  });
});
