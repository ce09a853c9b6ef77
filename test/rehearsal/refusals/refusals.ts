// Shared parts of the tests of refusals by the two OpenAI APIs.

import { expect } from 'vitest';
import type { JsonObject } from '@drover/rehearsal/json';

export type Case = [rule: string, body: JsonObject, message: string | RegExp, rest?: JsonObject];

export const user = { role: 'user', content: 'go' };

type Refusal = { readonly status: 400; readonly json: unknown };

/** The refusal of a case, as `post` returns it. */
export function refusal(message: string | RegExp, rest: JsonObject = {}): Refusal {
  const error = {
    type: 'invalid_request_error',
    param: null,
    code: null,
    ...rest,
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  };
  return { status: 400, json: { error } };
}
