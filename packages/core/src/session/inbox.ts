// Inbox: messages that the user sends to an agent while it works (steering).
//
// Guarantees
//   1. The loop takes a message between two requests: after the results of a step, or instead of ending the turn.
//      It becomes a user message of the same turn, in the journal and in the conversation.
//   2. A message is delivered once, or taken back, never both. One that was not delivered stays in the inbox.
//
// Crash: a message is durable once it is delivered. One that still waits is lost with the process.

import type { UserMessage } from '@drover/protocol/messages';

type Content = UserMessage['content'];

/** A message on its way. */
export type Steered = {
  readonly isDelivered: boolean;
  /** Removes the message. Returns false if the agent already has it. */
  readonly takeBack: () => boolean;
};

type Waiting = { readonly content: Content; readonly onDelivered?: (() => void) | undefined };

export class Inbox {
  readonly #waiting = new Map<Steered, Waiting>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** `onDelivered` is called once the message is in the conversation. */
  add(content: string | Content, onDelivered?: () => void): Steered {
    const steered: Steered & { isDelivered: boolean } = {
      isDelivered: false,
      takeBack: () => this.#waiting.delete(steered),
    };
    const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content;
    this.#waiting.set(steered, { content: parts, onDelivered });
    return steered;
  }

  /** Removes all messages as delivered, and returns them in order. */
  deliver(): readonly Waiting[] {
    const waiting = [...this.#waiting.values()];
    for (const steered of this.#waiting.keys()) (steered as { isDelivered: boolean }).isDelivered = true;
    this.#waiting.clear();
    return waiting;
  }
}
