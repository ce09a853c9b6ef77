// The dashboard on terminals that are gone, shared or poor, and with runs that have nothing to show.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Event } from '@drover/protocol/events';
import { expect, test } from 'vitest';
import { sampleRun, sampleSettings, Teller } from '../../support/run/sample-run.ts';
import { gateOf, PAINTED_MS, PLAIN, playing, until } from './playing.ts';

test('a closed terminal, or closing twice, causes no error', async () => {
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, view, play } = await playing(events, { columns: 80, rows: 24 });
  await play(20);
  terminal.output.on('error', () => undefined);
  terminal.output.destroy(Object.assign(new Error('gone'), { code: 'EPIPE' }));
  let written = '';
  terminal.output.write = (chunk: string) => (written += chunk) !== '';
  await sleep(PAINTED_MS);
  await view.whileAsking(async () => undefined);
  await play(events.length);
  await view.close();
  expect(written).toBe('');
});

test('the dashboard leaves signals and the other stream to drover', async () => {
  const before = process.listenerCount('SIGINT');
  const { events } = sampleRun({ tasks: 3 });
  const { terminal, play } = await playing(events, { columns: 80, rows: 24 });
  await play(20);
  expect(process.listenerCount('SIGINT')).toBe(before);
  terminal.output.write('written by somebody else\n');
  await terminal.screen();
  expect(terminal.raw).toContain('written by somebody else');
});

test('a locale without Unicode gets ASCII marks', async () => {
  const { events } = sampleRun({ tasks: 20 });
  const { terminal, play } = await playing(events, { columns: 60, rows: 24 }, { env: { ...PLAIN, LANG: 'C' } });
  await play(until(events, gateOf('task-5')));
  await sleep(PAINTED_MS);
  // eslint-disable-next-line no-control-regex
  expect((await terminal.screen()).filter((line) => /[^\u0000-\u007F]/.test(line))).toEqual([]);
});

test('a run with nothing to do says so', async () => {
  const teller = new Teller();
  teller.tell({ type: 'run_start', resumed: false, ...sampleSettings });
  const end: Event = {
    type: 'run_end',
    outcome: 'done',
    exitCode: 0,
    tasks: [],
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  };
  teller.tell(end);
  const { terminal, play } = await playing(teller.events, { columns: 60, rows: 24 });
  await play(2);
  expect((await terminal.everything()).join('\n')).toContain('there was nothing to do');
});
