// The connection to a server, below the protocol: whole messages of JSON in both directions.
//
// The client library assigns the three callbacks. `pid` and `stderr` are how it tells a process from a URL: an old
// server that never answers an unknown request then counts as old, and not as out of reach.

import type { JsonObject } from '@drover/protocol/json';

export type Wire = {
  start: () => Promise<void>;
  send: (message: JsonObject, options?: never) => Promise<void>;
  close: () => Promise<void>;
  onmessage?: ((message: JsonObject, extra?: unknown) => void) | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  readonly hasPerRequestStream?: boolean;
  sessionId?: string | undefined;
  setProtocolVersion?: ((version: string) => void) | undefined;
  setSupportedProtocolVersions?: ((versions: string[]) => void) | undefined;
};

/** A message that surely reached no tool. Its message says why the connection is of no more use. */
export class NotDeliveredError extends Error {
  override readonly name = 'NotDeliveredError';
}
