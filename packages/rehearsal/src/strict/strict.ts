// All checks for which the real API would refuse a request.

import type { Prompt } from '../meter/cache.ts';
import { rehearsalText, type JsonObject } from '../json.ts';
import type { Script } from '../script.ts';
import type { Memory } from '../wire/memory.ts';
import type { Refusal } from '../wire/wire.ts';
import { strictAnthropicProblem } from './anthropic.ts';
import { strictBytesProblem, strictKeyProblem, strictSizeProblem, type Envelope } from './body.ts';
import { strictChatProblem } from './openai-chat.ts';
import { strictResponsesProblem } from './openai-responses.ts';
import { strictOverflow, type OverflowDialect } from './overflow.ts';

export type Judged = {
  readonly script: Script;
  readonly body: JsonObject;
  readonly prompt: Prompt;
  readonly memory: Memory;
};

export function strictProblem(envelope: Envelope, { script, body, prompt, memory }: Judged): Refusal | undefined {
  return (
    strictKeyProblem(envelope, script.keys) ??
    strictSizeProblem(envelope, script) ??
    strictBytesProblem(envelope) ??
    strictSenseProblem(envelope, body, memory) ??
    strictLengthProblem(envelope, { script, body, prompt, memory })
  );
}

function strictSenseProblem({ api }: Envelope, body: JsonObject, memory: Memory): Refusal | undefined {
  switch (api) {
    case 'anthropic':
      return strictAnthropicProblem(body, memory);
    case 'openai':
      return strictResponsesProblem(body, memory);
    case 'openai-chat':
      return strictChatProblem(body);
  }
}

function strictLengthProblem({ api }: Envelope, { script, body, prompt }: Judged): Refusal | undefined {
  const { contextTokens } = script;
  const limit = typeof contextTokens === 'object' ? contextTokens[rehearsalText(body['model'])] : contextTokens;
  if (limit === undefined || prompt.tokens <= limit) return undefined;
  const own: OverflowDialect = api === 'anthropic' ? 'anthropic' : api === 'openai' ? 'openai-responses' : 'openai';
  return strictOverflow(script.overflowDialect ?? own, prompt.tokens, limit);
}
