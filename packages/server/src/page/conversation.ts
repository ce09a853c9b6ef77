// The conversation of one agent as a fold over its events: a list of entries for the page.
//
// Entries only grow or are set, and each has a version, so a reader redraws changed entries only. Deltas are shown as
// they arrive, and the `_end` that carries the whole text repairs them. A discarded answer takes its entries with it.
// Memory is bounded: the oldest entries go, and the middle of a long text.

import { movedEventWords, type PendingCall, type Recorded, retryWords } from '@drover/protocol/events';
import { describe } from '@drover/protocol/failures';
import { isModelAnswerCutOff } from '@drover/core/model/partial-answer';
import type { AssistantMessage, Message } from '@drover/protocol/messages';
import { DeniedCalls } from '@drover/core/permission/denied-calls';

const ENTRIES_MAX = 600;
const TEXT_CHARS_MAX = 60_000;
const ARGS_CHARS_MAX = 4_000;

export type EntryKind = 'user' | 'said' | 'thinking' | 'call' | 'note' | 'heading';

/** `open`: under way; `held`: waiting for the user or the provider; `bad`: failed. */
export type EntryState = 'open' | 'held' | 'ok' | 'bad';

export type Entry = {
  readonly id: number;
  readonly kind: EntryKind;
  readonly title: string; // of a call its summary, of a heading what follows
  readonly text: string; // what was said or printed
  readonly args: string; // of a call
  readonly state: EntryState;
  readonly callId: string;
  readonly name: string; // of the tool
  readonly fromMs: number;
  readonly toMs: number | undefined;
  readonly version: number; // it changes with the entry
};

type Growing = { -readonly [Key in keyof Entry]: Entry[Key] };
type Of<Type extends Recorded['type']> = Extract<Recorded, { readonly type: Type }>;

export class Conversation {
  #entries: Growing[] = [];
  #nextId = 1;
  #leftOut = 0;
  #version = 0;
  #answer = new Map<number, Growing>(); // by part, of the answer that streams
  #calls = new Map<string, Growing>(); // by the provider's id, of the last answer
  #isHeard = false; // the answer that streams has begun
  readonly #denied = new DeniedCalls();

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** Entries that were too old to keep. */
  get leftOut(): number {
    return this.#leftOut;
  }

  get version(): number {
    return this.#version;
  }

  /** `clock` is when, in milliseconds, on whatever clock the reader shows. */
  take(event: Recorded, clock: number): void {
    this.#fold(event, clock);
    // A call that the user refused has a note from the decision.
    const denied = this.#denied.take(event);
    if (denied !== undefined) this.#note(`Not allowed: ${denied.summary}: ${denied.why}`, clock, 'bad');
  }

  #fold(event: Recorded, clock: number): void {
    switch (event.type) {
      case 'message_start':
        if (event.role === 'assistant') this.#beginAnswer();
        return;
      case 'message_end':
        return this.#endMessage(event.message, clock);
      case 'text_start':
      case 'thinking_start':
        this.#part(event.part, event.type === 'text_start' ? 'said' : 'thinking', clock);
        return;
      case 'text_delta':
      case 'thinking_delta':
        return this.#grow(
          this.#part(event.part, event.type === 'text_delta' ? 'said' : 'thinking', clock),
          event.delta,
        );
      case 'text_end':
      case 'thinking_end':
        return this.#set(this.#part(event.part, event.type === 'text_end' ? 'said' : 'thinking', clock), {
          text: clipPageText(event.text, TEXT_CHARS_MAX),
          state: 'ok',
          toMs: clock,
        });
      default:
        return this.#foldCall(event, clock);
    }
  }

  #foldCall(event: Recorded, clock: number): void {
    switch (event.type) {
      case 'toolcall_start':
        return this.#announce(event, clock);
      case 'toolcall_end':
        return this.#set(this.#answer.get(event.part), { args: showPageArguments(event.call.args) });
      case 'tool_execution_start':
        return this.#set(this.#call(event, clock), {
          title: event.summary,
          callId: event.callId,
          args: showPageArguments(event.args),
          fromMs: clock,
          // A call that a resumed run makes again is open again.
          state: 'open',
          toMs: undefined,
        });
      case 'tool_execution_delta':
        return this.#grow(this.#byCallId(event.callId), event.delta);
      case 'tool_execution_end':
        return this.#set(this.#call(event, clock), {
          title: event.summary,
          callId: event.callId,
          text: clipPageText(event.output, TEXT_CHARS_MAX),
          state: event.isError ? 'bad' : 'ok',
          toMs: clock,
        });
      case 'awaiting_tool_execution':
        for (const call of event.calls) this.#hold(call, clock);
        return;
      default:
        return this.#remark(event, clock);
    }
  }

  // Events that are told in a line of their own.
  #remark(event: Recorded, clock: number): void {
    switch (event.type) {
      case 'task_start':
        return this.#add('heading', clock, {
          title: `Attempt ${event.attempt ?? 1}${event.host === undefined ? '' : ` on ${event.host}`}`,
        });
      case 'task_end':
        if (event.reason === undefined && event.failure === undefined) return;
        return this.#note(event.reason ?? (event.failure ? describe(event.failure) : ''), clock, 'bad');
      case 'throttle_wait':
        return this.#note(`Waits ${pageSeconds(event.waitMs)}: ${event.reason}`, clock, 'held');
      case 'retry':
        return this.#note(`Failed, ${retryWords(event)}: ${event.reason}`, clock, 'held');
      case 'model_fallback':
        return this.#note(`Asks ${event.to} instead of ${event.from}: ${event.reason}`, clock, 'held');
      case 'attempt_moved':
        return this.#note(movedEventWords(event), clock, 'held');
      case 'attempt_discarded':
        this.#takeBack();
        return this.#note(`The answer was taken back: ${event.reason}`, clock, 'held');
      case 'compaction_start':
        return this.#note('Shortens its conversation', clock, 'ok');
      case 'compaction_end':
        if (event.ok) return;
        return this.#note(
          `Not shortened: ${event.failure ? describe(event.failure) : 'no reason given'}`,
          clock,
          'bad',
        );
      case 'warning':
        return this.#note(event.message, clock, 'held');
      case 'permission_decision':
        if (event.allowed) return;
        return this.#note(`Not allowed: ${event.summary}`, clock, 'bad');
      case 'incomplete':
      case 'error':
        return this.#note(event.reason, clock, 'bad');
      case 'cancelled':
        return this.#note('Cancelled', clock, 'bad');
      case 'session_end':
        if (event.outcome !== 'suspended') this.#closeAll(clock);
        return;
      default:
        return;
    }
  }

  #beginAnswer(): void {
    this.#answer.clear();
    this.#calls.clear();
    this.#isHeard = true;
  }

  #endMessage(message: Message, clock: number): void {
    if (message.role === 'user') {
      const text = message.content.map((part) => (part.type === 'text' ? part.text : '[an image]')).join('\n');
      return this.#add('user', clock, { text: clipPageText(text, TEXT_CHARS_MAX), state: 'ok', toMs: clock });
    }
    if (message.role === 'assistant') this.#endAnswer(message, clock);
  }

  /** The whole answer is there: what was missed of it is made good. */
  #endAnswer(message: AssistantMessage, clock: number): void {
    if (isModelAnswerCutOff(message) && this.#isHeard) return this.#cutOff(clock);
    if (!this.#isHeard) this.#beginAnswer();
    message.content.forEach((part, at) => {
      if (part.type === 'tool_call') {
        if (!this.#calls.has(part.id)) this.#announce({ part: at, id: part.id, name: part.name }, clock);
        return this.#set(this.#calls.get(part.id), { args: showPageArguments(part.args) });
      }
      const kind = part.type === 'text' ? 'said' : 'thinking';
      const text = clipPageText(part.text, TEXT_CHARS_MAX);
      this.#set(this.#part(at, kind, clock), { text, state: 'ok', toMs: clock });
    });
    this.#answer.clear();
    this.#isHeard = false;
  }

  /** The text that arrived stays; calls that were announced are never made. */
  #cutOff(clock: number): void {
    const said = [...this.#answer.values()].filter(({ kind }) => kind !== 'call');
    for (const entry of said) this.#set(entry, { state: 'bad', toMs: clock });
    const gone = new Set(this.#calls.values());
    this.#entries = this.#entries.filter((entry) => !gone.has(entry));
    this.#beginAnswer();
    this.#isHeard = false;
    this.#note('The answer above was cut off', clock, 'bad');
  }

  #part(part: number, kind: 'said' | 'thinking', clock: number): Growing {
    const known = this.#answer.get(part);
    if (known !== undefined) return known;
    const entry = this.#push(kind, clock, { state: 'open' });
    this.#answer.set(part, entry);
    return entry;
  }

  #announce({ part, id, name }: Pick<Of<'toolcall_start'>, 'part' | 'id' | 'name'>, clock: number): void {
    const entry = this.#push('call', clock, { title: name, name, state: 'open' });
    this.#answer.set(part, entry);
    this.#calls.set(id, entry);
  }

  #call({ callId, toolUseId, name }: Pick<PendingCall, 'callId' | 'toolUseId' | 'name'>, clock: number): Growing {
    const known = this.#byCallId(callId) ?? this.#calls.get(toolUseId);
    if (known !== undefined && (known.callId === '' || known.callId === callId)) return known;
    const entry = this.#push('call', clock, { name, callId, state: 'open' });
    this.#calls.set(toolUseId, entry);
    return entry;
  }

  #byCallId(callId: string): Growing | undefined {
    for (const entry of this.#calls.values()) if (entry.callId === callId) return entry;
    return undefined;
  }

  #hold(call: PendingCall, clock: number): void {
    const entry = this.#call(call, clock);
    this.#set(entry, { title: call.summary, callId: call.callId, args: showPageArguments(call.args), state: 'held' });
  }

  #takeBack(): void {
    const gone = new Set<Growing>(this.#answer.values());
    this.#entries = this.#entries.filter((entry) => !gone.has(entry));
    this.#answer.clear();
    this.#calls.clear();
    this.#version += 1;
  }

  #closeAll(clock: number): void {
    for (const entry of [...this.#answer.values(), ...this.#calls.values()])
      if (entry.state === 'open' || entry.state === 'held') this.#set(entry, { state: 'bad', toMs: clock });
  }

  #note(text: string, clock: number, state: EntryState): void {
    this.#add('note', clock, { text: clipPageText(text, TEXT_CHARS_MAX), state, toMs: clock });
  }

  #add(kind: EntryKind, clock: number, fields: Partial<Entry>): void {
    this.#push(kind, clock, fields);
  }

  #push(kind: EntryKind, clock: number, fields: Partial<Entry>): Growing {
    const entry: Growing = {
      id: this.#nextId++,
      kind,
      title: '',
      text: '',
      args: '',
      state: 'ok',
      callId: '',
      name: '',
      fromMs: clock,
      toMs: undefined,
      version: 0,
      ...fields,
    };
    this.#entries.push(entry);
    if (this.#entries.length > ENTRIES_MAX) {
      this.#entries.shift();
      this.#leftOut += 1;
    }
    this.#version += 1;
    return entry;
  }

  #set(entry: Growing | undefined, fields: Partial<Entry>): void {
    if (entry === undefined) return;
    Object.assign(entry, fields);
    entry.version += 1;
    this.#version += 1;
  }

  #grow(entry: Growing | undefined, delta: string): void {
    if (entry === undefined) return;
    entry.text += delta;
    // Now and then, so that a long stream does not cost its length again with every piece.
    if (entry.text.length > 2 * TEXT_CHARS_MAX) entry.text = clipPageText(entry.text, TEXT_CHARS_MAX);
    entry.version += 1;
    this.#version += 1;
  }
}

/** Keeps both ends of a long text: the first error is at the start, the result at the end. */
function clipPageText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const head = Math.floor(charsMax / 3);
  const tail = charsMax - head;
  return `${text.slice(0, head)}\n… ${text.length - charsMax} characters are left out here …\n${text.slice(-tail)}`;
}

function showPageArguments(args: PendingCall['args']): string {
  return clipPageText(JSON.stringify(args, undefined, 2), ARGS_CHARS_MAX);
}

function pageSeconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`;
}
