// A relay in front of a server: a line that is slow, cut without a word, or closed, as the test wants.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export type RelayWish = {
  readonly delayMs?: number;
  /** Changes what passes, in both directions. */
  readonly change?: (bytes: Buffer) => Buffer;
};

export class Relay {
  readonly port: number;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #delayMs: number;
  readonly #change: (bytes: Buffer) => Buffer;
  #isCut = false;

  private constructor(server: Server, to: number, { delayMs = 0, change = (bytes) => bytes }: RelayWish) {
    this.port = (server.address() as AddressInfo).port;
    this.#delayMs = delayMs;
    this.#change = change;
    server.on('connection', (near) => this.#join(near, connect(to, '127.0.0.1')));
    onTestFinished(() => {
      server.close();
      this.close();
    });
  }

  static async to(port: number, wish: RelayWish = {}): Promise<Relay> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Relay(server, port, wish);
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** From now on no byte passes and nothing is closed, as when a cable is unplugged. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets()) socket.pause();
  }

  /** Bytes pass again: those that were on their way arrive late. */
  heal(): void {
    this.#isCut = false;
    for (const socket of this.#sockets()) socket.resume();
  }

  /** Closes every connection. New ones are accepted. */
  close(): void {
    for (const socket of this.#sockets()) socket.destroy();
  }

  #sockets(): readonly Socket[] {
    return [...this.#pairs].flat();
  }

  #join(near: Socket, far: Socket): void {
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    this.#pass(near, far);
    this.#pass(far, near);
    for (const socket of pair) {
      // The other end sees it as closed.
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#pairs.delete(pair);
        for (const each of pair) each.destroy();
      });
      if (this.#isCut) socket.pause();
    }
  }

  #pass(from: Socket, to: Socket): void {
    from.setNoDelay(true);
    from.on('data', (bytes) => {
      const chunk = this.#change(bytes);
      const pass = () => void (to.writable && to.write(chunk));
      if (this.#delayMs === 0) pass();
      else setTimeout(pass, this.#delayMs);
    });
  }
}
