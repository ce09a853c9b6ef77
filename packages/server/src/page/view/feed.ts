// Feeds events into a fold while a screen is open. It yields between slices of work, so that the page stays responsive
// while it catches up.

import type { Recorded } from '@drover/protocol/events';
import type { Connection, FollowOptions } from '@drover/client/stream';

const SLICE_MS = 8;
/** While the page is open, it waits for its server. */
const PATIENCE_MS = 7 * 24 * 3_600_000;

export type PageFeedOptions = {
  readonly events: (options: FollowOptions) => AsyncIterable<Recorded>;
  readonly take: (event: Recorded) => void;
  readonly onConnection: (connection: Connection) => void;
  /** There is nothing more to come, or with an error: no way to get it. */
  readonly onEnd: (error?: unknown) => void;
};

export class Feed {
  readonly #stop = new AbortController();
  #aheadMs = 0;

  constructor(options: PageFeedOptions) {
    void this.#follow(options);
  }

  /** The time by the server's clock, as far as it can be told from here: its events are never in the future. */
  now(): number {
    return Date.now() + this.#aheadMs;
  }

  stop(): void {
    this.#stop.abort();
  }

  async #follow({ events, take, onConnection, onEnd }: PageFeedOptions): Promise<void> {
    const { signal } = this.#stop;
    try {
      let until = performance.now() + SLICE_MS;
      for await (const event of events({ signal, onConnection, patienceMs: PATIENCE_MS })) {
        if (signal.aborted) return;
        take(event);
        this.#aheadMs = Math.max(this.#aheadMs, Date.parse(event.at) - Date.now());
        if (performance.now() < until) continue;
        await pausePageFeed();
        until = performance.now() + SLICE_MS;
      }
      onEnd();
    } catch (error) {
      if (!signal.aborted) onEnd(error);
    }
  }
}

/** Lets everything else have its turn. */
function pausePageFeed(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
