// Waits until a launcher accepts connections: its socket exists a moment earlier.

import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export async function listening(path: string): Promise<void> {
  for (;;) {
    const socket = connect(path);
    try {
      await once(socket, 'connect');
      return;
    } catch {
      await delay(10);
    } finally {
      socket.destroy();
    }
  }
}
