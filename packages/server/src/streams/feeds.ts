// All feeds there are: one for each journal that somebody listens to, or that is written here.

import type { Bus } from '@drover/core/bus';
import type { EventStream } from './event-stream.ts';
import { Feed, type FeedOptions } from './feed.ts';

export type FeedsOptions = Pick<FeedOptions, 'streamBytesMax' | 'commentMs' | 'diagnose'>;

/** Whose events they are: the journal, and what ends a stream of them. */
export type Source = { readonly path: string; readonly lastType?: string };

export class Feeds {
  readonly #options: FeedsOptions;
  readonly #feeds = new Map<string, Feed>();

  constructor(options: FeedsOptions) {
    this.#options = options;
  }

  /** How many streams there are. */
  get size(): number {
    return this.#feeds.values().reduce((sum, feed) => sum + feed.size, 0);
  }

  /** What happens here from now on; called again with the same bus when that is over. */
  follow(source: Source, bus: Pick<Bus, 'reader'>): () => void {
    const feed = this.#feed(source);
    feed.follow(bus);
    return () => feed.unfollow(bus);
  }

  replay(source: Source, after: number): EventStream {
    return this.#feed(source).replay(after);
  }

  live(source: Source, until: string): EventStream {
    return this.#feed(source).live(until);
  }

  /** Ends the streams of one journal, or of all. */
  end(path?: string): void {
    if (path !== undefined) this.#feeds.get(path)?.end();
    else for (const feed of this.#feeds.values()) feed.end();
  }

  #feed(source: Source): Feed {
    const known = this.#feeds.get(source.path);
    if (known !== undefined) return known;
    const feed = new Feed({ ...this.#options, ...source, onIdle: () => this.#feeds.delete(source.path) });
    this.#feeds.set(source.path, feed);
    return feed;
  }
}
