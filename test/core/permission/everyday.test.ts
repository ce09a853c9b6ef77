// Everyday commands run unasked, and those that do change nothing.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { everyday } from './everyday.ts';
import { contentsOf, runInBash, sampleRepository } from './sample-repository.ts';
import { judgeCommand } from './tools.ts';

const ASKED_MAX = 45;
const TOGETHER = 50;

let sample: Awaited<ReturnType<typeof sampleRepository>>;
beforeAll(async () => {
  sample = await sampleRepository();
});
afterAll(() => sample.remove());

test('of three hundred everyday commands, few are asked about', async () => {
  expect([everyday.length, new Set(everyday).size]).toEqual([300, 300]);
  const asked: string[] = [];
  for (const command of everyday) {
    const { effect, why } = await judgeCommand(command, { root: sample.root });
    if (effect !== 'allow') asked.push(`${command.padEnd(60)} ${why}`);
  }
  expect(asked.length).toBeLessThanOrEqual(ASKED_MAX);
  expect(asked).toMatchSnapshot();
});

test('no everyday command that runs unasked makes, changes or removes a file', async () => {
  const verdicts = await Promise.all(everyday.map((command) => judgeCommand(command, { root: sample.root })));
  const allowed = everyday.filter((_, at) => verdicts[at]?.effect === 'allow');
  const before = await contentsOf(sample.root);
  const codes: number[] = [];
  for (let at = 0; at < allowed.length; at += TOGETHER) {
    const some = allowed.slice(at, at + TOGETHER);
    codes.push(...(await runInBash(some, sample.root)));
    expect(await contentsOf(sample.root), some.join('\n')).toEqual(before);
  }
  // Not all of them can succeed, nor is everything installed everywhere; but most of it was really tried.
  expect(codes.length).toBe(allowed.length);
  expect(codes.filter((code) => code === 0).length).toBeGreaterThan(200);
}, 120_000);
