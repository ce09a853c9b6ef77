// Things that come in groups, one by one; and in groups again, for whoever would rather have them so.
//
// An answer may come in a thousand pieces a second, and a generator that yields each of them waits twice for
// every one. This waits for groups only: what is in them is there when it is asked for. Whoever has nothing to
// wait for between two pieces asks for the groups themselves, and waits for none.

const OVER = { value: undefined, done: true } as const;

export function oneByOne<Item>(groups: AsyncGenerator<readonly Item[]>): AsyncIterableIterator<Item> {
  return new OneByOne(groups);
}

/** The same things, as many at once as came together. */
export function inGroups<Item>(items: AsyncIterable<Item>): AsyncIterable<readonly Item[]> {
  const iterator = items[Symbol.asyncIterator]();
  return iterator instanceof OneByOne ? (iterator as OneByOne<Item>).inGroups() : alone(iterator);
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
    // Something is left of the last group only where two have asked at once.
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

async function* alone<Item>(iterator: AsyncIterator<Item>): AsyncGenerator<readonly Item[]> {
  for await (const item of { [Symbol.asyncIterator]: () => iterator }) yield [item];
}
