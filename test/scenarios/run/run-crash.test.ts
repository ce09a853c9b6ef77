// A run killed with -9 resumes: the same tree, and no answered request is repeated.
// A sample of kill points; the slow lane runs them all.

import { sumUsage } from '@drover/core/model/spending/usage';
import { expect } from 'vitest';
import { proves } from '../../support/proves.ts';
import { crashedRun, drover, recordsOf } from '../../support/run/run-crash.ts';
import { planned, RunDesk, submits, writes } from '../../support/run/run-desk.ts';

const WHOLE = {
  tree: { 'a.txt': 'both', 'base.txt': 'base' },
  code: 3,
  statuses: { base: 'landed', clash: 'landed', first: 'landed', red: 'gate_failed' },
  repeated: [],
  refused: 0,
};

// At the last point the task's work is complete and stored, but its end is not.
const PLACES = [
  [20, 'after'],
  [150, 'after'],
  ['task_end', 'before'],
] as const;

for (const [at, when] of PLACES)
  proves(
    'run.kill-anywhere',
    `killed ${when} record ${at}, a run has the same result`,
    async () => {
      expect(await crashedRun(at, when, 0)).toMatchObject({ ...WHOLE, wasKilled: true });
    },
    90_000,
  );

proves(
  'budget.holds',
  'requests open at a kill count in full, and the cap covers both parts of the run',
  async () => {
    const desk = await RunDesk.with(planned({ one: { answers: [writes('one.txt', '1\n'), submits('one')] } }));
    const cap = 150_000;
    const argv = ['run', 'do it', '--model', 'anthropic/scripted', '--budget', `${cap}tok`, '--workers', '0'];
    expect(await drover(desk, 'budget', 'after', [...argv, '--view', 'silent'])).toBe('SIGKILL');
    const lost = recordsOf(desk).findLast(({ type }) => type === 'budget');
    const { most } = lost as typeof lost & { type: 'budget' };
    expect(most).toMatchObject({ estimated: true });
    expect(await drover(desk, 0, 'after', ['resume', '--view', 'silent'])).toBe(0);

    const records = recordsOf(desk);
    const balances = records.filter((record) => record.type === 'budget');
    expect(balances.filter(({ spent, reserved }) => spent + reserved > cap)).toEqual([]);
    const answered = records.flatMap((record) => (record.type === 'usage' ? [record.usage] : []));
    const counted = [...answered, ...(most === undefined ? [] : [most])].reduce(sumUsage);
    expect(balances.at(-1)?.usage).toEqual(counted);
    expect(records.flatMap((record) => (record.type === 'warning' ? [record.message] : []))).toEqual([
      'a request was under way when the run was interrupted, and what it cost is unknown: the most that it can have cost counts as spent',
    ]);
  },
  90_000,
);
