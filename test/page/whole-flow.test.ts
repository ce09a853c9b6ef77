// One run on the page from its start to its merge, with the keyboard alone, on a desk and on a telephone; and the page
// as a screen reader has it.

import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { inBrowser } from '../support/serve/chromium.ts';
import { pageDesk } from '../support/serve/page-desk.ts';
import { chooseTask, runSight, untilState, widthOf } from '../support/serve/page-sight.ts';
import { calls, says, submits, writes } from '../support/run/run-desk.ts';

const PRESSES_MAX = 5;
const SEEN_MS_MAX = 10_000;
const STEP_MS_MAX = 60_000;
const ASKS = calls('shell', { command: 'touch made.txt' });
const task = (id: string, title: string) => ({ id, title, prompt: `Please do ${id}.` });

/** A plan that is commented on; a worker that asks and takes a message; a task that fails once. */
const SCRIPT = {
  order: 'conversation',
  answers: [
    calls('submit_plan', { tasks: [task('first', 'Do too much')] }),
    calls('submit_plan', { tasks: [task('good', 'Do it well'), task('bad', 'Fail at first')] }),
    says('All is **done**.'),
    says('Now all is **done**.'),
  ],
  agents: {
    good: {
      assigned: 'Your task is good:',
      answers: [
        { when: { text: 'use spaces' }, ...writes('good.txt', 'two  spaces\n'), times: 1 },
        { when: { tool: 'write' }, ...submits('With spaces.') },
        ASKS,
      ],
    },
    bad: {
      assigned: 'Your task is bad:',
      answers: [
        { when: { step: 1 }, times: 1, text: 'I refuse.', stop: 'refusal' as const },
        { when: { step: 1 }, ...writes('bad.txt', 'mended\n') },
        { when: { tool: 'write' }, ...submits('Mended.') },
      ],
    },
  },
} as const;

/** Moves the focus with Tab until it is on this. Keys go to what is returned, also if the page redraws meanwhile. */
async function tabTo(page: Page, role: string, name: string): Promise<Locator> {
  const wanted = page.getByRole(role as 'button', { name: new RegExp(`^${RegExp.escape(name)}`) }).first();
  await wanted.waitFor();
  for (let presses = 0; presses < 150; presses++) {
    if ((await wanted.and(page.locator(':focus')).count()) > 0) return wanted;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to the ${role} ${name}`);
}

async function pressKeys(page: Page, role: string, name: string): Promise<void> {
  await (await tabTo(page, role, name)).press('Enter');
}

/** Presses a button until this is seen. On a busy machine the page may draw the button anew under the key. */
async function pressUntil(page: Page, name: string, seen: Locator): Promise<void> {
  for (let presses = 0; presses < PRESSES_MAX; presses++) {
    if (presses === 0 || (await page.getByRole('button', { name }).first().isVisible()))
      await pressKeys(page, 'button', name);
    try {
      return await seen.first().waitFor({ timeout: SEEN_MS_MAX });
    } catch (error) {
      if (!(error instanceof Error && error.name === 'TimeoutError')) throw error;
    }
  }
  throw new Error(`the button ${name} had no effect`);
}

async function typeInto(page: Page, name: string, text: string): Promise<void> {
  await (await tabTo(page, 'textbox', name)).pressSequentially(text);
}

type Node = {
  readonly ignored: boolean;
  readonly role?: { readonly value: string };
  readonly name?: { readonly value: string };
};

/** The role and the name of each element, as a screen reader gets them. */
async function spoken(page: Page): Promise<readonly (readonly [role: string, name: string])[]> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = (await session.send('Accessibility.getFullAXTree')) as unknown as {
    readonly nodes: readonly Node[];
  };
  await session.detach();
  return nodes
    .filter(({ ignored }) => !ignored)
    .map(({ role, name }) => [role?.value ?? '', name?.value ?? ''] as const);
}

const NAMED = ['button', 'link', 'textbox', 'combobox', 'spinbutton', 'tab', 'tabpanel', 'region', 'navigation', 'log'];

/** Elements to operate, or to go to, that have no name. */
async function nameless(page: Page): Promise<readonly string[]> {
  return (await spoken(page))
    .filter(([role, name]) => NAMED.includes(role) && name.trim() === '')
    .map(([role]) => role);
}

inBrowser('a whole run on the page', (open) => {
  test.each([1440, 390])('is operated with keys alone at %i pixels', async (width) => {
    const desk = await pageDesk(SCRIPT);
    const { page, complaints } = await open(`${desk.url}/#/new/run`, { token: desk.token, width, height: 844 });
    // A step that hangs is named, before the whole test is out of time.
    page.setDefaultTimeout(STEP_MS_MAX);
    const widths = new Set<number>();
    const look = async () => {
      widths.add(await widthOf(page));
      expect(await nameless(page)).toEqual([]);
    };
    await page.locator('#models option').first().waitFor({ state: 'attached' });
    await look();
    await typeInto(page, 'Goal', 'Two files');
    await (await tabTo(page, 'spinbutton', 'Workers')).pressSequentially('0');
    await pressUntil(page, 'Start the run', page.locator('.plan summary', { hasText: 'Do too much' }));
    await look();
    await typeInto(page, 'Comment on the plan', 'Less of it.');
    await pressUntil(page, 'Send comment', page.locator('.plan summary', { hasText: 'Do it well' }));
    await pressUntil(page, 'Run this plan', page.locator('.question .subject'));
    await look();
    await pressUntil(page, 'Do it well', page.getByRole('textbox', { name: 'Message to the worker' }));
    await typeInto(page, 'Message to the worker', 'use spaces');
    await page.getByRole('textbox', { name: 'Message to the worker' }).press('Enter');
    await page.getByText('Not read yet: use spaces').waitFor();
    await pressKeys(page, 'button', 'Allow once: touch made.txt');

    await untilState(page, 'Incomplete');
    await pressUntil(page, 'Fail at first', page.getByRole('button', { name: 'Retry task' }));
    await look();
    await pressKeys(page, 'button', 'Retry task');
    await untilState(page, 'Done');
    await pressUntil(page, 'Diff of the run', page.locator('.run-actions .patch').getByText('bad.txt'));
    expect(await page.locator('.run-actions .file code').allInnerTexts()).toEqual(['bad.txt', 'good.txt', 'made.txt']);
    await look();
    await pressUntil(page, 'Merge', page.getByText('What landed is merged into main'));
    await look();

    expect((await runSight(page)).tasks.map(([title, state]) => [title, state])).toEqual([
      ['Do it well', 'landed'],
      ['Fail at first', 'landed'],
    ]);
    expect(await desk.run.read('good.txt')).toBe('two  spaces\n');
    expect([...widths]).toEqual([width]);
    expect(complaints).toEqual([]);
  });

  test('a run that an earlier server left is resumed on the page', async () => {
    const slow = { when: { step: 1 }, times: 1, text: 'too late', delayMs: 600_000 };
    const plan = calls('submit_plan', { tasks: [task('one', 'Be slow')] });
    const desk = await pageDesk({
      order: 'conversation',
      answers: [plan, says('All is done.')],
      agents: {
        one: { assigned: 'Your task is one:', answers: [slow, { when: { step: 1 }, ...submits('At last.') }] },
      },
    });
    const { id } = await desk.client.startRun({ goal: 'Slowly', workers: 0 });
    const { page } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
    await page.locator('.task').waitFor();
    await desk.stop();
    await desk.start();
    await page.getByText('connected', { exact: true }).waitFor();
    await pressKeys(page, 'button', 'Resume');
    await untilState(page, 'Done');
    expect((await runSight(page)).tasks).toEqual([['Be slow', 'no change', 'At last.']]);
  });

  test('a screen reader gets the parts of a finished run by role and name', async () => {
    const desk = await pageDesk({
      order: 'conversation',
      answers: [
        calls('submit_plan', { tasks: [task('one', 'One file')] }),
        says('# Head\n\n- item\n\n[there](https://example.com/)'),
      ],
      agents: { one: { assigned: 'Your task is one:', answers: [writes('b.txt', 'b\n'), submits('It is there.')] } },
    });
    const { id } = await desk.client.startRun({ goal: 'A file', workers: 0 });
    const { page } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
    await untilState(page, 'Done');
    await chooseTask(page, 'One file');
    const told = await spoken(page);
    expect(await nameless(page)).toEqual([]);
    const expected = [
      ['navigation', 'Runs and sessions'],
      ['heading', 'A file'],
      ['StaticText', 'Done'],
      ['region', 'What became of it'],
      ['heading', 'Head'],
      ['link', 'there'],
      ['button', 'Copy the answer'],
      ['region', 'Actions'],
      ['button', 'Merge'],
      ['button', 'Diff of the run'],
      ['region', 'Tasks'],
      ['tab', 'Conversation'],
      ['tabpanel', 'Conversation'],
      ['log', 'Conversation'],
    ];
    for (const [role, name] of expected)
      expect([role, name, told.some(([r, n]) => r === role && n.startsWith(name ?? ''))]).toEqual([role, name, true]);
    expect(told.filter(([role]) => role === 'main').length).toBe(1);
    expect(told.filter(([role, name]) => role === 'button' && name.startsWith('One file')).length).toBe(1);
  });
});
