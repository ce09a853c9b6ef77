// Paths that a config ignores are in no search of a session, the coordinator or a worker.

import { expect, test } from 'vitest';
import type { Shown } from '@drover/core/bus';
import { calls, planned, RunDesk, says, submits } from '../../support/run/run-desk.ts';

const FILES = { '.drover/config.yaml': 'ignore: [generated]\n', 'a.txt': '1\n', 'generated/b.txt': '2\n' };
const SEARCH = calls('glob', { pattern: '*.txt' });

const found = (events: readonly Shown[]): readonly string[] =>
  events.flatMap((event) => (event.type === 'tool_execution_end' && event.name === 'glob' ? [event.output] : []));

test('a run ignores these paths for the coordinator and for its workers', async () => {
  const script = planned({ one: { mode: 'read', answers: [SEARCH, submits('seen')] } });
  const desk = await RunDesk.with({ ...script, answers: [SEARCH, ...(script.answers ?? [])] }, FILES);
  const { events, code } = await desk.run(['run', 'look', '--yes']);
  expect([code, found(events)]).toEqual([0, ['a.txt', 'a.txt']]);
});

test('a session ignores these paths', async () => {
  const desk = await RunDesk.with({ answers: [SEARCH, says('seen')] }, FILES);
  const { stdout } = await desk.drover(['exec', 'look', '--model', 'anthropic/scripted', '--json']);
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Shown);
  expect(found(events)).toEqual(['a.txt']);
});
