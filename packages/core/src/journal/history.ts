// Session history: folds a journal into the state that a session needs to resume.
//
// Guarantees
//   1. The same records always give the same history.
//   2. Discarded answers, answers that a crash cut off, and `partial` notes are not in it.
//   3. An interrupted answer is in it, with a stop reason that says so.

import { callLabelIn, openCalls, resultOfCall, type OpenCalls } from '../agent/calls/calls.ts';
import { callsRefusedIn, type RefusedCalls } from '../agent/calls/refused-calls.ts';
import { NO_USAGE } from '../model/spending/usage.ts';
import { applyConversationCut } from '../conversation/compaction.ts';
import type { TokenFigures } from '../conversation/conversation.ts';
import type { Recorded, RemoteTool } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import { isModelAnswerCutOff } from '../model/partial-answer.ts';
import type { Message, Usage } from '@drover/protocol/messages';
import type { Sampling } from '@drover/protocol/model';
import { SEQ_JUMP } from './cut-off.ts';
import { Dollars } from './dollars.ts';

// After these records no delta is emitted until another record is in the journal.
const QUIET: ReadonlySet<unknown> = new Set(['session_start', 'session_end']);

/** True if no delta can follow a record of this type while it is the last one. */
export function isQuietRecord(type: unknown): boolean {
  return QUIET.has(type);
}

export type Past = {
  readonly messages: readonly Message[];
  readonly lastSeq: number;
  readonly turn: number;
  readonly steps: number; // in the last turn
  readonly answers: number; // in the last turn
  /** How the last turn ended; undefined while the turn is open. */
  readonly ending: 'done' | 'incomplete' | 'error' | 'cancelled' | undefined;
  readonly open: OpenCalls | undefined;
  /** The last denied calls of that turn; undefined if a later call ran. */
  readonly refused: RefusedCalls | undefined;
  readonly usage: Usage;
  readonly cost: number | undefined; // US dollars; each request at the price of its model
  /** Token figures of the model's last prompt; undefined if its provider has reported none. */
  readonly tokens: Omit<TokenFigures, 'expected'> | undefined;
  readonly model: string;
  /** The model that the last request went to, if the first one was unavailable. */
  readonly fallback: string | undefined;
  readonly cwd: string;
  readonly remoteTools: readonly RemoteTool[];
  readonly remoteTimeoutMs: number | undefined;
  readonly options: Sampling | undefined;
  /** Ids of all calls ever handed out. A result for one that is no longer open is a duplicate. */
  readonly handedOut: readonly string[];
};

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** `before`: the messages that a worker was seeded with. They are not in its own records. */
export function foldSessionHistory(records: readonly JsonObject[], before: readonly Message[] = []): Past | undefined {
  const fold = new PastFold(before);
  // The cast is sound: drover wrote these records, and their checksums match.
  const recorded = records as unknown as readonly Recorded[];
  for (const record of recorded) fold.take(record);
  const { past } = fold;
  return past && { ...past, refused: callsRefusedIn(recorded) };
}

/** Folds one record at a time. Leaves out `refused`. */
export class PastFold {
  readonly #messages: Message[];
  readonly #dollars = new Dollars();
  readonly #past: Writable<Past> = {
    messages: [],
    lastSeq: 0,
    turn: 0,
    steps: 0,
    answers: 0,
    ending: undefined,
    open: undefined,
    refused: undefined,
    usage: NO_USAGE,
    cost: undefined,
    tokens: undefined,
    model: '',
    fallback: undefined,
    cwd: '',
    remoteTools: [],
    remoteTimeoutMs: undefined,
    options: undefined,
    handedOut: [],
  };
  #lastType: string | undefined;

  constructor(before: readonly Message[] = []) {
    this.#messages = [...before];
  }

  take(record: Recorded): void {
    const past = this.#past;
    past.lastSeq = Math.max(past.lastSeq, record.seq ?? 0);
    past.steps = record.step ?? past.steps;
    this.#lastType = record.type;
    foldRecordIntoHistory(past, this.#messages, record);
    foldDollarsIntoHistory(this.#dollars, record);
  }

  /** The history so far; undefined if the session has not started. */
  get past(): Past | undefined {
    const past = this.#past;
    if (past.model === '') return undefined;
    const lastSeq = past.lastSeq + (isQuietRecord(this.#lastType) ? 0 : SEQ_JUMP);
    return { ...past, lastSeq, cost: this.#dollars.cost, messages: this.#messages };
  }
}

function foldRecordIntoHistory(past: Writable<Past>, messages: Message[], record: Recorded): void {
  switch (record.type) {
    case 'session_start':
      if (past.model !== record.model) {
        past.tokens = undefined;
        past.fallback = undefined;
      }
      past.model = record.model;
      past.cwd = record.cwd;
      past.remoteTools = record.remoteTools ?? past.remoteTools;
      past.remoteTimeoutMs = record.remoteTimeoutMs ?? past.remoteTimeoutMs;
      past.options = record.options ?? past.options;
      return;
    case 'model_fallback':
      past.fallback = record.to;
      past.tokens = undefined; // another model counts differently
      return;
    case 'message_end':
      if (record.kept === false) return;
      messages.push(record.message);
      return foldMessageIntoHistory(past, record.message, record.turn ?? 0);
    case 'permission_request':
      past.open?.asked.set(record.callIndex, { requestId: record.requestId, label: callLabelIn(record) });
      return;
    case 'permission_decision':
      past.open?.asked.delete(record.callIndex);
      return;
    case 'tool_execution_start':
      past.open?.begun.set(record.callIndex, callLabelIn(record));
      return;
    case 'tool_execution_end': {
      if (past.open === undefined) return;
      past.open.begun.delete(record.callIndex);
      past.open.results[record.callIndex] = resultOfCall({ id: record.toolUseId, name: record.name }, record);
      const pending = past.open.pending.filter(({ callId }) => callId !== record.callId);
      past.open = { ...past.open, pending };
      return;
    }
    case 'awaiting_tool_execution':
      past.handedOut = [...past.handedOut, ...record.calls.map(({ callId }) => callId)];
      if (past.open !== undefined) past.open = { ...past.open, pending: record.calls };
      return;
    case 'compaction_end':
      if (record.ok) messages.splice(0, messages.length, ...applyConversationCut(messages, record, record.summary));
      return;
    case 'usage':
      past.usage = record.total;
      past.tokens = tokensInRecord(record, past.tokens);
      return;
    case 'done':
    case 'incomplete':
    case 'error':
    case 'cancelled':
      past.ending = record.type;
  }
}

function foldDollarsIntoHistory(dollars: Dollars, record: Recorded): void {
  if (record.type === 'session_start') dollars.use(record.model);
  if (record.type === 'usage') dollars.take(record);
}

/** Reads the token figures. Journals of older versions hold only the ratio. */
function tokensInRecord(record: Extract<Recorded, { readonly type: 'usage' }>, before: Past['tokens']): Past['tokens'] {
  const { usage, estimate = before?.estimate, window = before?.window, estimateRatio: ratio } = record;
  if (ratio === undefined) return before;
  const isCounted = record.estimate !== undefined && usage.estimated !== true;
  const reported = isCounted ? usage.input + usage.cacheRead + usage.cacheWrite : before?.reported;
  return { estimate: estimate ?? 0, ...(reported !== undefined && { reported }), ratio, window: window ?? 0 };
}

function foldMessageIntoHistory(past: Writable<Past>, message: Message, turn: number): void {
  switch (message.role) {
    case 'user':
      if (turn > 0 && turn === past.turn) return; // steering: the turn continues
      past.turn = turn;
      past.steps = 0;
      past.answers = 0;
      past.ending = undefined;
      past.open = undefined;
      return;
    case 'assistant': {
      if (!isModelAnswerCutOff(message)) past.answers += 1;
      const calls = message.content.filter((part) => part.type === 'tool_call');
      past.open = calls.length === 0 ? undefined : openCalls(calls);
      return;
    }
    case 'tool':
      past.open = undefined;
  }
}
