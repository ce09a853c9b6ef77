// Tickets: the printed start address carries a ticket instead of the token. A ticket is valid once, for a few
// minutes. It is behind the # of the address, which browsers never send to a server.

import { randomBytes } from 'node:crypto';
import { isSameHttpSecret } from './guard.ts';

const LIFE_MS = 5 * 60_000;
const TICKETS_MAX = 16;

export class Tickets {
  readonly #tickets = new Map<string, number>(); // until when

  issue(): string {
    const ticket = randomBytes(16).toString('hex');
    const [oldest] = this.#tickets.keys();
    if (this.#tickets.size >= TICKETS_MAX && oldest !== undefined) this.#tickets.delete(oldest);
    this.#tickets.set(ticket, performance.now() + LIFE_MS);
    return ticket;
  }

  /** Returns true the first time a valid ticket is given. */
  redeem(given: string): boolean {
    const known = [...this.#tickets].find(([ticket]) => isSameHttpSecret(ticket, given));
    if (known === undefined) return false;
    const [ticket, until] = known;
    this.#tickets.delete(ticket);
    return performance.now() <= until;
  }
}
