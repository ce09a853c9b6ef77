// An answer, put together from the pieces in which it arrives.
//
// Every wire format streams blocks: text, thinking, calls, and things only that provider understands.
// A dialect (one a provider file) knows which event means what. The assembly keeps the blocks by key,
// makes the events and in the end the message. `assemble` feeds the one to the other.
//
// PARTS
//   Parts stand in the order in which their blocks were opened, and an empty text is no part. So a block
//   gets its number once there is something to show and all that were opened before it have theirs or
//   turned out empty; what comes meanwhile is held back. The numbers in the events are therefore those
//   of the finished message. A key that is opened again is a new block.
//
// ENDINGS
//   An answer is whole once its stop reason is known. Until then the end of the stream is a failure;
//   after that, nothing that happens to the connection can take it away.
//
// BOUNDS
//   An answer has at most 1,000 blocks and 64 MB. One with more is garbled, and its stream is not read further.

import { DroverError } from '../../errors.ts';
import { GrowingText } from '../../growing-text.ts';
import type { Json, JsonObject } from '@drover/protocol/json';
import { oneByOne } from '../../one-by-one.ts';
import type { AssistantPart, CallPart, NativeItem, Stop } from '@drover/protocol/messages';
import type { ModelEvent } from '@drover/protocol/model';
import { parseArguments } from './arguments.ts';
import { parseObject } from './loose.ts';
import type { Account } from './http/rejection.ts';
import type { Frames } from './http/sse.ts';
import { UsageCount } from './usage.ts';

/** Whose answer is being read. */
export type Source = {
  readonly provider: string;
  readonly model: string;
  readonly account: Account;
  readonly headers: () => Readonly<Record<string, string>>; // once they have arrived
  /** Asked only where the server counts nothing. */
  readonly estimatePrompt: () => number;
};

export type Ending = {
  readonly stop: Exclude<Stop, 'tool_calls' | 'error' | 'aborted'>;
  readonly explanation?: string;
  readonly announcesCalls?: boolean;
};

/** How one wire format says things. `take` throws DroverError where the server says that it failed. */
export type Dialect = {
  readonly take: (event: JsonObject) => void;
  /** `[DONE]`, the one frame that is no JSON. */
  readonly takeDone: () => void;
  /** How the answer ended, or undefined while it has not. */
  readonly ending: () => Ending | undefined;
};

type Key = string | number;

type Mark = { readonly block: Block | undefined; readonly opened: number; readonly payload: Json };

const BLOCKS_MAX = 1_000;
const NATIVES_MAX = 2 * BLOCKS_MAX; // a block can have a note of its own
const ANSWER_CHARS_MAX = 64 * 1024 * 1024;
const KEPT_CHARS_MIN = 64; // counted for everything that is kept, however small
// A name put together anew for each of so many events would be compared letter by letter ever after.
const DELTA = { text: 'text_delta', thinking: 'thinking_delta' } as const;
const CUT_OFF = 'the call was cut off by the output limit';

/** The answer as events, ending with `finished`. */
export function assemble(frames: Frames, assembly: Assembly, dialect: Dialect): AsyncIterable<ModelEvent> {
  return oneByOne(assembleGroups(frames, assembly, dialect));
}

async function* assembleGroups(
  frames: Frames,
  assembly: Assembly,
  dialect: Dialect,
): AsyncGenerator<readonly ModelEvent[]> {
  try {
    for await (const batch of untilLost(frames, dialect)) {
      for (const { data } of batch) takeFrame(data, assembly, dialect);
      yield assembly.drain();
    }
  } catch (error) {
    // What arrived before the failure did arrive, also when both came in one piece.
    yield assembly.drain();
    throw error;
  }
  const ending = dialect.ending();
  if (ending === undefined) throw garbled('the stream ended before the answer did');
  yield assembly.finish(ending);
}

function takeFrame(data: string, assembly: Assembly, dialect: Dialect): void {
  if (data === '[DONE]') return dialect.takeDone();
  const event = parseObject(data);
  if (event === undefined) assembly.ignore();
  else dialect.take(event);
}

/** A connection that breaks when the answer is whole has merely ended. */
async function* untilLost(frames: Frames, dialect: Dialect): Frames {
  try {
    yield* frames;
  } catch (error) {
    if (dialect.ending() === undefined || !isConnectionLost(error)) throw error;
  }
}

function isConnectionLost(error: unknown): boolean {
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
  #decided = 0; // of the blocks opened: those that have their place, or need none
  #isStarted = false;
  #calls = 0;
  #size = 0;
  #ignored = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  /** The server has begun to answer. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const usage = this.usage.soFar();
    this.#events.push({ type: 'started', ...(usage !== undefined && { usage }), headers: this.#source.headers() });
  }

  open(key: Key, kind: 'text' | 'thinking'): void {
    this.#add(key, kind, -1);
  }

  /** Id and name may come later: see `identify`. */
  openCall(key: Key, id: string, name: string): void {
    const block = this.#add(key, 'call', this.#calls++);
    block.id = id;
    block.name = name;
    this.#place();
  }

  /** The first id and name that are not empty count. */
  identify(key: Key, id: string, name: string): void {
    const block = this.#blocks.get(key);
    if (block === undefined) return;
    block.id ||= id;
    block.name ||= name;
    if (!block.isAnnounced && block.part !== undefined) this.#announce(block, block.part);
  }

  /** What a key stands for at the moment. */
  kindOf(key: Key): Block['kind'] | 'closed' | undefined {
    const block = this.#blocks.get(key);
    return block === undefined || block.isOpen ? block?.kind : 'closed';
  }

  /** What has been written to a block so far. */
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

  /** The whole text of a block, from a server that says it again at the end: that is what counts. */
  complete(key: Key, whole: string): void {
    const block = this.#blocks.get(key);
    if (block === undefined || whole === '' || whole === block.text) return;
    if (block.isOpen && whole.startsWith(block.text)) return this.write(key, whole.slice(block.text.length));
    this.#grow(whole.length);
    block.text = whole;
  }

  /** A call that must not be run, and why. */
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

  /** What only the provider understands about a block; it stands alone where the block shows nothing. */
  attach(key: Key, payload: Json): void {
    this.#addNative({ block: this.#blocks.get(key), opened: this.#opened.length, payload });
  }

  /** Something only the provider understands, at this place of the answer. */
  insert(payload: Json): void {
    this.#addNative({ block: undefined, opened: this.#opened.length, payload });
  }

  /** Something only the provider understands about the answer as a whole: it stands in front. */
  preface(payload: Json): void {
    this.#addNative({ block: undefined, opened: 0, payload });
  }

  /** Counts what a dialect keeps until the answer ends, so that its memory is bounded too. */
  keep(kept: Json): void {
    this.#grow(KEPT_CHARS_MIN + (typeof kept === 'string' ? kept : JSON.stringify(kept)).length);
  }

  /** Something that was not understood, or came when it should not have. */
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
    const content = this.#parts.map(toPart);
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
    if (this.#opened.length >= BLOCKS_MAX) throw tooManyBlocks();
    this.close(key);
    const block = new Block(kind, callIndex);
    this.#blocks.set(key, block);
    this.#opened.push(block);
    return block;
  }

  #addNative(mark: Mark): void {
    if (this.#natives.length >= NATIVES_MAX) throw tooManyBlocks();
    this.keep(mark.payload);
    this.#natives.push(mark);
  }

  #grow(chars: number): void {
    this.#size += chars;
    if (this.#size > ANSWER_CHARS_MAX) throw garbled('the answer is over 64 MB');
  }

  /** Gives a place to every block that can have one now. */
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
    if (block.kind !== 'call') this.#events.push({ type: DELTA[block.kind], part, delta });
    else if (block.isAnnounced) this.#events.push({ type: 'toolcall_delta', part, callIndex: block.callIndex, delta });
    else this.#announce(block, part);
  }

  /** As soon as the call is known by name, and by id unless there is none. */
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
    this.#events.push({ type: 'toolcall_end', part, callIndex, call: toCall(block) });
  }

  #toItem({ block, opened, payload }: Mark): NativeItem {
    if (block?.part !== undefined) return { part: block.part, payload };
    return { before: this.#opened.slice(0, opened).filter(({ part }) => part !== undefined).length, payload };
  }

  // A limit reached right behind a call's name leaves arguments that look empty rather than broken.
  #spoilCut(): void {
    const last = this.#opened.findLast(({ kind, text }) => kind === 'call' || text !== '');
    for (const block of this.#opened) {
      if (block.kind !== 'call') continue;
      const isBare = block === last && block.text.trim() === '';
      if (block.isOpen || isBare || toCall(block).problem !== undefined) block.problem ??= CUT_OFF;
    }
  }
}

class Block {
  readonly kind: 'text' | 'thinking' | 'call';
  readonly callIndex: number; // of a call
  part: number | undefined; // undefined while it has no place yet
  id = '';
  name = '';
  isAnnounced = false; // of a call: whether its start has been told
  isOpen = true;
  problem: string | undefined;
  #text = new GrowingText('');

  constructor(kind: Block['kind'], callIndex: number) {
    this.kind = kind;
    this.callIndex = callIndex;
  }

  /** Of a call: its arguments. */
  get text(): string {
    return this.#text.whole;
  }

  set text(whole: string) {
    this.#text = new GrowingText(whole);
  }

  add(piece: string): void {
    this.#text.add(piece);
  }
}

function toPart(block: Block): AssistantPart {
  return block.kind === 'call' ? toCall(block) : { type: block.kind, text: block.text };
}

function toCall({ id, name, text, problem }: Block): CallPart {
  const parsed = parseArguments(text);
  const trouble = problem ?? (name === '' ? 'the call names no tool' : parsed.problem);
  const call: CallPart = { type: 'tool_call', id, name, args: parsed.args };
  return trouble === undefined ? call : { ...call, args: {}, problem: trouble };
}

function tooManyBlocks(): DroverError {
  return garbled(`the answer has more than ${BLOCKS_MAX} content blocks`);
}

export function garbled(message: string): DroverError {
  return new DroverError({ kind: 'provider.garbled', message });
}
