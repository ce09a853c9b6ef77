// A conversation: its messages, its system prompt and an estimate of its tokens. It knows no provider
// and no tool.
//
// The estimate is code points ÷ divisor, kept as messages come and go, so asking for it costs nothing
// however long the conversation is. The ratio between what a provider reported and what was estimated
// is kept as a moving average: it is shown, and it corrects the estimate.

import type { AssistantPart, Message } from '../model/protocol.ts';
import { UsageError } from '../failure.ts';

export const CHARS_PER_TOKEN_DEFAULT = 4;
const CHARS_PER_TOKEN_RANGE = { min: 1, max: 32 };
const RATIO_WEIGHT = 0.3; // of the newest observation
const IMAGE_TOKENS = 1_600; // what a picture of ordinary size costs

export type Snapshot = { readonly system: string; readonly messages: readonly Message[] };

export class Conversation {
  #system: string;
  #messages: Message[] = [];
  #codePoints = 0;
  #ratio: number | undefined;
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

  /** As of now; what is appended later isn't in it. */
  get messages(): readonly Message[] {
    return [...this.#messages];
  }

  append(message: Message): void {
    this.#messages.push(message);
    this.#codePoints += codePointsOf(message);
  }

  replace(messages: readonly Message[]): void {
    this.#messages = [...messages];
    this.#codePoints = messages.reduce((sum, message) => sum + codePointsOf(message), 0);
  }

  /** Deep and frozen: neither side sees what the other does later. */
  snapshot(): Snapshot {
    return freeze(structuredClone({ system: this.#system, messages: this.#messages }));
  }

  /** Tokens by our own count, `extra` being code points that go along (tools, reminders). */
  estimate(extra: number): number {
    return Math.ceil((this.#codePoints + codePoints(this.#system) + extra) / this.#charsPerToken);
  }

  /** The estimate, corrected by what the provider has reported so far. */
  expectedTokens(extra: number): number {
    return Math.ceil(this.estimate(extra) * (this.#ratio ?? 1));
  }

  /** Reported ÷ estimated, as a moving average; undefined until something was reported. */
  get ratio(): number | undefined {
    return this.#ratio;
  }

  calibrate(estimated: number, reported: number): void {
    if (estimated <= 0 || reported <= 0) return;
    const observed = reported / estimated;
    this.#ratio = this.#ratio === undefined ? observed : this.#ratio * (1 - RATIO_WEIGHT) + observed * RATIO_WEIGHT;
  }
}

export function codePoints(text: string): number {
  // Nearly all text has no pairs; counting them is faster than walking the string.
  const pairs = text.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g);
  return text.length - (pairs?.length ?? 0);
}

function codePointsOf(message: Message): number {
  switch (message.role) {
    case 'user':
      return message.content.reduce(
        (sum, part) => sum + (part.type === 'text' ? codePoints(part.text) : IMAGE_TOKENS * CHARS_PER_TOKEN_DEFAULT),
        0,
      );
    case 'tool':
      return message.results.reduce(
        (sum, { output, images = [] }) =>
          sum + codePoints(output) + images.length * IMAGE_TOKENS * CHARS_PER_TOKEN_DEFAULT,
        0,
      );
    case 'assistant':
      return message.content.reduce((sum, part) => sum + partCodePoints(part), 0);
  }
}

function partCodePoints(part: AssistantPart): number {
  return part.type === 'tool_call'
    ? codePoints(part.name) + codePoints(JSON.stringify(part.args))
    : codePoints(part.text);
}

function freeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(freeze);
    Object.freeze(value);
  }
  return value;
}
