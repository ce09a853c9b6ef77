// A line as the port of the task wire, so that both ends of the wire run over Redis as they run between threads.

import type { WirePort } from '@drover/core/task/wire-port';

/** One end of the wire. `hear` gives it a message that arrived. */
export type LinePort = WirePort & { readonly hear: (message: unknown) => void };

export function hostPortOverLine(send: (message: unknown) => void): LinePort {
  let onMessage: (message: unknown) => void = () => undefined;
  let onClose: () => void = () => undefined;
  let isClosed = false;
  return {
    postMessage: (message) => {
      if (!isClosed) send(message);
    },
    on(event, listener) {
      if (event === 'message') onMessage = listener;
      else onClose = listener as () => void;
    },
    close() {
      if (isClosed) return;
      isClosed = true;
      onClose();
    },
    hear: (message) => {
      if (!isClosed) onMessage(message);
    },
  };
}
