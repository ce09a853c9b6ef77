// Iterates over the items of an async generator of groups, one by one or group by group.
//
// An answer may stream a thousand items a second, and a generator that yields each item awaits twice for every one.
// This iterator awaits only once per group. A consumer that awaits nothing between items can read whole groups
// with `iterateInGroups`.

const OVER = { value: undefined, done: true } as const;

export function oneByOne<Item>(groups: AsyncGenerator<readonly Item[]>): AsyncIterableIterator<Item> {
  return new OneByOne(groups);
}

/** Returns the items in the groups in which they arrived. */
export function iterateInGroups<Item>(items: AsyncIterable<Item>): AsyncIterable<readonly Item[]> {
  const iterator = items[Symbol.asyncIterator]();
  return iterator instanceof OneByOne ? (iterator as OneByOne<Item>).inGroups() : iterateOneByOne(iterator);
}

class OneByOne<Item> implements AsyncIterableIterator<Item> {
  readonly #groups: AsyncGenerator<readonly Item[]>;
  #group: readonly Item[] = [];
  #at = 0;

  constructor(groups: AsyncGenerator<readonly Item[]>) {
    this.#groups = groups;
  }

  next(): Promise<IteratorResult<Item>> {
    if (this.#at < this.#group.length) return Promise.resolve({ value: this.#group[this.#at++]!, done: false });
    return this.#later();
  }

  async return(): Promise<IteratorResult<Item>> {
    this.#group = [];
    await this.#groups.return(undefined);
    return OVER;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async *inGroups(): AsyncGenerator<readonly Item[]> {
    if (this.#at < this.#group.length) yield this.#rest();
    yield* this.#groups;
  }

  async #later(): Promise<IteratorResult<Item>> {
    const { value, done } = await this.#groups.next();
    // Items of the last group are left only if two calls of next() overlapped.
    this.#group = [...this.#rest(), ...(done === true ? [] : value)];
    return done === true && this.#group.length === 0 ? OVER : this.next();
  }

  #rest(): readonly Item[] {
    const rest = this.#group.slice(this.#at);
    this.#group = [];
    this.#at = 0;
    return rest;
  }
}

async function* iterateOneByOne<Item>(iterator: AsyncIterator<Item>): AsyncGenerator<readonly Item[]> {
  for await (const item of { [Symbol.asyncIterator]: () => iterator }) yield [item];
}
