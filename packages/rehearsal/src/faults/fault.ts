// All faults as data: a test can iterate over FAULTS and try each.

import type { Api } from '../wire/wire.ts';

/** Pieces of content sent before the fault; `nothing` puts it before the start event. */
export type After = number | 'nothing';

export type StatusFault = {
  readonly fault: 'status';
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: 'json' | 'html' | 'plain' | 'empty';
  readonly type?: string;
  readonly message?: string;
  readonly code?: string;
};

export type StreamFaultName =
  | 'error-event'
  | 'failed'
  | 'cut'
  | 'reset'
  | 'silence'
  | 'pings-only'
  | 'comments-only'
  | 'not-json'
  | 'huge-event'
  | 'endless-line';

export type StreamFault = {
  readonly fault: StreamFaultName;
  readonly after?: After;
  readonly type?: string;
  readonly message?: string;
  readonly bytes?: number;
  readonly everyMs?: number;
};

export type PlainFaultName = Exclude<FaultName, 'status' | 'redirect' | StreamFaultName>;

export type Fault =
  | StatusFault
  | { readonly fault: 'redirect'; readonly location: string; readonly status?: number }
  | StreamFault
  | { readonly fault: PlainFaultName };

/** A fault that needs no settings may be given by its name. */
export type FaultSpec = Fault | Exclude<FaultName, 'status' | 'redirect'>;

/**
 * When a fault happens: at these requests, at every nth, or by chance. With `agent`, only that agent's requests are
 * counted.
 */
export type FaultRule = Fault & {
  readonly at?: number | readonly number[];
  readonly every?: number;
  readonly rate?: number;
  readonly agent?: string;
};

/**
 * `instead` of an answer, in the `stream` of one, in its `content`, in a Chat dialect, or in how its `bytes` are
 * written.
 */
export type FaultLevel = 'instead' | 'stream' | 'content' | 'chat' | 'bytes';

export type FaultFacts = {
  readonly level: FaultLevel;
  /** True if the answer is unusable, so that a script gives the same one to the next request. */
  readonly spoils: boolean;
  /** APIs to which the fault applies; others ignore it. */
  readonly apis: readonly Api[];
  readonly about: string;
};

const ALL: readonly Api[] = ['anthropic', 'openai', 'openai-chat'];
const CHAT: readonly Api[] = ['openai-chat'];

const faultInstead = (about: string): FaultFacts => ({ level: 'instead', spoils: true, apis: ALL, about });
const spoilingFault = (about: string, apis: readonly Api[] = ALL): FaultFacts => ({
  level: 'stream',
  spoils: true,
  apis,
  about,
});
const oddFault = (about: string, apis: readonly Api[] = ALL): FaultFacts => ({
  level: 'stream',
  spoils: false,
  apis,
  about,
});
const contentFault = (about: string, apis: readonly Api[] = ALL): FaultFacts => ({
  level: 'content',
  spoils: false,
  apis,
  about,
});
const chatFault = (about: string): FaultFacts => ({ level: 'chat', spoils: false, apis: CHAT, about });
const bytesFault = (about: string): FaultFacts => ({ level: 'bytes', spoils: false, apis: ALL, about });

export const FAULTS = {
  status: faultInstead('an error status, with headers and a body of choice'),
  redirect: faultInstead('a redirect to another address'),
  'ok-error': faultInstead('status 200 with an error as JSON'),
  'no-headers': faultInstead('the request is taken and never answered'),
  'no-first-byte': faultInstead('headers, and then nothing'),
  drop: faultInstead('the connection is closed without a response'),

  'whole-json': oddFault('a whole JSON answer though a stream was asked for'),
  'error-event': spoilingFault('an error inside the stream'),
  failed: spoilingFault('response.failed inside the stream', ['openai']),
  cut: spoilingFault('the stream ends, properly closed, before its terminal event'),
  reset: spoilingFault('the connection is reset inside the stream'),
  silence: spoilingFault('the stream goes silent and stays open'),
  'pings-only': spoilingFault('the stream sends nothing but pings from then on'),
  'comments-only': spoilingFault('the stream sends nothing but comments from then on'),
  'huge-event': spoilingFault('one event of more than 16 MB'),
  'endless-line': spoilingFault('a line that does not end'),
  'no-end': oddFault('the stream ends after the stop reason, without message_stop or [DONE]', [
    'anthropic',
    'openai-chat',
  ]),
  'not-json': oddFault('an event whose data is no JSON'),
  'unknown-events': oddFault('events of types that nobody knows'),
  'after-end': oddFault('content after the terminal event'),
  'second-start': oddFault('a second start event'),
  'index-gaps': oddFault('block indexes that skip numbers', ['anthropic']),
  'interleaved-blocks': oddFault('blocks that are open at the same time', ['anthropic']),
  'unknown-block': oddFault('a delta for a block that was never started', ['anthropic']),
  'empty-output': oddFault('response.completed with an empty output', ['openai']),

  'args-empty': contentFault('arguments that are an empty text'),
  'args-null': contentFault('arguments that are null'),
  'args-object': contentFault('arguments as an object, not as text'),
  'args-double': contentFault('arguments encoded twice'),
  'args-garbage': contentFault('arguments with garbage after them'),
  'args-glued': contentFault('two argument objects glued together'),
  'args-nul': contentFault('arguments with a NUL character in them'),
  'args-not-json': contentFault('arguments that are no JSON'),
  'name-case': contentFault('tool names in capitals'),
  'name-prefix': contentFault('tool names with a prefix'),
  'name-tail': contentFault('tool names with a channel mark behind them'),
  'name-unknown': contentFault('tool names that nobody knows'),
  'same-ids': contentFault('every call of the answer has the same id'),
  'reused-ids': contentFault('call ids that were used before'),
  'odd-ids': contentFault('call ids outside the usual alphabet, and long'),
  empty: contentFault('an answer without content'),
  'thinking-only': contentFault('thinking and nothing else'),
  pause: contentFault('the stop reason pause_turn', ['anthropic']),
  refusal: contentFault('a refusal'),
  filter: contentFault('a stop by the content filter'),
  'context-window': contentFault('a stop because the context window is full', ['anthropic']),
  length: contentFault('a stop at the output limit, inside the text'),
  'length-in-args': contentFault('a stop at the output limit, inside the arguments of a call'),

  'chat-no-index': chatFault('tool deltas without an index'),
  'chat-no-id': chatFault('tool deltas without an id'),
  'chat-id-changes': chatFault('tool deltas whose id changes'),
  'chat-id-repeated': chatFault('tool deltas that repeat id and name'),
  'chat-name-late': chatFault('the name comes after the first arguments'),
  'chat-nulls': chatFault('null for id, type and name in later tool deltas'),
  'chat-whole-call': chatFault('the whole call in one chunk'),
  'chat-finish-stop': chatFault('finish_reason "stop" though there are calls'),
  'chat-no-finish': chatFault('no finish_reason, only [DONE]'),
  'chat-usage-null': chatFault('usage is null in every chunk'),
  'chat-usage-extra': chatFault('usage in an extra chunk with a choice, asked for or not'),
  'chat-usage-absent': chatFault('no usage at all'),
  'chat-content-array': chatFault('content as a list of parts'),
  'chat-reasoning': chatFault('thinking as `reasoning`'),
  'chat-reasoning-content': chatFault('thinking as `reasoning_content`'),
  'chat-think-tags': chatFault('thinking inside the text, in <think> tags'),
  'chat-no-role': chatFault('no role in any chunk'),
  'chat-extra-choices': chatFault('a second choice nobody asked for'),
  'chat-null-delta': chatFault('chunks whose delta is null'),

  'one-byte': bytesFault('one byte per write'),
  splits: bytesFault('splits at random places, also inside characters'),
  crlf: bytesFault('lines that end in CR LF'),
  cr: bytesFault('lines that end in CR'),
  bom: bytesFault('a byte order mark in front'),
  'data-lines': bytesFault('several data: lines an event'),
  comments: bytesFault('comments between the events'),
  'no-blank-line': bytesFault('no blank line at the end'),
  gzip: bytesFault('a compressed body'),
} as const satisfies Record<string, FaultFacts>;

export type FaultName = keyof typeof FAULTS;

export function factsOfFault(name: FaultName): FaultFacts {
  return FAULTS[name];
}

export function toFault(spec: FaultSpec): Fault {
  return typeof spec === 'string' ? ({ fault: spec } as Fault) : spec;
}
