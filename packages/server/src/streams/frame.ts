// Frames: one event each, encoded as a server-sent event.

import type { Resync } from '@drover/client/wire';
import type { Shown } from '@drover/core/bus';
import { EVENTS, isEventType } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';

export type Frame = {
  readonly seq: number;
  readonly type: string;
  readonly isLossy: boolean;
  readonly bytes: Uint8Array;
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const NOTHING = new Uint8Array();

/** Tells clients without a retry policy how long to wait before reconnecting. */
export const GREETING = encoder.encode('retry: 1000\n\n');
/** Keep-alive, so that clients and proxies do not close a silent connection. */
export const COMMENT = encoder.encode(': still here\n\n');

export function streamFrameOf(event: Shown): Frame {
  const { seq, type } = event;
  return { seq, type, isLossy: EVENTS[type].delivery === 'lossy', bytes: encodeStreamFrame(seq, type, event) };
}

/**
 * The same of a record; undefined for one that is not an event: notes of what streams, and a journal's head. The frame
 * of an event up to `after` is never sent, so it is left empty.
 */
export function streamFrameOfRecord(record: JsonObject, after = 0): Frame | undefined {
  const { seq, type } = record;
  if (typeof seq !== 'number' || typeof type !== 'string') return undefined;
  if (!isEventType(type)) return undefined;
  return {
    seq,
    type,
    isLossy: EVENTS[type].delivery === 'lossy',
    bytes: seq > after ? encodeStreamFrame(seq, type, record) : NOTHING,
  };
}

/** Two events as one frame. The first has no id, so a reader that hears only that one asks for both again. */
export function joinedStreamFrames(first: Frame, second: Frame): Frame {
  const anonymous = decoder.decode(first.bytes).replace(/^id: .*\n/, '');
  return { ...second, bytes: Buffer.concat([encoder.encode(anonymous), second.bytes]) };
}

/** The same event, marked: deltas before it are missing. Rare enough to be made from the encoded frame. */
export function streamFramesWithGap(frame: Frame): Frame {
  const text = decoder.decode(frame.bytes);
  return { ...frame, bytes: encoder.encode(`${text.slice(0, text.lastIndexOf('}'))},"gap":true}\n\n`) };
}

/** The last frame of a reader that is too slow. It has no id, so the reader reconnects from its last event. */
export function resyncFrame(resync: Resync): Uint8Array {
  return encoder.encode(`event: resync\ndata: ${JSON.stringify(resync)}\n\n`);
}

/** The same with an id, for a reader whose last event does not exist: browsers reconnect with this id. */
export function rewindFrame(resync: Resync): Uint8Array {
  return Buffer.concat([encoder.encode(`id: ${resync.seq}\n`), resyncFrame(resync)]);
}

// JSON contains no line breaks, so it fits in one data line.
function encodeStreamFrame(seq: number, type: string, event: object): Uint8Array {
  return encoder.encode(`id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
}
