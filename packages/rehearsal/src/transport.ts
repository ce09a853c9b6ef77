// Writes a stream to the socket: steps in, bytes out, in every form that a client must accept.

import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { constants, createGzip } from 'node:zlib';
import type { FaultName } from './faults/fault.ts';
import type { Json } from './json.ts';
import { randomForFaults } from './faults/random.ts';
import type { Frame } from './wire/wire.ts';

/** Frames are collected up to this size before they are written. */
const BATCH_CHARS = 65_536;
const SPLIT_BYTES_MAX = 7;
const RESET_DELAY_MS = 20;

export type Step =
  | Frame
  | { readonly kind: 'wait'; readonly ms: number }
  /** Waits until this time after the start of the stream. */
  | { readonly kind: 'until'; readonly ms: number }
  | { readonly kind: 'forever' }
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'close'; readonly how: 'end' | 'reset' };

export type Manner = ReadonlySet<FaultName>;

/** Resolves when everything is written and flushed, or the client has disconnected. */
export async function writeRehearsedSteps(
  { response, manner }: { readonly response: ServerResponse; readonly manner: Manner },
  steps: Iterable<Step>,
  signal: AbortSignal,
): Promise<void> {
  const encode = rehearsalEncoder(manner);
  const sink = manner.has('gzip') ? zippedRehearsalSink(response) : plainRehearsalSink(response);
  const write = rehearsalWriter(sink, manner, signal);
  const started = performance.now();
  let batch: string[] = [];
  let chars = 0;
  const flush = async (): Promise<void> => {
    if (chars > 0) await write(batch.join(''));
    batch = [];
    chars = 0;
  };

  for (const step of steps) {
    if (signal.aborted) return;
    switch (step.kind) {
      case 'wait':
        await flush();
        await pauseRehearsal(step.ms, signal);
        break;
      case 'until': {
        const rest = step.ms - (performance.now() - started);
        // Timers are no more exact than this; shorter waits add up until they are long enough.
        if (rest < 2) break;
        await flush();
        await pauseRehearsal(rest, signal);
        break;
      }
      case 'forever':
        await flush();
        return await pauseRehearsal(Infinity, signal);
      case 'close':
        await flush();
        if (step.how === 'end') return await sink.end();
        // The earlier bytes must be sent first, or the client sees a reset and no content.
        await pauseRehearsal(RESET_DELAY_MS, signal);
        response.socket?.resetAndDestroy();
        return;
      default: {
        const text = encode(step);
        batch.push(text);
        chars += text.length;
        if (chars >= BATCH_CHARS) await flush();
      }
    }
  }
  const last = batch.pop() ?? '';
  batch.push(manner.has('no-blank-line') ? last.replace(/[\r\n]+$/, '') : last);
  await flush();
  await sink.end();
}

// ── text ──────────────────────────────────────────────────────────────────────────────────────

type Written = Exclude<Step, { kind: 'wait' | 'until' | 'forever' | 'close' }>;

function rehearsalEncoder(manner: Manner): (step: Written) => string {
  if (!TEXT_MANNERS.some((name) => manner.has(name))) return (step) => rehearsalPlainText(step);
  const newline = manner.has('crlf') ? '\r\n' : manner.has('cr') ? '\r' : '\n';
  let first = manner.has('bom');
  return (step) => {
    const mark = first ? '\uFEFF' : '';
    first = false;
    const comment = manner.has('comments') ? ': still here\n\n' : '';
    const text =
      step.kind !== 'text' && step.kind !== 'comment' && manner.has('data-lines')
        ? rehearsalManyLines(step)
        : rehearsalPlainText(step);
    return mark + `${comment}${text}`.replaceAll('\n', newline);
  };
}

const TEXT_MANNERS: readonly FaultName[] = ['crlf', 'cr', 'bom', 'data-lines', 'comments'];

function rehearsalPlainText(step: Written): string {
  if (step.kind === 'text') return step.text;
  if (step.kind === 'comment') return `: ${step.text}\n\n`;
  return step.event === undefined ? `data: ${step.data}\n\n` : `event: ${step.event}\ndata: ${step.data}\n\n`;
}

/** JSON may be split over several data lines, which a reader must join again. */
function rehearsalManyLines(frame: Frame): string {
  if (!frame.data.startsWith('{')) return rehearsalPlainText(frame);
  const value: Json = JSON.parse(frame.data);
  const lines = JSON.stringify(value, undefined, 1).split('\n');
  return `${frame.event === undefined ? '' : `event: ${frame.event}\n`}${lines.map((line) => `data: ${line}\n`).join('')}\n`;
}

// ── bytes ─────────────────────────────────────────────────────────────────────────────────────

type Sink = { readonly write: (bytes: string | Uint8Array) => Promise<void>; readonly end: () => Promise<void> };

function rehearsalWriter(sink: Sink, manner: Manner, signal: AbortSignal): (text: string) => Promise<void> {
  const size = manner.has('one-byte') ? () => 1 : manner.has('splits') ? rehearsalSplitSizes() : undefined;
  if (size === undefined) return (text) => sink.write(text);
  return async (text) => {
    const bytes = Buffer.from(text);
    for (let from = 0; from < bytes.length && !signal.aborted;) {
      const to = from + size();
      await sink.write(bytes.subarray(from, to));
      // Without a turn of the event loop the system would send the pieces together.
      await setImmediate();
      from = to;
    }
  };
}

function rehearsalSplitSizes(): () => number {
  const random = randomForFaults(1);
  return () => 1 + Math.floor(random() * SPLIT_BYTES_MAX);
}

function plainRehearsalSink(response: ServerResponse): Sink {
  return {
    write: (bytes) => (response.write(bytes) ? Promise.resolve() : rehearsalSinkDrained(response)),
    end: () => new Promise((resolve) => void response.end(resolve)),
  };
}

function zippedRehearsalSink(response: ServerResponse): Sink {
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
  gzip.pipe(response);
  return {
    write: (bytes) => new Promise((resolve) => void gzip.write(bytes, () => resolve())),
    end: () =>
      new Promise((resolve) => {
        response.once('finish', resolve).once('close', resolve);
        gzip.end();
      }),
  };
}

/** A client that disconnected never drains. */
function rehearsalSinkDrained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve();
    const done = (): void => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}

/** Resolves after this time, or at once when the client disconnects. */
export function pauseRehearsal(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = ms === Infinity ? undefined : setTimeout(resolve, ms);
    const stop = (): void => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener('abort', stop, { once: true });
  });
}
