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

const instead = (about: string): FaultFacts => ({ level: 'instead', spoils: true, apis: ALL, about });
const spoiled = (about: string, apis: readonly Api[] = ALL): FaultFacts => ({
  level: 'stream',
  spoils: true,
  apis,
  about,
});
const odd = (about: string, apis: readonly Api[] = ALL): FaultFacts => ({
  level: 'stream',
  spoils: false,
  apis,
  about,
});
const content = (about: string, apis: readonly Api[] = ALL): FaultFacts => ({
  level: 'content',
  spoils: false,
  apis,
  about,
});
const chat = (about: string): FaultFacts => ({ level: 'chat', spoils: false, apis: CHAT, about });
const bytes = (about: string): FaultFacts => ({ level: 'bytes', spoils: false, apis: ALL, about });

export const FAULTS = {
  status: instead('an error status, with headers and a body of choice'),
  redirect: instead('a redirect to another address'),
  'ok-error': instead('status 200 with an error as JSON'),
  'no-headers': instead('the request is taken and never answered'),
  'no-first-byte': instead('headers, and then nothing'),
  drop: instead('the connection is closed without a response'),

  'whole-json': odd('a whole JSON answer though a stream was asked for'),
  'error-event': spoiled('an error inside the stream'),
  failed: spoiled('response.failed inside the stream', ['openai']),
  cut: spoiled('the stream ends, properly closed, before its terminal event'),
  reset: spoiled('the connection is reset inside the stream'),
  silence: spoiled('the stream goes silent and stays open'),
  'pings-only': spoiled('the stream sends nothing but pings from then on'),
  'comments-only': spoiled('the stream sends nothing but comments from then on'),
  'huge-event': spoiled('one event of more than 16 MB'),
  'endless-line': spoiled('a line that does not end'),
  'no-end': odd('the stream ends after the stop reason, without message_stop or [DONE]', ['anthropic', 'openai-chat']),
  'not-json': odd('an event whose data is no JSON'),
  'unknown-events': odd('events of types that nobody knows'),
  'after-end': odd('content after the terminal event'),
  'second-start': odd('a second start event'),
  'index-gaps': odd('block indexes that skip numbers', ['anthropic']),
  'interleaved-blocks': odd('blocks that are open at the same time', ['anthropic']),
  'unknown-block': odd('a delta for a block that was never started', ['anthropic']),
  'empty-output': odd('response.completed with an empty output', ['openai']),

  'args-empty': content('arguments that are an empty text'),
  'args-null': content('arguments that are null'),
  'args-object': content('arguments as an object, not as text'),
  'args-double': content('arguments encoded twice'),
  'args-garbage': content('arguments with garbage after them'),
  'args-glued': content('two argument objects glued together'),
  'args-nul': content('arguments with a NUL character in them'),
  'args-not-json': content('arguments that are no JSON'),
  'name-case': content('tool names in capitals'),
  'name-prefix': content('tool names with a prefix'),
  'name-tail': content('tool names with a channel mark behind them'),
  'name-unknown': content('tool names that nobody knows'),
  'same-ids': content('every call of the answer has the same id'),
  'reused-ids': content('call ids that were used before'),
  'odd-ids': content('call ids outside the usual alphabet, and long'),
  empty: content('an answer without content'),
  'thinking-only': content('thinking and nothing else'),
  pause: content('the stop reason pause_turn', ['anthropic']),
  refusal: content('a refusal'),
  filter: content('a stop by the content filter'),
  'context-window': content('a stop because the context window is full', ['anthropic']),
  length: content('a stop at the output limit, inside the text'),
  'length-in-args': content('a stop at the output limit, inside the arguments of a call'),

  'chat-no-index': chat('tool deltas without an index'),
  'chat-no-id': chat('tool deltas without an id'),
  'chat-id-changes': chat('tool deltas whose id changes'),
  'chat-id-repeated': chat('tool deltas that repeat id and name'),
  'chat-name-late': chat('the name comes after the first arguments'),
  'chat-nulls': chat('null for id, type and name in later tool deltas'),
  'chat-whole-call': chat('the whole call in one chunk'),
  'chat-finish-stop': chat('finish_reason "stop" though there are calls'),
  'chat-no-finish': chat('no finish_reason, only [DONE]'),
  'chat-usage-null': chat('usage is null in every chunk'),
  'chat-usage-extra': chat('usage in an extra chunk with a choice, asked for or not'),
  'chat-usage-absent': chat('no usage at all'),
  'chat-content-array': chat('content as a list of parts'),
  'chat-reasoning': chat('thinking as `reasoning`'),
  'chat-reasoning-content': chat('thinking as `reasoning_content`'),
  'chat-think-tags': chat('thinking inside the text, in <think> tags'),
  'chat-no-role': chat('no role in any chunk'),
  'chat-extra-choices': chat('a second choice nobody asked for'),
  'chat-null-delta': chat('chunks whose delta is null'),

  'one-byte': bytes('one byte per write'),
  splits: bytes('splits at random places, also inside characters'),
  crlf: bytes('lines that end in CR LF'),
  cr: bytes('lines that end in CR'),
  bom: bytes('a byte order mark in front'),
  'data-lines': bytes('several data: lines an event'),
  comments: bytes('comments between the events'),
  'no-blank-line': bytes('no blank line at the end'),
  gzip: bytes('a compressed body'),
} as const satisfies Record<string, FaultFacts>;

export type FaultName = keyof typeof FAULTS;

export function factsOf(name: FaultName): FaultFacts {
  return FAULTS[name];
}

export function toFault(spec: FaultSpec): Fault {
  return typeof spec === 'string' ? ({ fault: spec } as Fault) : spec;
}
