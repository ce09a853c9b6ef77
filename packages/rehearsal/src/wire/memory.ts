// What the Responses API remembers of the items it made: which are stored, and which belong together.

import { outputId } from './openai-responses.ts';
import type { Reply } from './wire.ts';

/** What the server remembers of the items it made. */
export type ItemMemory = {
  /** Which item came right after a reasoning item, by its id, and the other way round. */
  readonly after: ReadonlyMap<string, string>;
  readonly before: ReadonlyMap<string, string>;
  readonly stored: ReadonlySet<string>;
};

export type LearningMemory = ItemMemory & { readonly learn: (reply: Reply, isStored: boolean) => void };

export function itemMemory(): LearningMemory {
  const after = new Map<string, string>();
  const before = new Map<string, string>();
  const stored = new Set<string>();
  return {
    after,
    before,
    stored,
    learn: (reply, isStored) => {
      for (const [index, part] of reply.parts.entries()) {
        const id = outputId(reply, index);
        if (isStored) stored.add(id);
        const isReasoning = part.type === 'thinking' || part.type === 'redacted';
        if (!isReasoning || index + 1 >= reply.parts.length) continue;
        after.set(id, outputId(reply, index + 1));
        before.set(outputId(reply, index + 1), id);
      }
    },
  };
}
