// One task of an active run, operated on the page: a message to its worker, cancel and retry.

import { expect, test } from 'vitest';
import { inBrowser } from '../support/serve/chromium.ts';
import { pageDesk } from '../support/serve/page-desk.ts';
import { chooseTask, untilState, widthOf } from '../support/serve/page-sight.ts';
import { calls, planned, submits, writes } from '../support/run/run-desk.ts';

const ASKS = calls('shell', { command: 'touch made.txt && echo it is made' });
const SCRIPT = planned({
  tidy: {
    title: 'Tidy up',
    answers: [
      { when: { text: 'use spaces' }, ...writes('a.txt', 'two  spaces\n'), times: 1 },
      { when: { tool: 'write' }, ...submits('With spaces.') },
      ASKS,
    ],
  },
  other: { title: 'The other', answers: [{ when: { step: 1 }, times: 1, ...ASKS }, submits('Nothing to do.')] },
});

inBrowser('one task of an active run', (open) => {
  test('a worker is told something on the page, and does it at its next step', async () => {
    const desk = await pageDesk(SCRIPT);
    const { id } = await desk.client.startRun({ goal: 'Tidy', workers: 0 });
    const look = { token: desk.token, width: 390 };
    const { page, complaints } = await open(`${desk.url}/#/runs/${id}`, look);
    await page.locator('.question').waitFor();
    await chooseTask(page, 'Tidy up');
    await page.getByLabel('Message to the worker').fill('use spaces');
    await page.keyboard.press('Enter');
    await page.getByText('Not read yet: use spaces').waitFor();
    expect(await widthOf(page)).toBeLessThanOrEqual(390);
    await page.getByRole('button', { name: /^Allow once/ }).click();
    await page.getByText('Not read yet: use spaces').waitFor({ state: 'hidden' });

    // The other one is cancelled at its question.
    await page.getByText('The other asks to run').first().waitFor();
    await chooseTask(page, 'The other');
    await page.getByRole('button', { name: 'Cancel task' }).click();
    await untilState(page, 'Incomplete');
    expect(complaints).toEqual([]);
    const { rows } = await desk.client.run(id);
    expect(rows.map(({ task, status }) => [task, status])).toEqual([
      ['tidy', 'landed'],
      ['other', 'cancelled'],
    ]);
    expect(desk.run.delivered(id)['a.txt']).toBe('two  spaces');
    await expect(desk.client.messageTask(id, { task: 'tidy', text: 'late' })).rejects.toMatchObject({ status: 409 });
  });
});
