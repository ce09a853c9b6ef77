// The page while eight workers stream: it responds to the user, and its memory is bounded.
//
// Wall-clock time would measure the machine. The tests count frames between a key and its effect, and the share of long
// tasks in all the time.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { inBrowser } from '../../support/serve/chromium.ts';
import { PageDesk } from '../../support/serve/page-desk.ts';
import { runSight, untilState } from '../../support/serve/page-sight.ts';
import { calls, planned, type ScriptedTask, submits } from '../../support/run/run-desk.ts';

const WORKERS = 8;
const EVENTS_A_SECOND_MIN = 50;
const FRAMES_MAX = 6; // from a key press to its effect
const NODES_MAX = 4_000;
const LONG_SHARE_MAX = 0.5; // share of the total time
const PRESSES = 32;

/** Long answers, streamed word by word, with calls between them. */
function chatty(at: number): ScriptedTask {
  const steps = Array.from({ length: 12 }, (_, step) => ({
    text: `Step ${step} of ${at}: on and on it goes. `.repeat(30),
    calls: [{ name: 'write', args: { path: `${at}/note-${step}.txt`, content: `note ${step}\n`.repeat(40) } }],
    tokensPerSecond: 120,
  }));
  return { title: `Write the notes of chapter ${at}`, answers: [...steps, submits(`Chapter ${at} has its notes.`)] };
}

inBrowser('eight workers at once', (open) => {
  test('the page responds while they stream, and stays small', async () => {
    const tasks = Object.fromEntries(Array.from({ length: WORKERS }, (_, at) => [`c${at + 1}`, chatty(at + 1)]));
    const desk = await PageDesk.open(planned(tasks, { chunkChars: 8 }));
    try {
      await desk.start();
      const { id } = await desk.client.startRun({ goal: 'Eight chapters', workers: WORKERS });
      const { page, complaints } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
      await page.locator('.lane').nth(WORKERS).waitFor();
      await page.evaluate(WATCH);
      const heard = listenTo(desk, id);

      for (let at = 0; at < PRESSES; at++) {
        const lane = page.locator('.lane-name').nth(1 + ((at + 1) % WORKERS));
        await lane.click();
        await page
          .locator(`.lane-name[aria-pressed=true]`, { hasText: `Worker ${1 + ((at + 1) % WORKERS)}` })
          .waitFor();
      }
      const rate = heard.rate();
      const { frames, longShare } = await page.evaluate<Watched>('watched()');
      const nodes = await elementsOf(page);
      process.stderr.write(
        `${Math.round(rate)} events a second; frames from press to sight: ${frames.join(' ')}; ` +
          `long tasks ${(100 * longShare).toFixed(1)} % of the time; ${nodes} elements\n`,
      );

      expect(rate).toBeGreaterThan(EVENTS_A_SECOND_MIN);
      expect(frames.length).toBe(PRESSES);
      expect(Math.max(...frames)).toBeLessThanOrEqual(FRAMES_MAX);
      expect(longShare).toBeLessThan(LONG_SHARE_MAX);
      expect(nodes).toBeLessThan(NODES_MAX);
      await untilState(page, 'Done');
      expect((await runSight(page)).tasks.map(([, state]) => state)).toEqual(Array(WORKERS).fill('landed'));
      expect(await elementsOf(page)).toBeLessThan(NODES_MAX);
      expect(complaints).toEqual([]);
    } finally {
      await desk.close();
    }
  });
});

inBrowser('a run that is resumed', (open) => {
  test('a run that is cancelled and resumed in a terminal is shown live', async () => {
    const script = planned({
      tidy: { title: 'Tidy up', answers: [calls('shell', { command: 'touch made.txt' }), submits('It is tidy.')] },
    });
    const desk = await PageDesk.open(script);
    try {
      await desk.start();
      const { id } = await desk.client.startRun({ goal: 'Tidy', workers: 0 });
      const { page } = await open(`${desk.url}/#/runs/${id}`, { token: desk.token });
      await page.locator('.question').waitFor();
      await desk.client.cancelRun(id);
      await untilState(page, 'Cancelled');

      const gone = desk.run.drover(['resume', id, '--yes']);
      await untilState(page, 'Done');
      expect((await gone).code).toBe(0);
      expect((await runSight(page)).tasks).toEqual([['Tidy up', 'no change', 'It is tidy.']]);
    } finally {
      await desk.close();
    }
  });
});

type Watched = { readonly frames: readonly number[]; readonly longShare: number };

// Counts frames from a key press to its effect, and sums the tasks that block the page.
const WATCH = `(() => {
  const from = performance.now();
  const frames = [];
  let longMs = 0;
  let frame = 0;
  let pressed;
  const tick = () => {
    frame += 1;
    requestAnimationFrame(tick);
  };
  tick();
  addEventListener('pointerdown', () => (pressed = frame), true);
  new MutationObserver(() => {
    if (pressed !== undefined) frames.push(frame - pressed);
    pressed = undefined;
  }).observe(document.querySelector('.lanes'), { attributeFilter: ['aria-pressed'], subtree: true });
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longMs += duration;
  }).observe({ type: 'longtask' });
  globalThis.watched = () => ({ frames, longShare: longMs / (performance.now() - from) });
})()`;

function elementsOf(page: Page): Promise<number> {
  return page.evaluate('document.querySelectorAll("*").length');
}

/** A second reader of the same run, which counts its events. */
function listenTo(desk: PageDesk, id: string): { readonly rate: () => number } {
  const from = performance.now();
  let heard = 0;
  const listen = async () => {
    const { seq } = await desk.client.run(id);
    for await (const _ of desk.client.runEvents(id, { after: seq })) heard += 1;
  };
  void listen();
  return { rate: () => (1_000 * heard) / (performance.now() - from) };
}
