// The events of a run: labelled, paired, and the same for every reader, also over threads.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runJournalPath } from '@drover/coordinator/run/journal';
import type { Shown } from '@drover/core/bus';
import { EVENTS } from '@drover/protocol/events';
import { readJournalContents } from '@drover/core/journal/file/format';
import { planned, RunDesk, submits, type ScriptedTask } from '../../support/run/run-desk.ts';

const MANY = Array.from({ length: 101 }, (_, at) => ({ name: 'read', args: { path: 'a.txt', from: at + 1 } }));
const TASKS: Readonly<Record<string, ScriptedTask>> = {
  one: { answers: [{ calls: MANY }, submits('one')] },
  two: { answers: [{ calls: MANY.slice(0, 3) }, submits('two')] },
  three: { answers: [{ calls: MANY.slice(0, 2) }, submits('three')] },
};

const isTool = (event: Shown) => event.type === 'tool_execution_start' || event.type === 'tool_execution_end';

test(
  'tool events carry worker*100 + callIndex, pair by callId, and match the journal',
  { timeout: 90_000 },
  async () => {
    const desk = await RunDesk.with(planned(TASKS));
    const { code, events, end } = await desk.run(['run', 'look around', '--workers', '2']);
    expect(code).toBe(0);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1));

    const tools = events.filter(isTool);
    const odd = tools.filter(
      (event) => !('index' in event) || event.index !== (event.worker ?? 0) * 100 + event.callIndex,
    );
    expect(odd).toEqual([]);
    expect(new Set(tools.flatMap(({ worker }) => worker ?? [])).size).toBeGreaterThan(1);
    const ids = (type: Shown['type']) =>
      tools.flatMap((event) => (event.type === type && 'callId' in event ? [event.callId] : []));
    expect(ids('tool_execution_start').toSorted()).toEqual([...new Set(ids('tool_execution_end'))].toSorted());
    // The hundred-and-first call is refused without an index, since the next index belongs to another worker.
    expect(events.filter((event) => event.type === 'warning' && event.task === 'one')).toHaveLength(1);

    const kept = readJournalContents(readFileSync(runJournalPath(desk.home, end.run ?? ''))).records;
    const { sum: _, ...last } = kept.at(-1) ?? {};
    const reliable = events.filter(({ type }) => EVENTS[type].delivery !== 'lossy');
    expect(kept.filter(({ type }) => type !== 'partial').map(({ seq }) => seq)).toEqual(reliable.map(({ seq }) => seq));
    expect(last).toEqual(JSON.parse(JSON.stringify(end)));
  },
);
