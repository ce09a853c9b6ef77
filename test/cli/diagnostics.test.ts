// DROVER_LOG: each level prints what is at least as serious, and nothing else.

import { appendFile } from 'node:fs/promises';
import { journalPath } from '@drover/core/journal/session-journal';
import { expect, test } from 'vitest';
import { Desk } from './desk.ts';

const SCRIPT = 'answers:\n  - text: Done.\nloop: true\n';
const ARGS = ['exec', 'go', '--session', 's', '--model', 'rehearsal/script.yaml', '--view', 'silent'];

type Line = { readonly level: number; readonly msg: string };

/** The folder of a desk is its home, where there is no sandbox. */
async function diagnosed(desk: Desk, level: string): Promise<readonly string[]> {
  const { code, stderr } = await desk.run(ARGS, { env: { DROVER_LOG: level } });
  expect(code).toBe(0);
  const lines = stderr.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as Line).map(({ level: number, msg }) => `${number} ${msg}`);
}

const INFO = ['30 session opened', '30 turn ended'];
const WARN = ['40 there is no sandbox'];

test.each([
  ['error', []],
  ['warn', WARN],
  ['info', [...WARN, ...INFO]],
  ['debug', [...WARN, ...INFO]],
])('DROVER_LOG=%s prints what is at least as serious', async (level, lines) => {
  expect(await diagnosed(await Desk.with(SCRIPT), level)).toEqual(lines);
});

test('a repaired journal is a warning', async () => {
  const desk = await Desk.with(SCRIPT);
  await desk.run(ARGS);
  await appendFile(journalPath(desk.home, 's'), '{"torn');
  expect(await diagnosed(desk, 'warn')).toEqual([
    '40 a journal was repaired: 6 bytes of an unfinished record were cut off',
    ...WARN,
  ]);
  expect(await diagnosed(desk, 'warn')).toEqual(WARN);
});
