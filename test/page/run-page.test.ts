// The page on a finished run: read from its journal, with a pointer, with keys alone, and on a phone.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inBrowser } from '../support/serve/chromium.ts';
import { PageDesk } from '../support/serve/page-desk.ts';
import {
  chooseTab,
  chooseTask,
  coloursOnCanvas,
  conversationSight,
  diffSight,
  focusOf,
  runSight,
  untilState,
  widthOf,
} from '../support/serve/page-sight.ts';
import { calls, planned, type RanRun, submits, writes } from '../support/run/run-desk.ts';

const SCRIPT = planned({
  alpha: {
    title: 'Write the first file',
    answers: [
      { text: 'First `a.txt`.', calls: [{ name: 'write', args: { path: 'a.txt', content: 'one\ntwo\n' } }] },
      calls('read', { path: 'a.txt' }),
      submits('It has two lines now.'),
    ],
  },
  beta: { title: 'Write the second', dependsOn: ['alpha'], answers: [writes('b/new.txt', 'new\n'), submits('Added.')] },
});

inBrowser('a run that is over', (open) => {
  let desk: PageDesk;
  let id = '';

  beforeAll(async () => {
    desk = await PageDesk.open(SCRIPT);
    const { end } = await desk.run.run(['run', 'Two files', '--yes', '--model', 'anthropic/claude-sonnet-4-5']);
    id = end.run ?? '';
    await desk.start();
  }, 120_000);
  afterAll(() => desk.close());

  const openRun = async (look = {}) => {
    const seen = await open(`${desk.url}/#/runs/${id}`, { token: desk.token, ...look });
    await untilState(seen.page, 'Done');
    return seen;
  };

  test('a finished run is shown as its journal tells it', async () => {
    const { page, complaints } = await openRun();

    const { figures, ...sight } = await runSight(page);
    expect(sight).toEqual({
      title: 'Two files',
      state: 'Done',
      ending: ['ResultCopyAll is done.', expect.stringMatching(/^Next git merge drover\/[a-z0-9-]+-[0-9a-f]{6}Copy$/)],
      lanes: ['Coordinator', 'Worker 1: idle', 'Merge train'],
      tasks: [
        ['Write the first file', 'landed', 'It has two lines now.'],
        ['Write the second', 'landed', 'Added.'],
      ],
      inspector: 'Coordinator',
    });
    expect(Object.keys(figures)).toEqual(['Elapsed', 'Tasks', 'Tokens', 'From cache', 'Cost', 'Throttled']);
    expect(figures).toMatchObject({ Tasks: '2/2', Cost: expect.stringMatching(/^\$0\.\d{4}$/) });
    expect(await conversationSight(page)).toEqual([
      expect.stringMatching(/^user: The goal: Two files\n/),
      expect.stringMatching(/^call: submit_plan /),
      'said: All is done.',
    ]);
    expect(await page.title()).toBe('Two files · project – drover');
    expect(complaints).toEqual([]);
  });

  test.each([
    ['light', false],
    ['dark', true],
  ])('its timeline is drawn in the colours of %s', async (_, dark) => {
    const { page } = await openRun({ dark });
    expect(await coloursOnCanvas(page, ['step', 'asked', 'call', 'merge'])).toEqual(['step', 'asked', 'call', 'merge']);
  });

  test('a task shows its worker’s messages and calls, its facts and its changes', async () => {
    const { page } = await openRun();
    await chooseTask(page, 'Write the first file');
    expect((await conversationSight(page)).filter((entry) => !entry.startsWith('user: You are worker'))).toEqual([
      'heading: Attempt 1',
      'said: First a.txt.',
      'call: write: a.txt',
      'call: read: a.txt',
      'call: submit_result {"summary":"It has two lines now."}',
    ]);
    await page.getByText('read: a.txt').click();
    expect(await page.locator('.call details[open] .output').innerText()).toBe('1\tone\n2\ttwo');

    await chooseTab(page, 'Diff');
    expect(await diffSight(page)).toEqual(['a.txt+1−0', '|||line 1', '1|1||one', '|2|+|two']);

    await chooseTab(page, 'Task');
    const names = await page.locator('.facts dt').allInnerTexts();
    const values = await page.locator('.facts dd').allInnerTexts();
    expect(names).toEqual(['State', 'Task', 'Worker', 'Attempts', 'Time', 'Tokens', 'Cost', 'Commit']);
    expect(values.slice(0, 4)).toEqual(['landed', 'alpha', '1', '1']);
    expect(await page.locator('.files').innerText()).toBe('a.txt');
  });

  test('keys alone lead from the list through the timeline into a conversation', async () => {
    const { page } = await open(`${desk.url}/`, { token: desk.token });
    await page.getByRole('link', { name: 'Two files' }).waitFor();
    const path: string[] = [];
    const press = async (key: string, then = async () => {}) => {
      await page.keyboard.press(key);
      await then();
      path.push(`${key}: ${await focusOf(page)}`);
    };
    for (let at = 0; at < 6; at++) await press('Tab');
    await press('Enter', () => untilState(page, 'Done'));
    const intoTimeline = ['Tab', 'Tab', 'Tab', 'Tab', 'Tab', 'Tab', 'Tab', 'Tab', 'ArrowDown', 'Enter', 'Tab'];
    const throughBars = ['Home', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'Enter', 'ArrowDown', 'ArrowUp'];
    const intoConversation = ['Tab', 'Tab', 'Tab', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'Tab'];
    for (const key of [...intoTimeline, ...throughBars, ...intoConversation]) await press(key);
    expect(path).toEqual([
      'Tab: Skip to the content',
      'Tab: drover',
      'Tab: Sign out',
      'Tab: New run',
      'Tab: New session',
      'Tab: Two files',
      'Enter: the content',
      'Tab: Copy the answer',
      'Tab: Copy the command',
      'Tab: Merge',
      'Tab: Diff of the run',
      'Tab: All',
      'Tab: 5 min',
      'Tab: 1 min',
      'Tab: Coordinator',
      'ArrowDown: Worker 1',
      'Enter: Worker 1',
      'Tab: Worker 1: steps and calls, arrow keys to go through them',
      'Home: Worker 1 > Step 1',
      'ArrowRight: Worker 1 > write: a.txt',
      'ArrowRight: Worker 1 > Step 2',
      'ArrowRight: Worker 1 > read: a.txt',
      'Enter: Worker 1 > read: a.txt',
      'ArrowDown: Merge train: steps and calls, arrow keys to go through them',
      'ArrowUp: Worker 1 > read: a.txt',
      'Tab: Write the first file',
      'Tab: Write the second',
      'Tab: Conversation',
      'ArrowRight: Task',
      'ArrowRight: Diff',
      'ArrowRight: Conversation',
      'Tab: Conversation',
    ]);
    expect(await page.locator('.call details[open] .call-title').allInnerTexts()).toEqual(['read: a.txt']);
  });

  test('nothing is wider than a phone on a phone', async () => {
    const { page } = await open(`${desk.url}/`, { token: desk.token, width: 390, height: 844, dark: true });
    const screens = [
      ['#/', '.kept-link'],
      [`#/runs/${id}`, '.task'],
      ['#/new/run', '.form'],
      ['#/new/session', '.form'],
    ] as const;
    for (const [hash, sign] of screens) {
      await page.evaluate(`location.hash = '${hash}'`);
      await page.locator(sign).first().waitFor();
      expect([hash, await widthOf(page)]).toEqual([hash, 390]);
    }
  });
});

const UNCHANGED_PLAN = `
goal: Nothing to do
tasks:
  - { id: green, title: Fine already, prompt: Look at it., gates: ["true"] }
  - { id: red, title: Left as it was, prompt: Repair it., gates: ["false"] }
`;

inBrowser('a run whose tasks changed nothing', (open) => {
  let desk: PageDesk;
  let ran: RanRun;

  beforeAll(async () => {
    desk = await PageDesk.open({ answers: [submits('Fine.'), submits('Fine.')] });
    await writeFile(join(desk.run.folder, 'plan.yaml'), UNCHANGED_PLAN);
    ran = await desk.run.run(['run', '--plan', '../plan.yaml', '--yes', '--model', 'anthropic/claude-sonnet-4-5']);
    await desk.start();
  }, 120_000);
  afterAll(() => desk.close());

  test('tasks under a green gate and a red gate look different', async () => {
    const { page } = await open(`${desk.url}/#/runs/${ran.end.run}`, { token: desk.token });
    await untilState(page, 'Incomplete');
    const { tasks, figures } = await runSight(page);
    const said = "it changed nothing, and the gate 'false' fails on its base:";
    expect(tasks).toEqual([
      ['Fine already', 'no change', 'Fine.'],
      ['Left as it was', 'failed', expect.stringContaining(said)],
    ]);
    expect(figures).toMatchObject({ Tasks: expect.stringMatching(/^1\/2/) });
    await chooseTask(page, 'Left as it was');
    await page.getByRole('tab', { name: 'Diff' }).click();
    await page.getByText('This task changed nothing.').waitFor({ timeout: 20_000 });
  });

  test('report, task row and events distinguish them too', async () => {
    const { stdout } = await desk.run.drover(['show', ran.end.run ?? '']);
    expect(stdout).toContain('Nothing to change (1)');
    expect(ran.end.tasks.map(({ status, failure }) => [status, failure])).toEqual([
      ['done', undefined],
      ['failed', { kind: 'gate.failed', command: 'false', output: expect.any(String), unchanged: true }],
    ]);
    const shown = await desk.run.drover(['show', ran.end.run ?? '', 'green']);
    expect(shown.stdout).toContain('no change');
  });
});
