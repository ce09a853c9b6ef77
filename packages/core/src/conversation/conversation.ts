// A conversation: its messages, its system prompt and an estimate of its tokens. It depends on no provider
// and no tool.
//
// The estimate is code points ÷ divisor. It is updated with every message, so reading it is cheap for any length.
// A moving average of reported ÷ estimated tokens corrects the estimate and is shown to the user. The divisor
// alone matters only until the provider has reported its first count.

import type { AssistantPart, ImagePart, Message } from '@drover/protocol/messages';
import { UsageError } from '../errors.ts';

export const CHARS_PER_TOKEN_DEFAULT = 4;
const CHARS_PER_TOKEN_RANGE = { min: 1, max: 32 };
const RATIO_WEIGHT = 0.3; // of the newest observation
const IMAGE_TOKENS = 1_600; // of an image of usual size

export type Snapshot = { readonly system: string; readonly messages: readonly Message[] };

/** Tokens of a prompt: system prompt, tools and messages. */
export type TokenFigures = {
  readonly estimate: number; // code points ÷ charsPerToken
  readonly expected: number; // the estimate, corrected by the ratio
  readonly reported?: number; // by the provider, for the last prompt
  readonly ratio?: number; // reported ÷ estimate, as a moving average
  readonly window: number; // of the model
};

export class Conversation {
  #system: string;
  #messages: Message[] = [];
  #size: Size = EMPTY;
  #ratio: number | undefined;
  #reported: number | undefined;
  readonly #charsPerToken: number;

  constructor(system: string, charsPerToken: number) {
    const { min, max } = CHARS_PER_TOKEN_RANGE;
    if (!(charsPerToken >= min && charsPerToken <= max)) {
      throw new UsageError(`characters per token must be between ${min} and ${max}, not ${charsPerToken}`);
    }
    this.#system = system;
    this.#charsPerToken = charsPerToken;
  }

  get system(): string {
    return this.#system;
  }

  /** Takes effect with the next request. */
  set system(prompt: string) {
    this.#system = prompt;
  }

  /** A copy of the messages as they are now. */
  get messages(): readonly Message[] {
    return [...this.#messages];
  }

  append(message: Message): void {
    this.#messages.push(message);
    this.#size = addMessageSizes(this.#size, sizeOfMessage(message));
  }

  replace(messages: readonly Message[]): void {
    this.#messages = [...messages];
    this.#size = sizeOfMessages(messages);
  }

  /** Returns a frozen deep copy. */
  snapshot(): Snapshot {
    return freezeMessage(structuredClone({ system: this.#system, messages: this.#messages }));
  }

  /** Returns the uncorrected estimate. `extra`: additional code points (tools, reminders). */
  estimate(extra: number): number {
    return Math.ceil(this.#tokensOf(this.#size, extra));
  }

  /** Returns the estimate, corrected by the counts the provider has reported. */
  expectedTokens(extra: number): number {
    return Math.ceil(this.estimate(extra) * this.#correction);
  }

  /** Returns the expected tokens of a prompt with these messages. */
  expectedTokensWith(messages: readonly Message[], extra: number): number {
    return Math.ceil(Math.ceil(this.#tokensOf(sizeOfMessages(messages), extra)) * this.#correction);
  }

  /** Returns the number of characters expected to fill `tokens`. */
  charsIn(tokens: number): number {
    return Math.floor((tokens * this.#charsPerToken) / this.#correction);
  }

  /** Moving average of reported ÷ estimated tokens; undefined before the first report. */
  get ratio(): number | undefined {
    return this.#ratio;
  }

  /** Returns the token figures of the next prompt, with tools of `extra` code points. */
  figures(extra: number, window: number): TokenFigures {
    const counted = { ...(this.#reported !== undefined && { reported: this.#reported }) };
    const ratio = this.#ratio === undefined ? {} : { ratio: roundTokenRatio(this.#ratio) };
    return { estimate: this.estimate(extra), expected: this.expectedTokens(extra), ...counted, ...ratio, window };
  }

  /** Restores the calibration of an earlier process for the same model. */
  recalibrate({ reported, ratio }: Pick<TokenFigures, 'reported' | 'ratio'>): void {
    this.#reported = reported;
    this.#ratio = ratio;
  }

  calibrate(estimated: number, reported: number): void {
    if (estimated <= 0 || reported <= 0) return;
    this.#reported = reported;
    this.#ratio = calibrateTokenRatio(this.#ratio, estimated, reported);
  }

  get #correction(): number {
    return this.#ratio ?? 1;
  }

  #tokensOf({ codePoints: own, images }: Size, extra: number): number {
    return (own + conversationCodePoints(this.#system) + extra) / this.#charsPerToken + images * IMAGE_TOKENS;
  }
}

/** Images are counted separately: their tokens don't depend on the divisor. */
type Size = { readonly codePoints: number; readonly images: number };

const EMPTY: Size = { codePoints: 0, images: 0 };

// Cache: messages never change, and a compaction measures the same ones many times.
const sizes = new WeakMap<Message, Size>();

export function conversationCodePoints(text: string): number {
  // Counting surrogate pairs is faster than iterating the string: nearly all text has none.
  const pairs = text.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g);
  return text.length - (pairs?.length ?? 0);
}

/** The ratio after another report. Without an estimate or a report it stays as it was. */
export function calibrateTokenRatio(
  ratio: number | undefined,
  estimated: number,
  reported: number,
): number | undefined {
  if (estimated <= 0 || reported <= 0) return ratio;
  const observed = reported / estimated;
  return ratio === undefined ? observed : ratio * (1 - RATIO_WEIGHT) + observed * RATIO_WEIGHT;
}

export function roundTokenRatio(ratio: number): number {
  return Math.round(ratio * 1000) / 1000;
}

function addMessageSizes(a: Size, b: Size): Size {
  return { codePoints: a.codePoints + b.codePoints, images: a.images + b.images };
}

function sizeOfMessages(messages: readonly Message[]): Size {
  return messages.reduce((sum, message) => addMessageSizes(sum, sizeOfMessage(message)), EMPTY);
}

function sizeOfMessage(message: Message): Size {
  const size = sizes.get(message) ?? measureMessage(message);
  sizes.set(message, size);
  return size;
}

function measureMessage(message: Message): Size {
  switch (message.role) {
    case 'user':
      return message.content.reduce((sum, part) => addMessageSizes(sum, sizeOfMessagePart(part)), EMPTY);
    case 'tool':
      return message.results.reduce(
        (sum, { output, images = [] }) =>
          addMessageSizes(sum, { codePoints: conversationCodePoints(output), images: images.length }),
        EMPTY,
      );
    case 'assistant':
      return message.content.reduce((sum, part) => addMessageSizes(sum, sizeOfMessagePart(part)), EMPTY);
  }
}

function sizeOfMessagePart(part: AssistantPart | ImagePart): Size {
  switch (part.type) {
    case 'image':
      return { codePoints: 0, images: 1 };
    case 'tool_call':
      return {
        codePoints: conversationCodePoints(part.name) + conversationCodePoints(JSON.stringify(part.args)),
        images: 0,
      };
    case 'text':
    case 'thinking':
      return { codePoints: conversationCodePoints(part.text), images: 0 };
  }
}

function freezeMessage<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(freezeMessage);
    Object.freeze(value);
  }
  return value;
}
