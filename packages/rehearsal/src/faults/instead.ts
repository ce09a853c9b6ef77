// Faults in place of an answer: error statuses, redirects, and responses that never come.

import type { Api, Refusal } from '../wire/wire.ts';
import type { StatusFault } from './fault.ts';

const ANTHROPIC_TYPES: Readonly<Record<number, readonly [type: string, message: string]>> = {
  400: ['invalid_request_error', 'Bad request'],
  401: ['authentication_error', 'invalid x-api-key'],
  402: ['billing_error', 'Your credit balance is too low to access the API.'],
  403: ['permission_error', 'Your API key does not have permission to use the specified resource.'],
  404: ['not_found_error', 'model: no-such-model'],
  408: ['timeout_error', 'Request timed out'],
  409: ['conflict_error', 'Conflict'],
  413: ['request_too_large', 'Request exceeds the maximum size'],
  429: ['rate_limit_error', 'This request would exceed your rate limit.'],
  504: ['timeout_error', 'Request timed out'],
  529: ['overloaded_error', 'Overloaded'],
};

const OPENAI_TYPES: Readonly<Record<number, readonly [type: string, message: string, code?: string]>> = {
  400: ['invalid_request_error', 'Bad request'],
  401: ['invalid_request_error', 'Incorrect API key provided.', 'invalid_api_key'],
  402: ['insufficient_quota', 'Payment required.', 'insufficient_quota'],
  403: ['invalid_request_error', 'You are not allowed to use this model.', 'model_not_allowed'],
  404: [
    'invalid_request_error',
    'The model `no-such-model` does not exist or you do not have access to it.',
    'model_not_found',
  ],
  429: ['requests', 'Rate limit reached for requests.', 'rate_limit_exceeded'],
  503: ['server_error', 'The engine is currently overloaded, please try again later.', 'server_overloaded'],
};

/** The error that an API gives with a status, unless the fault says otherwise. */
export function refusalByStatusFault(api: Api, { status, type, message, code, headers, body }: StatusFault): Refusal {
  const unknown: readonly [string, string] = [
    api === 'anthropic' ? 'api_error' : 'server_error',
    'Internal server error',
  ];
  const [usualType, usualMessage, usualCode] =
    (api === 'anthropic' ? ANTHROPIC_TYPES : OPENAI_TYPES)[status] ?? unknown;
  const given = code ?? usualCode;
  return {
    status,
    type: type ?? usualType,
    message: message ?? usualMessage,
    ...(given !== undefined && { code: given }),
    ...(headers && { headers }),
    ...(body && { body }),
  };
}
