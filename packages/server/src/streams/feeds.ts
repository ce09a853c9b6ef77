// Feeds: one for each journal that a reader follows or that this process writes.

import type { Bus } from '@drover/core/bus';
import type { EventStream } from './event-stream.ts';
import { Feed, type FeedOptions, type Progress } from './feed.ts';

export type FeedsOptions = Pick<FeedOptions, 'streamBytesMax' | 'commentMs' | 'diagnose'>;

/** A journal, and the event type that ends its streams. */
export type Source = { readonly path: string; readonly lastType?: string };

export class Feeds {
  readonly #options: FeedsOptions;
  readonly #feeds = new Map<string, Feed>();

  constructor(options: FeedsOptions) {
    this.#options = options;
  }

  /** Number of open streams of all feeds. */
  get size(): number {
    return this.#feeds.values().reduce((sum, feed) => sum + feed.size, 0);
  }

  /** Sends the events of this bus from now on. Returns a function that stops it. */
  follow(source: Source, bus: Pick<Bus, 'reader' | 'told'>): () => void {
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

  /** How far the events of a journal of this process were sent; undefined for any other journal. */
  progress(path: string, worker: number): Progress | undefined {
    return this.#feeds.get(path)?.progress(worker);
  }

  /** Ends the streams of one journal, or of all. */
  end(path?: string): void {
    if (path !== undefined) this.#feeds.get(path)?.end();
    else for (const feed of this.#feeds.values()) feed.end();
  }

  #feed(source: Source): Feed {
    const known = this.#feeds.get(source.path);
    if (known !== undefined) return known;
    const onIdle = (): void => {
      if (this.#feeds.get(source.path) === feed) this.#feeds.delete(source.path);
    };
    const feed: Feed = new Feed({ ...this.#options, ...source, onIdle });
    this.#feeds.set(source.path, feed);
    return feed;
  }
}
