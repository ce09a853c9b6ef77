// Faults in the stream of an answer: it breaks, stalls, or sends unexpected events.

import { isRehearsalObject, type Json, type JsonObject } from '../json.ts';
import type { Step } from '../transport.ts';
import type { Frame, Wire } from '../wire/wire.ts';
import type { After, Fault, StreamFault } from './fault.ts';

const HUGE_BYTES = 17 * 1024 * 1024;
const ENDLESS_BYTES = 64 * 1024 * 1024;
const ENDLESS_PIECE_BYTES = 65_536;
const KEEP_ALIVE_MS = 1_000;
const FAR_INDEX = 99;

export function spoilStream(frames: Iterable<Frame>, fault: Fault, wire: Wire): Iterable<Step> {
  switch (fault.fault) {
    case 'error-event':
      return faultBreakingStream(frames, fault, () => [
        wire.errorFrame(faultStreamError(wire, fault)),
        { kind: 'close', how: 'end' },
      ]);
    case 'failed':
      return faultFailingStream(frames, fault);
    case 'cut':
    case 'reset':
      return faultBreakingStream(frames, fault, () => [
        { kind: 'close', how: fault.fault === 'cut' ? 'end' : 'reset' },
      ]);
    case 'silence':
      return faultBreakingStream(frames, fault, () => [{ kind: 'forever' }]);
    case 'pings-only':
    case 'comments-only':
      return faultBreakingStream(frames, fault, () => faultKeepAlive(fault, wire));
    case 'endless-line':
      return faultBreakingStream(frames, fault, () => endlessFaultStream(fault.bytes ?? ENDLESS_BYTES));
    case 'huge-event':
      return faultInsertedInStream(frames, fault.after ?? 1, () => [
        { kind: 'text', text: `data: {"type":"padding","pad":"${'x'.repeat(fault.bytes ?? HUGE_BYTES)}"}\n\n` },
      ]);
    case 'not-json':
      return faultInsertedInStream(frames, fault.after ?? 1, ({ event }) => [
        { kind: 'other', data: '{"type": oops', ...(event !== undefined && { event }) },
      ]);
    case 'unknown-events':
      return faultInsertedInStream(frames, 0, () => [mysteryFaultFrame(wire)]);
    case 'no-end':
      return faultFilteringFrames(frames, ({ kind }) => kind !== 'end');
    case 'after-end':
      return faultRepeatedAtEnd(frames);
    case 'second-start':
      return faultSecondStart(frames);
    case 'empty-output':
      return faultChangingFrames(frames, ({ kind }, value) =>
        kind === 'end' && isRehearsalObject(value['response'])
          ? { ...value, response: { ...value['response'], output: [] } }
          : value,
      );
    case 'index-gaps':
      return faultChangingFrames(frames, (_, value) =>
        typeof value['index'] === 'number' ? { ...value, index: value['index'] * 3 + 1 } : value,
      );
    case 'unknown-block':
      return faultInsertedInStream(frames, 1, (frame) => [
        ...faultChangingFrames([frame], (_, value) => ({ ...value, index: FAR_INDEX })),
      ]);
    case 'interleaved-blocks':
      return faultInterleavingFrames(frames);
    default:
      return frames;
  }
}

type Insertion = (next: Frame) => Iterable<Step>;

/** The frames up to a point, then replacements. */
function* faultBreakingStream(frames: Iterable<Frame>, { after = 1 }: StreamFault, what: Insertion): Generator<Step> {
  for (const step of markFaultInStream(frames, after)) {
    if (step.due) return yield* what(step.frame);
    yield step.frame;
  }
}

function* faultInsertedInStream(frames: Iterable<Frame>, after: After, what: Insertion): Generator<Step> {
  for (const { due, frame } of markFaultInStream(frames, after)) {
    if (due) yield* what(frame);
    yield frame;
  }
}

/**
 * `due` is true once, at the frame before which the fault happens: the next content, or the stop if there is too
 * little.
 */
function* markFaultInStream(
  frames: Iterable<Frame>,
  after: After,
): Generator<{ readonly due: boolean; readonly frame: Frame }> {
  let content = 0;
  let pending = true;
  for (const frame of frames) {
    const reached =
      after === 'nothing' ||
      (content >= after && frame.kind === 'content') ||
      frame.kind === 'stop' ||
      frame.kind === 'end';
    const due = pending && reached;
    if (due) pending = false;
    if (frame.kind === 'content') content += 1;
    yield { due, frame };
  }
}

function faultStreamError(wire: Wire, { type, message }: StreamFault): Parameters<Wire['errorFrame']>[0] {
  if (wire.api === 'anthropic')
    return { status: 200, type: type ?? 'overloaded_error', message: message ?? 'Overloaded' };
  return {
    status: 200,
    type: type ?? 'server_error',
    code: type ?? 'server_error',
    message: message ?? 'The server had an error while processing your request.',
  };
}

function* faultFailingStream(frames: Iterable<Frame>, fault: StreamFault): Generator<Step> {
  let opening: JsonObject = {};
  const watched = function* (): Generator<Frame> {
    for (const frame of frames) {
      if (frame.kind === 'start') opening = parseFaultFrame(frame);
      yield frame;
    }
  };
  yield* faultBreakingStream(watched(), fault, () => {
    const response = isRehearsalObject(opening['response']) ? opening['response'] : {};
    const error = {
      code: fault.type ?? 'server_error',
      message: fault.message ?? 'The server had an error while processing your request.',
    };
    const data = { type: 'response.failed', sequence_number: 999, response: { ...response, status: 'failed', error } };
    return [{ kind: 'end', event: data.type, data: JSON.stringify(data) }];
  });
}

function* faultKeepAlive({ fault, everyMs = KEEP_ALIVE_MS }: StreamFault, wire: Wire): Generator<Step> {
  const sign: Step =
    wire.api === 'anthropic' && fault === 'pings-only'
      ? { kind: 'other', event: 'ping', data: '{"type":"ping"}' }
      : { kind: 'comment', text: 'keep-alive' };
  for (;;) {
    yield sign;
    yield { kind: 'wait', ms: everyMs };
  }
}

function* endlessFaultStream(bytes: number): Generator<Step> {
  yield { kind: 'text', text: 'data: {"type":"' };
  const piece: Step = { kind: 'text', text: 'x'.repeat(ENDLESS_PIECE_BYTES) };
  for (let sent = 0; sent < bytes; sent += ENDLESS_PIECE_BYTES) yield piece;
  yield { kind: 'close', how: 'end' };
}

function mysteryFaultFrame(wire: Wire): Frame {
  switch (wire.api) {
    case 'anthropic':
      return {
        kind: 'other',
        event: 'mystery',
        data: '{"type":"mystery","index":0,"delta":{"type":"mystery_delta","mystery":"?"}}',
      };
    case 'openai':
      return {
        kind: 'other',
        event: 'response.mystery.delta',
        data: '{"type":"response.mystery.delta","sequence_number":998,"delta":"?"}',
      };
    case 'openai-chat':
      return { kind: 'other', event: 'mystery', data: '{"object":"mystery","mystery":"?"}' };
  }
}

function* faultFilteringFrames(frames: Iterable<Frame>, keep: (frame: Frame) => boolean): Generator<Frame> {
  for (const frame of frames) if (keep(frame)) yield frame;
}

function* faultRepeatedAtEnd(frames: Iterable<Frame>): Generator<Frame> {
  let last: Frame | undefined;
  for (const frame of frames) {
    if (frame.kind === 'content') last = frame;
    yield frame;
  }
  if (last !== undefined) yield last;
}

function* faultSecondStart(frames: Iterable<Frame>): Generator<Step> {
  let start: Frame | undefined;
  const watched = function* (): Generator<Frame> {
    for (const frame of frames) {
      if (frame.kind === 'start') start ??= frame;
      yield frame;
    }
  };
  yield* faultInsertedInStream(watched(), 1, () => (start === undefined ? [] : [start]));
}

export function* faultChangingFrames(
  frames: Iterable<Frame>,
  change: (frame: Frame, value: JsonObject) => JsonObject,
): Generator<Frame> {
  for (const frame of frames)
    yield frame.data.startsWith('{')
      ? { ...frame, data: JSON.stringify(change(frame, parseFaultFrame(frame))) }
      : frame;
}

/** All blocks are started, then their deltas come in turns, then all are stopped. */
function* faultInterleavingFrames(frames: Iterable<Frame>): Generator<Frame> {
  const blocks: Frame[][] = [];
  const tail: Frame[] = [];
  for (const frame of frames) {
    const index = parseFaultFrame(frame)['index'];
    if (typeof index === 'number') (blocks[index] ??= []).push(frame);
    else if (blocks.length === 0) yield frame;
    else tail.push(frame);
  }
  for (const block of blocks) yield* block.slice(0, 1);
  const longest = Math.max(0, ...blocks.map(({ length }) => length));
  for (let place = 1; place < longest - 1; place++)
    for (const block of blocks) if (place < block.length - 1) yield* block.slice(place, place + 1);
  for (const block of blocks) yield* block.slice(-1);
  yield* tail;
}

function parseFaultFrame(frame: Frame): JsonObject {
  const value: Json = frame.data.startsWith('{') ? JSON.parse(frame.data) : {};
  return isRehearsalObject(value) ? value : {};
}
