// Block: one part of an answer while it arrives: a text, thinking, or a call.

import type { AssistantPart, CallPart } from '@drover/protocol/messages';
import { GrowingText } from '../../growing-text.ts';
import { parseWireArguments } from './arguments.ts';

export class Block {
  readonly kind: 'text' | 'thinking' | 'call';
  readonly callIndex: number; // for a call
  part: number | undefined; // undefined until the block has a part number
  id = '';
  name = '';
  isAnnounced = false; // for a call: whether `toolcall_start` was emitted
  isOpen = true;
  problem: string | undefined;
  #text = new GrowingText('');

  constructor(kind: Block['kind'], callIndex: number) {
    this.kind = kind;
    this.callIndex = callIndex;
  }

  /** The text so far; for a call, its arguments. */
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

export function toAssembledPart(block: Block): AssistantPart {
  return block.kind === 'call' ? toAssembledCall(block) : { type: block.kind, text: block.text };
}

export function toAssembledCall({ id, name, text, problem }: Block): CallPart {
  const parsed = parseWireArguments(text);
  const trouble = problem ?? (name === '' ? 'the call names no tool' : parsed.problem);
  const call: CallPart = { type: 'tool_call', id, name, args: parsed.args };
  return trouble === undefined ? call : { ...call, args: {}, problem: trouble };
}
