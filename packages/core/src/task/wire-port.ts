// The port of a task wire: between two threads, or over a network connection.

/** Messages are plain data, arrive in order, and each once. A MessagePort is one. */
export type WirePort = {
  readonly postMessage: (message: unknown) => void;
  readonly on: (event: 'message' | 'close', listener: (message: unknown) => void) => unknown;
  readonly close: () => void;
};
