// A thousand tasks on eight workers, every twentieth fails; killed half way and resumed.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Recorded } from '@drover/protocol/events';
import type { Answer } from '@drover/rehearsal/script';
import { runIn, watched } from '../../support/run/batch-crash.ts';
import { BatchDesk, noisyFiles, tidying } from '../../support/run/batch-desk.ts';

const TASKS = Number(process.env['DROVER_BATCH_TASKS'] ?? 1_000);
const WORKERS = 8;

const failing = (path: string): Answer | undefined =>
  Number(/\d+/.exec(path)?.[0]) % 20 === 0 ? { stop: 'refusal', text: 'I will not.' } : undefined;

test('a thousand tasks, killed half way: each result once, memory flat', async () => {
  const script = { ...tidying(failing), seed: 1, faults: [{ rate: 0.02, fault: 'reset' as const }] };
  const batch = await BatchDesk.with(script, noisyFiles(TASKS));
  const { desk } = batch;
  const argv = [
    'batch',
    '../spec.yaml',
    '--model',
    'anthropic/scripted',
    '--workers',
    String(WORKERS),
    '--view',
    'silent',
  ];
  const begun = performance.now();
  const first = await watched(desk, { argv, killAt: TASKS / 2, lookAt: [TASKS / 10, TASKS / 2 - 10] });
  expect(first.end).toBe('SIGKILL');
  const run = runIn(desk) ?? '';
  const second = await watched(desk, { argv: ['resume', run, '--view', 'silent'], killAt: 0, lookAt: [TASKS - 10] });
  const seconds = Math.round((performance.now() - begun) / 1_000);

  const rows = await batch.results();
  const statuses = rows.map(({ status }) => status);
  expect([second.end, new Set(rows.map(({ task }) => task)).size, rows.length]).toEqual([3, TASKS, TASKS]);
  expect([
    statuses.filter((each) => each === 'landed').length,
    statuses.filter((each) => each === 'failed').length,
  ]).toEqual([TASKS * 0.95, TASKS * 0.05]);
  const journal = readFileSync(join(desk.home, 'runs', run, 'journal.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');
  const endings = journal.flatMap((line) => {
    if (!/"type":"(merge_end|task_end)"/.test(line)) return [];
    const record = JSON.parse(line.slice(line.indexOf('{'))) as Recorded;
    if (record.type === 'merge_end') return [record.task ?? ''];
    return record.type === 'task_end' && record.status === 'failed' && !record.again ? [record.task ?? ''] : [];
  });
  expect([endings.length, new Set(endings).size]).toEqual([TASKS, TASKS]);

  const slots = join(desk.home, 'workspaces', readdirSync(join(desk.home, 'workspaces'))[0] ?? '', 'slots');
  const owned = readdirSync(slots).filter(
    (name) =>
      readdirSync(slots).includes(name) && /^\d+$/.test(name) && readdirSync(join(slots, name)).includes('owner.json'),
  );
  expect([owned, readdirSync(slots).filter((name) => /^\d+$/.test(name)).length <= WORKERS + 2]).toEqual([[], true]);

  const atTenth = first.sizes.get(TASKS / 10) ?? 0;
  const atHalf = first.sizes.get(TASKS / 2 - 10) ?? 0;
  const atEnd = second.sizes.get(TASKS - 10) ?? 0;
  process.stdout.write(
    `${TASKS} tasks in ${seconds} s; ${atTenth} MB at a tenth, ${atHalf} at half, ${atEnd} at the end\n`,
  );
  expect(atHalf / atTenth).toBeLessThan(1.3);
  expect(atEnd / atTenth).toBeLessThan(1.3);
}, 3_000_000);
