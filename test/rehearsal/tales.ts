// The result of a faulty answer as a client sees it, in one line.

import { FAULTS, factsOfFault, type Fault, type FaultLevel, type FaultName } from '@drover/rehearsal/faults/fault';
import { showRehearsalValue, type Json, type JsonObject } from '@drover/rehearsal/json';
import type { Answer } from '@drover/rehearsal/script';
import type { Api } from '@drover/rehearsal/wire/wire';
import { at, dataIn, requestFor, send, stage, textAt } from './clients.ts';

export const ANSWER: Answer = { thinking: 'Hm', text: 'Sheep 🐑', calls: [{ name: 'read', args: { path: 'a' } }] };
const NAMES = Object.keys(FAULTS) as FaultName[];
const SETTINGS: Partial<Record<FaultName, JsonObject>> = {
  status: { status: 529, headers: { 'retry-after': '7' } },
  redirect: { location: 'http://127.0.0.1:9/elsewhere' },
  'pings-only': { everyMs: 5 },
  'comments-only': { everyMs: 5 },
  'huge-event': { bytes: 100_000 },
  'endless-line': { bytes: 200_000 },
};

export const faultOf = (name: FaultName): Fault => ({ fault: name, ...SETTINGS[name] }) as Fault;
export const named = (level: FaultLevel): readonly FaultName[] =>
  NAMES.filter((name) => factsOfFault(name).level === level);

const STALLS: readonly (FaultName | undefined)[] = [
  'no-headers',
  'no-first-byte',
  'silence',
  'pings-only',
  'comments-only',
];

export type Got = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  readonly ending: string;
};

/** The text that arrives within a moment, and whether the response ended, broke or is still open. */
export async function got(api: Api, fault: Fault | undefined, more: JsonObject = { stream: true }): Promise<Got> {
  const { server } = await stage({ answers: [ANSWER], ...(fault && { faults: [{ ...fault, at: 1 }] }) });
  const gone = new AbortController();
  const patience = setTimeout(() => gone.abort(), STALLS.includes(fault?.fault) ? 1_500 : 15_000);
  const pieces: Buffer[] = [];
  let opened: Response | undefined;
  let ending = 'ended';
  try {
    opened = await send(server, api, { body: requestFor(api, more), signal: gone.signal });
    for await (const piece of opened.body ?? []) pieces.push(Buffer.from(piece));
  } catch {
    ending = gone.signal.aborted ? 'open' : 'broken';
  }
  clearTimeout(patience);
  return {
    status: opened?.status ?? 0,
    headers: opened?.headers ?? new Headers(),
    body: Buffer.concat(pieces).toString(),
    ending,
  };
}

const TOLD = [
  'index',
  'content_block.type',
  'content_block.name',
  'content_block.id',
  'content_block.input',
  'item.type',
  'error.message',
  'response.error.message',
  'choices.0.finish_reason',
  'usage.total_tokens',
];
const UNTOLD = new Set(['type', 'stop_sequence', 'stop_details', 'container', 'refusal', 'signature']);

/** One event in a few words. */
function told(event: Json): string {
  if (typeof event === 'string') return event.slice(0, 20);
  const type = textAt(event, 'type').replace(/^content_block_|^response\./, '');
  const delta = at(event, 'delta') ?? at(event, 'choices.0.delta') ?? null;
  const pieces =
    typeof delta === 'object'
      ? Object.entries((delta ?? {}) as JsonObject).map(([key, value]) => (UNTOLD.has(key) ? '' : (value ?? '')))
      : [delta];
  const facts = [type, ...TOLD.map((path) => textAt(event, path)), ...pieces.map((piece) => showRehearsalValue(piece))];
  return facts
    .filter((fact) => fact !== '' && fact !== '{}')
    .join(' ')
    .replaceAll(/(call|toolu)_\w{24}/g, 'ID');
}

const firstApi = (name: FaultName): Api => factsOfFault(name).apis[0] ?? 'anthropic';

/** A client's view of an answer with this fault, and its end, in one line. */
export async function tale(name: FaultName, api = firstApi(name)): Promise<string> {
  const { status, body, ending } = await got(api, faultOf(name));
  const events = body.startsWith('{') ? [body.slice(0, 100)] : dataIn(body).map(told);
  const runs = events.filter((event, index) => event !== events[index - 1]);
  return `${name}: ${status} ${runs.join(' | ')} → ${ending}`;
}

export async function tales(level: FaultLevel): Promise<string> {
  return (await Promise.all(named(level).map((name) => tale(name)))).join('\n');
}
