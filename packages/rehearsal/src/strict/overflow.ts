// Refusals of an overlong prompt, in the words of each kind of server.

import type { Refusal } from '../wire/wire.ts';

export const OVERFLOW_DIALECTS = [
  'anthropic',
  'openai',
  'openai-responses',
  'bedrock',
  'gemini',
  'xai',
  'groq',
  'moonshot',
  'llama.cpp',
  'lm-studio',
  'empty-413',
] as const;

export type OverflowDialect = (typeof OVERFLOW_DIALECTS)[number];

export function strictOverflow(dialect: OverflowDialect, tokens: number, limit: number): Refusal {
  const refusal = { status: 400, type: 'invalid_request_error' } as const;
  switch (dialect) {
    case 'anthropic':
      return { ...refusal, message: `prompt is too long: ${tokens} tokens > ${limit} maximum` };
    case 'openai':
      return {
        ...refusal,
        code: 'context_length_exceeded',
        param: 'messages',
        message: `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${tokens} tokens.`,
      };
    case 'openai-responses':
      return {
        ...refusal,
        code: 'context_length_exceeded',
        param: 'input',
        message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
      };
    case 'bedrock':
      return { ...refusal, type: 'ValidationException', message: 'Input is too long for requested model.' };
    case 'gemini':
      return {
        ...refusal,
        type: 'INVALID_ARGUMENT',
        message: `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${limit}).`,
      };
    case 'xai':
      return {
        ...refusal,
        message: `This model's maximum prompt length is ${limit} but the request contains ${tokens} tokens.`,
      };
    case 'groq':
      return { ...refusal, message: 'Please reduce the length of the messages or completion.' };
    case 'moonshot':
      return { ...refusal, message: `Invalid request: Your request exceeded model token limit: ${limit}` };
    case 'llama.cpp':
      return {
        ...refusal,
        type: 'exceed_context_size_error',
        message: `the request exceeds the available context size (${limit} tokens), try increasing it`,
      };
    case 'lm-studio':
      return {
        ...refusal,
        message: `The number of tokens to keep from the initial prompt (${tokens}) is greater than the context length (${limit}).`,
      };
    case 'empty-413':
      return { status: 413, type: 'request_too_large', message: '', body: 'empty' };
  }
}
