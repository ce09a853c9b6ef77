// All checks for which the real API would refuse a request.

import type { Prompt } from '../meter/cache.ts';
import { textOf, type JsonObject } from '../json.ts';
import type { Script } from '../script.ts';
import type { Memory } from '../wire/memory.ts';
import type { Refusal } from '../wire/wire.ts';
import { anthropicProblem } from './anthropic.ts';
import { bytesProblem, keyProblem, sizeProblem, type Envelope } from './body.ts';
import { chatProblem } from './openai-chat.ts';
import { responsesProblem } from './openai-responses.ts';
import { overflow, type OverflowDialect } from './overflow.ts';

export type Judged = {
  readonly script: Script;
  readonly body: JsonObject;
  readonly prompt: Prompt;
  readonly memory: Memory;
};

export function strictProblem(envelope: Envelope, { script, body, prompt, memory }: Judged): Refusal | undefined {
  return (
    keyProblem(envelope, script.keys) ??
    sizeProblem(envelope, script) ??
    bytesProblem(envelope) ??
    senseProblem(envelope, body, memory) ??
    lengthProblem(envelope, { script, body, prompt, memory })
  );
}

function senseProblem({ api }: Envelope, body: JsonObject, memory: Memory): Refusal | undefined {
  switch (api) {
    case 'anthropic':
      return anthropicProblem(body, memory);
    case 'openai':
      return responsesProblem(body, memory);
    case 'openai-chat':
      return chatProblem(body);
  }
}

function lengthProblem({ api }: Envelope, { script, body, prompt }: Judged): Refusal | undefined {
  const { contextTokens } = script;
  const limit = typeof contextTokens === 'object' ? contextTokens[textOf(body['model'])] : contextTokens;
  if (limit === undefined || prompt.tokens <= limit) return undefined;
  const own: OverflowDialect = api === 'anthropic' ? 'anthropic' : api === 'openai' ? 'openai-responses' : 'openai';
  return overflow(script.overflowDialect ?? own, prompt.tokens, limit);
}
