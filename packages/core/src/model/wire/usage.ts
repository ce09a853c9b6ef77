// Usage count: reads token counters, which every server spells differently.
//
// Counters are totals, so a later one replaces an earlier one. A prompt counter of zero replaces nothing, because
// some servers count the prompt only in the first event and send zeros later. If a server reports no counters,
// the usage is estimated and marked as such.

import type { JsonObject } from '@drover/protocol/json';
import type { AssistantPart, Usage } from '@drover/protocol/messages';
import type { ModelRequest, RequestMessage } from '@drover/protocol/model';
import { looseCount, looseObject } from './loose.ts';

const CODE_POINTS_PER_TOKEN = 4;
const TOKENS_PER_IMAGE = 1_600;

export class UsageCount {
  #prompt: { input: number; cacheRead: number; cacheWrite: number } | undefined;
  #output: number | undefined;

  /** Reads Anthropic's counters: uncached, cache read and cache write tokens are separate. */
  takeShares(usage: JsonObject | undefined): void {
    if (usage === undefined) return;
    const input = looseCount(usage['input_tokens']);
    const cacheRead = looseCount(usage['cache_read_input_tokens']);
    const cacheWrite = looseCount(usage['cache_creation_input_tokens']);
    if (input || cacheRead || cacheWrite) {
      const before = this.#prompt ?? { input: 0, cacheRead: 0, cacheWrite: 0 };
      this.#prompt = {
        input: input ?? before.input,
        cacheRead: cacheRead ?? before.cacheRead,
        cacheWrite: cacheWrite ?? before.cacheWrite,
      };
    }
    this.#output = looseCount(usage['output_tokens']) ?? this.#output;
  }

  /** Reads OpenAI's counters: the whole prompt, with cache reads and writes included. */
  takeWhole(usage: JsonObject | undefined): void {
    if (usage === undefined) return;
    const prompt = looseCount(usage['input_tokens']) ?? looseCount(usage['prompt_tokens']) ?? 0;
    const details = looseObject(usage['input_tokens_details']) ?? looseObject(usage['prompt_tokens_details']);
    const cached = looseCount(details?.['cached_tokens']) ?? looseCount(usage['prompt_cache_hit_tokens']);
    const cacheRead = Math.min(prompt, cached ?? looseCount(usage['cached_tokens']) ?? 0);
    const cacheWrite = Math.min(prompt - cacheRead, looseCount(details?.['cache_write_tokens']) ?? 0);
    if (prompt > 0) this.#prompt = { input: prompt - cacheRead - cacheWrite, cacheRead, cacheWrite };
    this.#output = looseCount(usage['output_tokens']) ?? looseCount(usage['completion_tokens']) ?? this.#output;
  }

  /** The counts so far; undefined if the server has reported none. */
  soFar(): Usage | undefined {
    if (this.#prompt === undefined && this.#output === undefined) return undefined;
    return { ...(this.#prompt ?? { input: 0, cacheRead: 0, cacheWrite: 0 }), output: this.#output ?? 0 };
  }

  total(content: readonly AssistantPart[], estimatePrompt: () => number): Usage {
    const told = this.soFar();
    if (told !== undefined) return told;
    const output = Math.ceil(content.reduce((sum, part) => sum + wirePartSize(part), 0) / CODE_POINTS_PER_TOKEN);
    return { input: estimatePrompt(), output, cacheRead: 0, cacheWrite: 0, estimated: true };
  }
}

/** Estimates the number of tokens of a request. */
export function estimatePromptTokens(request: ModelRequest): number {
  const tools = request.tools.reduce((sum, tool) => sum + wireCodePoints(JSON.stringify(tool)), 0);
  const texts = request.messages.reduce((sum, message) => sum + wireMessageSize(message), 0);
  const images = request.messages.reduce((sum, message) => sum + wireImageCount(message), 0);
  const size = wireCodePoints(request.system) + tools + texts;
  return Math.ceil(size / CODE_POINTS_PER_TOKEN) + images * TOKENS_PER_IMAGE;
}

function wireMessageSize(message: RequestMessage): number {
  if (message.role === 'assistant') {
    return message.content.reduce((sum, part) => sum + (part.type === 'native' ? 0 : wirePartSize(part)), 0);
  }
  const results = message.results.reduce((sum, result) => sum + wireCodePoints(result.output), 0);
  return (
    results + message.content.reduce((sum, part) => sum + (part.type === 'text' ? wireCodePoints(part.text) : 0), 0)
  );
}

function wireImageCount(message: RequestMessage): number {
  if (message.role === 'assistant') return 0;
  const shown = message.results.reduce((sum, result) => sum + (result.images?.length ?? 0), 0);
  return shown + message.content.filter((part) => part.type === 'image').length;
}

function wirePartSize(part: AssistantPart): number {
  return part.type === 'tool_call'
    ? wireCodePoints(part.name) + wireCodePoints(JSON.stringify(part.args))
    : wireCodePoints(part.text);
}

function wireCodePoints(text: string): number {
  let count = text.length;
  for (const _ of text.matchAll(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g)) count--;
  return count;
}
