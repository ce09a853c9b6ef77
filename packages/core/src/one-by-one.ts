// Things that come in groups, one by one.
//
// An answer may come in a thousand pieces a second, and a generator that yields each of them waits twice for
// every one. This waits for groups only: what is in them is there when it is asked for.

const OVER = { value: undefined, done: true } as const;

export function oneByOne<Item>(groups: AsyncGenerator<readonly Item[]>): AsyncIterableIterator<Item> {
  let group: readonly Item[] = [];
  let at = 0;
  const next = (): Promise<IteratorResult<Item>> =>
    at < group.length ? Promise.resolve({ value: group[at++]!, done: false }) : later();
  const later = async (): Promise<IteratorResult<Item>> => {
    const { value, done } = await groups.next();
    // Something is left of the last group only where two have asked at once.
    group = [...group.slice(at), ...(done === true ? [] : value)];
    at = 0;
    return done === true && group.length === 0 ? OVER : next();
  };
  return {
    next,
    return: async () => {
      group = [];
      await groups.return(undefined);
      return OVER;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
