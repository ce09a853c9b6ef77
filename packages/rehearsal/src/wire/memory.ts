// The servers' memory of their own answers, as far as it decides which requests they accept.
//
// The Responses API knows which items it stored and which belong together. The Messages API knows an answer that it
// paused: only that one may come back as the last message.

import { rehearsalText, type JsonObject } from '../json.ts';
import { wholeAnthropicBlocks } from './anthropic.ts';
import { responsesWireOutputId } from './openai-responses.ts';
import type { Api, Reply } from './wire.ts';

export type Memory = {
  /** The item that followed a reasoning item, by its id, and the reverse. */
  readonly after: ReadonlyMap<string, string>;
  readonly before: ReadonlyMap<string, string>;
  readonly stored: ReadonlySet<string>;
  readonly isPaused: (blocks: readonly JsonObject[]) => boolean;
};

export type LearningMemory = Memory & { readonly learn: (api: Api, reply: Reply, request: JsonObject) => void };

export function newWireMemory(): LearningMemory {
  const after = new Map<string, string>();
  const before = new Map<string, string>();
  const stored = new Set<string>();
  const paused = new Set<string>();
  const learnItems = (reply: Reply, isStored: boolean): void => {
    for (const [index, part] of reply.parts.entries()) {
      const id = responsesWireOutputId(reply, index);
      if (isStored) stored.add(id);
      const isReasoning = part.type === 'thinking' || part.type === 'redacted';
      if (!isReasoning || index + 1 >= reply.parts.length) continue;
      after.set(id, responsesWireOutputId(reply, index + 1));
      before.set(responsesWireOutputId(reply, index + 1), id);
    }
  };
  return {
    after,
    before,
    stored,
    isPaused: (blocks) => paused.has(fingerprintForWireMemory(blocks)),
    learn: (api, reply, request) => {
      if (api === 'openai') learnItems(reply, request['store'] !== false);
      if (api === 'anthropic' && reply.stop === 'pause')
        paused.add(fingerprintForWireMemory(wholeAnthropicBlocks(reply)));
    },
  };
}

function fingerprintForWireMemory(blocks: readonly JsonObject[]): string {
  return JSON.stringify(
    blocks.map(({ type, text, thinking, data, id }) => [type, text ?? thinking ?? data ?? rehearsalText(id)]),
  );
}
