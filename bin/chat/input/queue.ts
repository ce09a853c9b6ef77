// Messages that the user sends while the agent works.
//
// Guarantees
//   1. A message waits for the next step (steering) or for the end of the turn. Each is delivered once, in order.
//   2. A question or an interruption holds all messages that wait: they may no longer apply. Each then appears at the
//      prompt for the user to send or discard.
//   3. A message can be taken back as long as the agent does not have it.

import type { Steered } from '@drover/core/session/inbox';

export type When = 'step' | 'turn';

export type Queued = { readonly text: string; readonly when: When; readonly steered?: Steered };

/** Hands a message to the agent at its next step; undefined if no turn can take it. */
export type Steer = (text: string) => Steered | undefined;

export class Queue {
  #waiting: Queued[] = [];
  #isHeld = false;
  steer: Steer = () => undefined;

  /** The messages that the agent does not have yet. */
  get waiting(): readonly Queued[] {
    this.#waiting = this.#waiting.filter(({ steered }) => steered?.isDelivered !== true);
    return this.#waiting;
  }

  /** Slash commands and shell commands wait for the end of the turn, and so do all messages behind one. */
  add(text: string, when: When): void {
    const isCommand = (each: string): boolean => /^[/!]/.test(each);
    const waits = when === 'turn' || isCommand(text) || this.waiting.some((each) => isCommand(each.text));
    const steered = waits ? undefined : this.steer(text);
    this.#waiting.push({ text, when: steered === undefined ? 'turn' : 'step', ...(steered && { steered }) });
  }

  /** Removes the newest message and returns it. */
  takeBack(): string | undefined {
    const last = this.waiting.at(-1);
    if (last === undefined || last.steered?.takeBack() === false) return undefined;
    this.#waiting.pop();
    return last.text;
  }

  /** Lets the newest message wait for something else. */
  toggleLast(): void {
    const last = this.waiting.at(-1);
    const text = this.takeBack();
    if (last !== undefined && text !== undefined) this.add(text, last.when === 'step' ? 'turn' : 'step');
  }

  /** Keeps messages that wait from being sent by themselves. */
  hold(): void {
    for (const { steered } of this.waiting) steered?.takeBack();
    this.#waiting = this.waiting.map(({ text }) => ({ text, when: 'turn' }));
    this.#isHeld ||= this.#waiting.length > 0;
  }

  /** The turn is over: the next message to send; undefined if messages are held, or none wait. */
  takeNext(): string | undefined {
    for (const { steered } of this.waiting) steered?.takeBack();
    return this.#isHeld ? undefined : this.#waiting.shift()?.text;
  }

  /** The next held message, for the prompt. */
  takeHeld(): string | undefined {
    const held = this.#isHeld ? this.#waiting.shift()?.text : undefined;
    this.#isHeld &&= this.#waiting.length > 0;
    return held;
  }
}
