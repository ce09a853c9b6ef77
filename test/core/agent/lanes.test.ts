// Lanes: which calls may run at the same time.

import { Lanes, type Demand } from '@drover/core/agent/calls/lanes';
import { expect, test } from 'vitest';

/** Starts all calls, finishes them in starting order, and reports which ran concurrently. */
async function schedule(demands: readonly (Partial<Demand> & { name: string })[], parallelMax = 8): Promise<string[]> {
  const lanes = new Lanes(parallelMax);
  const running = new Set<string>();
  const seen: string[] = [];
  await Promise.all(
    demands.map(({ name, access = 'none', alone = false, touches = [] }) =>
      lanes.run({ access, alone, touches }, async () => {
        running.add(name);
        seen.push([...running].join('+'));
        await new Promise((resolve) => setTimeout(resolve, 5));
        running.delete(name);
      }),
    ),
  );
  return seen;
}

test('calls without conflicts run together, up to the bound', async () => {
  const together = await schedule([{ name: 'a' }, { name: 'b' }, { name: 'c' }], 2);
  expect(together.slice(0, 2)).toEqual(['a', 'a+b']);
  expect(together.every((names) => names.split('+').length <= 2)).toBe(true);
});

test('two writes to one path never overlap, and keep their order', async () => {
  const seen = await schedule([
    { name: 'a', touches: ['x'] },
    { name: 'b', touches: ['x'] },
    { name: 'c', touches: ['y'] },
  ]);
  expect(seen.slice(0, 2)).toEqual(['a', 'a+c']);
  expect(seen[2]).toMatch(/^(c\+)?b$/);
});

test('an exclusive call runs alone', async () => {
  const seen = await schedule([{ name: 'a' }, { name: 'b', alone: true }, { name: 'c' }]);
  expect(seen).toEqual(['a', 'b', 'c']);
});

test('a command never overlaps with a tool that reads or writes files', async () => {
  const seen = await schedule([
    { name: 'command', access: 'run' },
    { name: 'other command', access: 'run' },
    { name: 'read', access: 'read' },
    { name: 'write', access: 'write', touches: ['x'] },
    { name: 'remote', access: 'none' },
    { name: 'last command', access: 'run' },
  ]);
  const files = ['read', 'write'];
  const races = seen.filter((names) => names.includes('command') && files.some((each) => names.includes(each)));
  expect(races).toEqual([]);
  expect(seen).toContain('command+other command');
  expect(seen.at(-1)).toMatch(/last command$/);
});

test('a call that fails frees its lane', async () => {
  const lanes = new Lanes(1);
  await expect(
    lanes.run({ access: 'none', alone: false, touches: [] }, () => Promise.reject(new Error('no'))),
  ).rejects.toThrow('no');
  expect(await lanes.run({ access: 'none', alone: true, touches: [] }, async () => 'next')).toBe('next');
});
