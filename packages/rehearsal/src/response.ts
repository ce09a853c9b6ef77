// Sends a response: as one JSON, as a stream, as an error, or as one of the faults that replace a response.

import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import type { Exchange } from './exchange.ts';
import { chatDialectFault } from './faults/chat.ts';
import { spoilContent } from './faults/content.ts';
import { factsOfFault, type Fault, type FaultLevel } from './faults/fault.ts';
import { refusalByStatusFault } from './faults/instead.ts';
import { spoilStream } from './faults/stream.ts';
import type { JsonObject } from './json.ts';
import type { RawResponse } from './script.ts';
import { pauseRehearsal, writeRehearsedSteps, type Step } from './transport.ts';
import type { Frame, Refusal, Reply, RequestView, Wire } from './wire/wire.ts';

export type Sending = {
  readonly exchange: Exchange;
  readonly response: ServerResponse;
  readonly wire: Wire;
  readonly view: RequestView;
  readonly requestId: string;
  /** The current rate limits. */
  readonly headers: () => Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
};

export type Answered = Sending & {
  readonly body: JsonObject;
  readonly faults: readonly Fault[];
  readonly tokensPerSecond: number | undefined;
};

/** Returns the reply as sent, with the faults in its content. */
export async function sendRehearsedReply(clean: Reply, answered: Answered): Promise<Reply> {
  const { wire, view, body, response, signal, faults, tokensPerSecond } = answered;
  const reply = rehearsedFaultsAt('content', faults).reduce(
    (spoiled, { fault }) => spoilContent(spoiled, fault),
    clean,
  );
  if (!view.stream || faults.some(({ fault }) => fault === 'whole-json')) {
    if (tokensPerSecond !== undefined) await pauseRehearsal((reply.usage.output * 1_000) / tokensPerSecond, signal);
    sendRehearsedWhole(JSON.stringify(wire.whole(reply, body)), answered);
    return reply;
  }
  const manner = new Set(rehearsedFaultsAt('bytes', faults).map(({ fault }) => fault));
  openRehearsedResponse(answered, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    ...(manner.has('gzip') && { 'content-encoding': 'gzip' }),
  });
  response.flushHeaders();
  const spoken = rehearsedFaultsAt('chat', faults).reduce(
    (frames: Iterable<Frame>, { fault }) => chatDialectFault(frames, fault, reply),
    wire.frames(reply, body),
  );
  // A stream breaks once: of several faults the first counts.
  const [first] = rehearsedFaultsAt('stream', faults);
  const spoiled: Iterable<Step> = first === undefined ? spoken : spoilStream(spoken, first, wire);
  const steps = tokensPerSecond === undefined ? spoiled : paceRehearsedReply(spoiled, tokensPerSecond);
  await writeRehearsedSteps({ response, manner }, steps, signal);
  return reply;
}

function rehearsedFaultsAt(level: FaultLevel, faults: readonly Fault[]): readonly Fault[] {
  return faults.filter(({ fault }) => factsOfFault(fault).level === level);
}

/** Each piece of content is one token here: see answerWith. */
function* paceRehearsedReply(steps: Iterable<Step>, tokensPerSecond: number): Generator<Step> {
  let tokens = 0;
  for (const step of steps) {
    if (step.kind === 'content') {
      tokens += 1;
      yield { kind: 'until', ms: (tokens * 1_000) / tokensPerSecond };
    }
    yield step;
  }
}

/** A whole answer can break too: half of it is sent, and then nothing or the end. */
function sendRehearsedWhole(json: string, answered: Answered): void {
  const { response, faults } = answered;
  const broken = faults.find(({ fault }) => BREAKS.has(fault));
  const stuck = faults.find(({ fault }) => STALLS.has(fault));
  const zipped = faults.some(({ fault }) => fault === 'gzip');
  const bytes = zipped ? gzipSync(json) : Buffer.from(json);
  openRehearsedResponse(answered, {
    'content-type': 'application/json',
    'content-length': String(bytes.length),
    ...(zipped && { 'content-encoding': 'gzip' }),
  });
  if (broken === undefined && stuck === undefined) return void response.end(bytes);
  response.write(bytes.subarray(0, bytes.length / 2), () => {
    if (broken !== undefined) response.socket?.resetAndDestroy();
  });
}

const BREAKS: ReadonlySet<string> = new Set(['cut', 'reset', 'error-event', 'failed']);
const STALLS: ReadonlySet<string> = new Set(['silence', 'pings-only', 'comments-only']);

export function sendRehearsedRaw(
  exchange: Exchange,
  response: ServerResponse,
  { status = 200, contentType = 'text/plain', headers = {}, body }: RawResponse,
): void {
  exchange.status = status;
  response.writeHead(status, { 'content-type': contentType, ...headers });
  response.end(body);
}

export function sendRehearsedRefusal(refusal: Refusal, sending: Sending): void {
  const { exchange, response, wire, requestId } = sending;
  exchange.refusal = refusal.message;
  exchange.status = refusal.status;
  const [contentType, body] = rehearsedErrorBody(refusal, wire, requestId);
  response.writeHead(refusal.status, {
    [wire.requestIdHeader]: requestId,
    ...sending.headers(),
    ...(contentType !== '' && { 'content-type': contentType }),
    ...refusal.headers,
  });
  response.end(body);
}

function rehearsedErrorBody(
  refusal: Refusal,
  wire: Wire,
  requestId: string,
): readonly [contentType: string, body: string] {
  switch (refusal.body ?? 'json') {
    case 'json':
      return ['application/json', JSON.stringify(wire.errorBody(refusal, requestId))];
    case 'html':
      return [
        'text/html',
        `<html>\r\n<head><title>${refusal.status} ${refusal.message}</title></head>\r\n<body>\r\n<center><h1>${refusal.status} ${refusal.message}</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n`,
      ];
    case 'plain':
      return ['text/plain', refusal.message];
    case 'empty':
      return ['', ''];
  }
}

/** A fault in place of an answer. */
export function sendRehearsedFault(fault: Fault, sending: Sending): void {
  const { exchange, response, wire } = sending;
  switch (fault.fault) {
    case 'status':
      return sendRehearsedRefusal(refusalByStatusFault(wire.api, fault), sending);
    case 'redirect':
      return sendRehearsedRaw(exchange, response, {
        status: fault.status ?? 307,
        headers: { location: fault.location },
        body: '',
      });
    case 'ok-error': {
      const refusal = refusalByStatusFault(wire.api, { fault: 'status', status: wire.api === 'anthropic' ? 529 : 503 });
      return sendRehearsedRefusal({ ...refusal, status: 200 }, sending);
    }
    case 'no-first-byte':
      openRehearsedResponse(sending, { 'content-type': 'text/event-stream; charset=utf-8' });
      return response.flushHeaders();
    case 'drop':
      response.socket?.destroy();
      return;
    default:
      // The remaining fault is 'no-headers': the response stays open and empty until the client gives up.
      return;
  }
}

function openRehearsedResponse(
  { exchange, response, wire, requestId, headers }: Sending,
  more: Readonly<Record<string, string>>,
): void {
  exchange.status = 200;
  response.writeHead(200, { [wire.requestIdHeader]: requestId, ...headers(), ...more });
}
