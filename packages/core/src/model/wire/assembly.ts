// Assembly: builds an answer from the pieces in which it arrives.
//
// Every wire format streams blocks: text, thinking, calls, and payloads that only its provider understands.
// A dialect (one per provider file) interprets the events. The assembly stores the blocks by key and makes the
// model events and the final message. `assembleWireAnswer` connects the two.
//
// Guarantees
//   1. Part numbers in the events are those of the finished message. Parts are in the order in which their blocks
//      were opened, and an empty text is not a part. A block therefore gets its number when it has content and every
//      earlier block has a number or ended empty. Its deltas are held back until then.
//   2. Opening a key again makes a new block.
//   3. An answer is complete once its stop reason is known. If the stream ends earlier, the answer fails.
//      After that, a lost connection does not matter.
//   4. Deltas of one block that arrive together are one delta.
//   5. An answer has at most 1,000 blocks and 64 MB. A larger one fails as garbled, and reading stops.

import { DroverError } from '../../errors.ts';
import type { Json, JsonObject } from '@drover/protocol/json';
import { oneByOne } from '../../one-by-one.ts';
import type { NativeItem, Stop } from '@drover/protocol/messages';
import type { ModelEvent } from '@drover/protocol/model';
import { Block, toAssembledCall, toAssembledPart } from './block.ts';
import { parseLooseObject } from './loose.ts';
import type { Account } from './http/rejection.ts';
import type { Frames } from './http/sse.ts';
import { UsageCount } from './usage.ts';

/** The origin of an answer. */
export type Source = {
  readonly provider: string;
  readonly model: string;
  readonly account: Account;
  readonly headers: () => Readonly<Record<string, string>>; // empty until they arrive
  /** Called only if the server reports no usage. */
  readonly estimatePrompt: () => number;
};

export type Ending = {
  readonly stop: Exclude<Stop, 'tool_calls' | 'error' | 'aborted'>;
  readonly explanation?: string;
  readonly announcesCalls?: boolean;
};

/** Interprets the events of one wire format. `take` throws DroverError if the server reports a failure. */
export type WireDialect = {
  readonly take: (event: JsonObject) => void;
  /** Handles `[DONE]`, the only frame that is not JSON. */
  readonly takeDone: () => void;
  /** How the answer ended; undefined until it has. */
  readonly ending: () => Ending | undefined;
};

type Key = string | number;

type Mark = { readonly block: Block | undefined; readonly opened: number; readonly payload: Json };

const BLOCKS_MAX = 1_000;
const NATIVES_MAX = 2 * BLOCKS_MAX; // each block can also have a payload of its own
const ANSWER_CHARS_MAX = 64 * 1024 * 1024;
const KEPT_CHARS_MIN = 64; // the memory that even the smallest stored value counts for
// Constant strings: a type built anew for each delta makes later comparisons slow.
const DELTA = { text: 'text_delta', thinking: 'thinking_delta' } as const;
const CUT_OFF = 'the call was cut off by the output limit';

/** Yields the events of the answer, `finished` last. */
export function assembleWireAnswer(
  frames: Frames,
  assembly: Assembly,
  dialect: WireDialect,
): AsyncIterable<ModelEvent> {
  return oneByOne(assembleWireGroups(frames, assembly, dialect));
}

async function* assembleWireGroups(
  frames: Frames,
  assembly: Assembly,
  dialect: WireDialect,
): AsyncGenerator<readonly ModelEvent[]> {
  try {
    for await (const batch of framesUntilConnectionLost(frames, dialect)) {
      for (const { data } of batch) takeWireFrame(data, assembly, dialect);
      yield assembly.drain();
    }
  } catch (error) {
    // Yield the events from before the failure, even if both came in one chunk.
    yield assembly.drain();
    throw error;
  }
  const ending = dialect.ending();
  if (ending === undefined) throw garbledWireAnswer('the stream ended before the answer did');
  yield assembly.finish(ending);
}

function takeWireFrame(data: string, assembly: Assembly, dialect: WireDialect): void {
  if (data === '[DONE]') return dialect.takeDone();
  const event = parseLooseObject(data);
  if (event === undefined) assembly.ignore();
  else dialect.take(event);
}

/** Ignores a lost connection if the answer is already complete. */
async function* framesUntilConnectionLost(frames: Frames, dialect: WireDialect): Frames {
  try {
    yield* frames;
  } catch (error) {
    if (dialect.ending() === undefined || !isWireConnectionLost(error)) throw error;
  }
}

function isWireConnectionLost(error: unknown): boolean {
  if (!(error instanceof DroverError)) return false;
  const { kind } = error.failure;
  return kind === 'provider.unavailable' || kind === 'provider.stalled' || kind === 'provider.garbled';
}

export class Assembly {
  readonly usage = new UsageCount();
  readonly #source: Source;
  readonly #blocks = new Map<Key, Block>();
  readonly #opened: Block[] = [];
  readonly #parts: Block[] = [];
  readonly #natives: Mark[] = [];
  #events: ModelEvent[] = [];
  #decided = 0; // number of opened blocks that have a part number or ended empty
  #isStarted = false;
  #calls = 0;
  #size = 0;
  #ignored = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  /** Emits `started` once, when the server begins to answer. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const usage = this.usage.soFar();
    this.#events.push({ type: 'started', ...(usage !== undefined && { usage }), headers: this.#source.headers() });
  }

  open(key: Key, kind: 'text' | 'thinking'): void {
    this.#add(key, kind, -1);
  }

  /** Opens a call. Id and name may come later: see `identify`. */
  openCall(key: Key, id: string, name: string): void {
    const block = this.#add(key, 'call', this.#calls++);
    block.id = id;
    block.name = name;
    this.#place();
  }

  /** Sets id and name of a call. The first values that are not empty count. */
  identify(key: Key, id: string, name: string): void {
    const block = this.#blocks.get(key);
    if (block === undefined) return;
    block.id ||= id;
    block.name ||= name;
    if (!block.isAnnounced && block.part !== undefined) this.#announce(block, block.part);
  }

  /** The kind of the block that a key currently names. */
  kindOf(key: Key): Block['kind'] | 'closed' | undefined {
    const block = this.#blocks.get(key);
    return block === undefined || block.isOpen ? block?.kind : 'closed';
  }

  /** The text of a block so far. */
  textOf(key: Key): string {
    return this.#blocks.get(key)?.text ?? '';
  }

  write(key: Key, delta: string): void {
    const block = this.#blocks.get(key);
    if (block === undefined || !block.isOpen) return this.ignore();
    if (delta === '') return;
    this.#grow(delta.length);
    block.add(delta);
    if (block.part === undefined) this.#place();
    else this.#tell(block, block.part, delta);
  }

  /** Sets the whole text of a block. Servers that repeat the text at the end are believed over their deltas. */
  complete(key: Key, whole: string): void {
    const block = this.#blocks.get(key);
    if (block === undefined || whole === '' || whole === block.text) return;
    if (block.isOpen && whole.startsWith(block.text)) return this.write(key, whole.slice(block.text.length));
    this.#grow(whole.length);
    block.text = whole;
  }

  /** Marks a call as one that must not run, with the reason. */
  spoil(key: Key, problem: string): void {
    const block = this.#blocks.get(key);
    if (block !== undefined) block.problem = problem;
  }

  close(key: Key): void {
    const block = this.#blocks.get(key);
    if (block !== undefined) this.#close(block);
  }

  closeAll(): void {
    for (const block of this.#opened) this.#close(block);
  }

  /** Attaches a native payload to a block. If the block stays empty, the payload becomes a separate item. */
  attach(key: Key, payload: Json): void {
    this.#addNative({ block: this.#blocks.get(key), opened: this.#opened.length, payload });
  }

  /** Adds a native payload at the current position of the answer. */
  insert(payload: Json): void {
    this.#addNative({ block: undefined, opened: this.#opened.length, payload });
  }

  /** Adds a native payload for the whole answer, before all parts. */
  preface(payload: Json): void {
    this.#addNative({ block: undefined, opened: 0, payload });
  }

  /** Counts a value that a dialect stores until the answer ends, so that its memory is bounded too. */
  keep(kept: Json): void {
    this.#grow(KEPT_CHARS_MIN + (typeof kept === 'string' ? kept : JSON.stringify(kept)).length);
  }

  /** Counts an event that was unknown or out of order. */
  ignore(): void {
    this.#ignored++;
  }

  drain(): readonly ModelEvent[] {
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  finish(ending: Ending): readonly ModelEvent[] {
    this.start();
    if (ending.stop === 'length') this.#spoilCut();
    this.closeAll();
    const content = this.#parts.map(toAssembledPart);
    const items = this.#natives.map((mark) => this.#toItem(mark));
    const { provider, model, headers, estimatePrompt } = this.#source;
    this.#events.push({
      type: 'finished',
      message: {
        role: 'assistant',
        content,
        stop: ending.stop === 'stop' && this.#calls > 0 ? 'tool_calls' : ending.stop,
        usage: this.usage.total(content, estimatePrompt),
        ...(items.length > 0 && { native: { provider, model, items } }),
      },
      notes: {
        ignored: this.#ignored,
        headers: headers(),
        ...(ending.explanation !== undefined && { explanation: ending.explanation }),
        ...(ending.announcesCalls === true && { announcesCalls: true as const }),
      },
    });
    return this.drain();
  }

  #add(key: Key, kind: Block['kind'], callIndex: number): Block {
    if (this.#opened.length >= BLOCKS_MAX) throw tooManyWireBlocks();
    this.close(key);
    const block = new Block(kind, callIndex);
    this.#blocks.set(key, block);
    this.#opened.push(block);
    return block;
  }

  #addNative(mark: Mark): void {
    if (this.#natives.length >= NATIVES_MAX) throw tooManyWireBlocks();
    this.keep(mark.payload);
    this.#natives.push(mark);
  }

  #grow(chars: number): void {
    this.#size += chars;
    if (this.#size > ANSWER_CHARS_MAX) throw garbledWireAnswer('the answer is over 64 MB');
  }

  /** Gives a part number to every block that can have one now. */
  #place(): void {
    for (; this.#decided < this.#opened.length; this.#decided++) {
      const block = this.#opened[this.#decided];
      if (block === undefined) return;
      const isEmpty = block.kind !== 'call' && block.text === '';
      if (isEmpty && block.isOpen) return;
      if (isEmpty) continue;
      block.part = this.#parts.push(block) - 1;
      if (block.kind === 'call') this.#announce(block, block.part);
      else {
        this.#events.push({ type: `${block.kind}_start`, part: block.part });
        this.#tell(block, block.part, block.text);
      }
      if (!block.isOpen) this.#tellEnd(block, block.part);
    }
  }

  #tell(block: Block, part: number, delta: string): void {
    if (block.kind === 'call' && !block.isAnnounced) return this.#announce(block, part);
    const last = this.#events.at(-1);
    const isContinued = last !== undefined && 'delta' in last && last.part === part;
    if (isContinued) this.#events.pop();
    const whole = isContinued ? last.delta + delta : delta;
    if (block.kind !== 'call') this.#events.push({ type: DELTA[block.kind], part, delta: whole });
    else this.#events.push({ type: 'toolcall_delta', part, callIndex: block.callIndex, delta: whole });
  }

  /** Emits `toolcall_start` once the name is known, and the id too unless arguments come before it. */
  #announce(block: Block, part: number): void {
    const { callIndex, name, text, isOpen } = block;
    if (isOpen && (name === '' || (block.id === '' && text === ''))) return;
    block.isAnnounced = true;
    block.id ||= `call_${callIndex}`;
    this.#events.push({ type: 'toolcall_start', part, callIndex, id: block.id, name });
    if (text !== '') this.#tell(block, part, text);
  }

  #close(block: Block): void {
    if (!block.isOpen) return;
    block.isOpen = false;
    if (block.part === undefined) this.#place();
    else this.#tellEnd(block, block.part);
  }

  #tellEnd(block: Block, part: number): void {
    const { kind, callIndex, text } = block;
    if (kind !== 'call') {
      this.#events.push({ type: `${kind}_end`, part, text });
      return;
    }
    if (!block.isAnnounced) this.#announce(block, part);
    this.#events.push({ type: 'toolcall_end', part, callIndex, call: toAssembledCall(block) });
  }

  #toItem({ block, opened, payload }: Mark): NativeItem {
    if (block?.part !== undefined) return { part: block.part, payload };
    return { before: this.#opened.slice(0, opened).filter(({ part }) => part !== undefined).length, payload };
  }

  // If the limit is reached right after a call's name, its arguments look empty instead of broken.
  #spoilCut(): void {
    const last = this.#opened.findLast(({ kind, text }) => kind === 'call' || text !== '');
    for (const block of this.#opened) {
      if (block.kind !== 'call') continue;
      const isBare = block === last && block.text.trim() === '';
      if (block.isOpen || isBare || toAssembledCall(block).problem !== undefined) block.problem ??= CUT_OFF;
    }
  }
}

function tooManyWireBlocks(): DroverError {
  return garbledWireAnswer(`the answer has more than ${BLOCKS_MAX} content blocks`);
}

export function garbledWireAnswer(message: string): DroverError {
  return new DroverError({ kind: 'provider.garbled', message });
}
