// Groups split into items: in order, none lost; leaving early closes the source.

import { iterateInGroups, oneByOne } from '@drover/core/one-by-one';
import { expect, test } from 'vitest';

async function* groupsOf(...groups: readonly (readonly number[])[]): AsyncGenerator<readonly number[]> {
  for (const group of groups) yield group;
}

test('items come in order, and an empty group is not the end', async () => {
  expect(await Array.fromAsync(oneByOne(groupsOf([1, 2], [], [3], [])))).toEqual([1, 2, 3]);
});

test('concurrent calls of next get the same items', async () => {
  const items = oneByOne(groupsOf([1, 2, 3], [4]));
  const results = await Promise.all(Array.from({ length: 6 }, () => items.next()));
  expect(results.flatMap(({ value, done }) => (done === true ? [] : [value]))).toEqual([1, 2, 3, 4]);
});

test('items before a failure come before it', async () => {
  async function* failing(): AsyncGenerator<readonly number[]> {
    yield [1, 2];
    throw new Error('broken');
  }
  const got: number[] = [];
  const reading = (async () => {
    for await (const item of oneByOne(failing())) got.push(item);
  })();
  await expect(reading).rejects.toThrow('broken');
  expect(got).toEqual([1, 2]);
});

test('leaving early closes the source, and nothing follows', async () => {
  let isClosed = false;
  async function* source(): AsyncGenerator<readonly number[]> {
    try {
      yield [1, 2];
      yield [3];
    } finally {
      isClosed = true;
    }
  }
  const items = oneByOne(source());
  for await (const item of items) if (item === 1) break;
  expect(isClosed).toBe(true);
  expect(await items.next()).toEqual({ value: undefined, done: true });
});

test('a reader of groups gets them as they came, and the rest of a started one', async () => {
  expect(await Array.fromAsync(iterateInGroups(oneByOne(groupsOf([1, 2], [3]))))).toEqual([[1, 2], [3]]);
  const items = oneByOne(groupsOf([1, 2, 3], [4]));
  await items.next();
  expect(await Array.fromAsync(iterateInGroups(items))).toEqual([[2, 3], [4]]);
});

test('items without groups are a group each', async () => {
  async function* single(): AsyncGenerator<number> {
    yield 1;
    yield 2;
  }
  expect(await Array.fromAsync(iterateInGroups(single()))).toEqual([[1], [2]]);
});

test('leaving in the middle of a group closes the source', async () => {
  let isClosed = false;
  async function* source(): AsyncGenerator<readonly number[]> {
    try {
      yield [1, 2];
      yield [3];
    } finally {
      isClosed = true;
    }
  }
  for await (const group of iterateInGroups(oneByOne(source()))) if (group.length > 1) break;
  expect(isClosed).toBe(true);
});
