// Refused connections, coalesced per host: a command that tries again and again must not fill the journal.
//
// Guarantees
//   1. Every allowed connection, and the first refusal of each host and port, is passed on at once.
//   2. Later refusals are passed on as counts that double: n of them are at most log2(n) + 2 events.
//   3. After HOSTS_MAX hosts, the refusals of further ones are counted together, without a name.
//   4. The counts add up to the number of connections once `flush` was called.

import type { NetworkEvent } from '@drover/protocol/events';

const HOSTS_MAX = 100;
const OTHERS: NetworkEvent = {
  type: 'network',
  host: 'other-hosts',
  port: 0,
  allowed: false,
  reason: `more than ${HOSTS_MAX} hosts were refused`,
};

type Count = { event: NetworkEvent; told: number; waiting: number };

export type Refusals = {
  readonly take: (event: NetworkEvent) => void;
  /** Passes on what was counted since the last event of each host. */
  readonly flush: () => void;
};

export function coalesceSandboxRefusals(pass: (event: NetworkEvent) => void): Refusals {
  const counts = new Map<string, Count>();
  const tell = (count: Count): void => {
    const { event, waiting } = count;
    count.told += waiting;
    count.waiting = 0;
    pass(waiting === 1 ? event : { ...event, times: waiting });
  };
  const countOf = (event: NetworkEvent): Count => {
    const key = `${event.host}:${event.port}`;
    const known = counts.get(key);
    if (known !== undefined) return known;
    const isFull = counts.size >= HOSTS_MAX;
    const place = isFull ? '' : key;
    const count = counts.get(place) ?? { event: isFull ? OTHERS : event, told: 0, waiting: 0 };
    counts.set(place, count);
    return count;
  };
  return {
    take(event) {
      if (event.allowed) return pass(event);
      const count = countOf(event);
      count.waiting += 1;
      if (count.waiting >= count.told) tell(count);
    },
    flush() {
      for (const count of counts.values()) if (count.waiting > 0) tell(count);
    },
  };
}
