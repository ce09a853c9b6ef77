// A lease: how long a host may assume that its coordinator still counts on it.
//
// Guarantee: the lease counts from the moment at which the last confirmed renewal was sent, on a monotonic clock. So
// a host ends its attempts before the coordinator gives them to another host, however late a message arrives, and
// whatever the clocks of both machines say.

/** A host without a confirmed renewal ends its attempts after this time. */
const FENCE_MS = 15_000;
/** The coordinator gives the attempts of a silent host to another one after this time. */
export const LOST_MS = 20_000;
export const RENEW_EVERY_MS = 2_000;
const OPEN_MAX = 64;

export type Clock = () => number;

/** The host's side. */
export class Lease {
  readonly #now: Clock;
  readonly #open = new Map<number, number>(); // when each renewal was sent
  #validFrom: number;
  #last = 0;

  constructor(now: Clock) {
    this.#now = now;
    this.#validFrom = now();
  }

  /** Returns the number of a renewal that is sent now. */
  renew(): number {
    this.#last += 1;
    this.#open.set(this.#last, this.#now());
    for (const id of this.#open.keys()) {
      if (this.#open.size <= OPEN_MAX) break;
      this.#open.delete(id);
    }
    return this.#last;
  }

  confirm(id: number): void {
    const sentAt = this.#open.get(id);
    if (sentAt === undefined) return;
    this.#validFrom = Math.max(this.#validFrom, sentAt);
    for (const each of this.#open.keys()) if (each <= id) this.#open.delete(each);
  }

  get isOver(): boolean {
    return this.#now() - this.#validFrom >= FENCE_MS;
  }
}
