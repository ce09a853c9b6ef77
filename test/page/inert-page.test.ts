// Text of models, tools and files is only text on the page: none of it is run, loaded or hidden.

import { expect, test } from 'vitest';
import { inBrowser } from '../support/serve/chromium.ts';
import { pageDesk } from '../support/serve/page-desk.ts';
import {
  chooseTab,
  chooseTask,
  conversationSight,
  diffSight,
  runSight,
  untilState,
} from '../support/serve/page-sight.ts';
import { proves } from '../support/proves.ts';
import { calls, planned, says, submits } from '../support/run/run-desk.ts';

const MARKUP = `<script>hit = 1</script><img src=x onerror="hit = 2"><a href="javascript:hit = 3">go</a>`;
const BACKWARDS = '\u202Etxt.exe';
const HOSTILE = `${MARKUP}${BACKWARDS}\u0007\u001B[31mred\u001B[0m`;
/** The visible text of an element. */
const SEEN = `${MARKUP}⟨U+202E⟩txt.exe␇red`;
const FILE = `<img src=x onerror="hit = 4">.txt`;

const SCRIPT = planned({
  t: {
    title: HOSTILE,
    prompt: HOSTILE,
    answers: [
      { thinking: HOSTILE, text: HOSTILE, calls: [{ name: 'write', args: { path: FILE, content: `${HOSTILE}\n` } }] },
      calls('read', { path: FILE }),
      submits(HOSTILE),
    ],
  },
});

inBrowser('hostile text', (open) => {
  proves('page.inert', 'hostile text in a run is shown as text everywhere, and does nothing', async () => {
    const desk = await pageDesk({ ...SCRIPT, answers: [...(SCRIPT.answers ?? []).slice(0, 1), says(HOSTILE)] });
    const { id } = await desk.client.startRun({ goal: HOSTILE, workers: 0 });
    const { page, complaints } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
    await untilState(page, 'Done');

    const { title, ending, tasks } = await runSight(page);
    expect({ title, ending, tasks }).toEqual({
      title: SEEN,
      ending: [`ResultCopy${SEEN}`, expect.stringMatching(/^Next git merge drover\/[a-z0-9-]+-[0-9a-f]{6}Copy$/)],
      tasks: [[SEEN, 'landed', SEEN]],
    });
    expect(await page.title()).toBe(`${SEEN} · project – drover`);
    await chooseTask(page, SEEN);
    expect((await conversationSight(page)).slice(2, -1)).toEqual([
      `thinking: ${SEEN}`,
      `said: ${SEEN}`,
      `call: write: ${FILE}`,
      `call: read: ${FILE}`,
    ]);
    for (const call of await page.locator('.call summary').all()) await call.click();
    expect(await page.locator('.call .output').allInnerTexts()).toEqual([
      `created ${FILE} (1 line)`,
      `1\t${SEEN}`,
      'received',
    ]);
    await chooseTab(page, 'Diff');
    expect(await diffSight(page)).toEqual([`${FILE}new+1−0`, '|||line 1', `|1|+|${SEEN}`]);
    await chooseTab(page, 'Task');
    expect(await page.locator('.about-task .prose').allInnerTexts()).toEqual([SEEN, SEEN]);

    await page.locator('.lane-name').last().hover();
    expect(await page.evaluate('typeof hit')).toBe('undefined');
    expect(await page.locator('main :is(script, img, a, iframe, object, style)').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('a question shows the command that would run, and no other', async () => {
    const command = `echo ${BACKWARDS} ${MARKUP}`;
    const desk = await pageDesk({ answers: [calls('shell', { command }), says('fine')] });
    const { id } = await desk.client.createSession({});
    await desk.client.openExecution(id, { content: HOSTILE });
    const { page, complaints } = await open(`${desk.url}/#/sessions/${id}`, { token: desk.token });

    expect(await page.locator('.subject').innerText()).toBe(command.replace('\u202E', '⟨U+202E⟩'));
    await page.getByRole('button', { name: /^Don’t allow/ }).click();
    await untilState(page, 'Done');
    expect(await page.locator('h1').innerText()).toBe(SEEN);
    expect(SEEN.startsWith(await page.locator('.kept-title').innerText())).toBe(true);
    expect(complaints).toEqual([]);
  });

  test('the content policy holds against the page itself', async () => {
    const desk = await pageDesk({});
    const { page, complaints } = await open(`${desk.url}/`, { token: desk.token });
    const tries = [
      `document.body.innerHTML = '<img src=x onerror="hit = 5">'`,
      `document.body.append(Object.assign(document.createElement('script'), { text: 'hit = 6' }))`,
      `setTimeout('hit = 7')`,
      `await fetch('http://127.0.0.1:9/')`,
    ];
    const refused = tries.map((code) => page.evaluate(`(async () => { ${code} })()`).catch((error: Error) => error));
    expect(
      (await Promise.all(refused)).map((error) => /requires '\w+'|Failed to fetch/.exec(String(error))?.[0]),
    ).toEqual(["requires 'TrustedHTML'", "requires 'TrustedScript'", "requires 'TrustedScript'", 'Failed to fetch']);
    expect(await page.evaluate('typeof hit')).toBe('undefined');
    // The browser reports the attempts, so a test that checks for complaints would fail.
    expect(complaints.every((each) => /The action has been blocked|Refused to connect/.test(each))).toBe(true);
    expect(complaints.length).toBeGreaterThanOrEqual(4);
  });
});
