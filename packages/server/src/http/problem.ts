// Refusals: answers to requests that changed nothing. Routes return a refusal as a value and do not throw it.

import type { Problem } from '@drover/client/wire';
import { describe } from '@drover/protocol/failures';
import type { DroverError, UsageError } from '@drover/core/errors';
import type { UnfitOptions } from '@drover/core/model/sampling';

const RETRY_AFTER_SECONDS = 1;

export class Refusal {
  readonly problem: Problem;

  constructor(status: number, type: string, title: string, more: Pick<Problem, 'detail' | 'errors'> = {}) {
    this.problem = { type, title, status, ...more };
  }

  get response(): Response {
    const { status } = this.problem;
    return new Response(JSON.stringify(this.problem), {
      status,
      headers: {
        'content-type': 'application/problem+json',
        ...(status === 401 && { 'www-authenticate': 'Bearer' }),
        ...(status === 405 && { allow: 'GET, POST, DELETE' }),
        ...(status === 503 && { 'retry-after': `${RETRY_AFTER_SECONDS}` }),
      },
    });
  }
}

export function httpNotFound(what: 'session' | 'run' | 'task' | 'call' | 'question' | 'route'): Refusal {
  return new Refusal(404, `${what}.unknown`, `there is no such ${what}`);
}

/** Fields that say how to ask a model: one that can't be used is a bad request. */
const MODEL_FIELDS = /^(options|messages)(\.|$)/;

/** The mistakes in a parsed request: their place in the body, and the reason. */
export function httpUnfitBody(errors: NonNullable<Problem['errors']>): Refusal {
  const detail = errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ');
  const status = errors.every(({ path }) => MODEL_FIELDS.test(path)) ? 400 : 422;
  return new Refusal(status, 'body.unfit', 'the body is not what this route takes', { detail, errors });
}

/** Turns a UsageError into a refusal with the same sentence that the command line prints. */
export function httpUnusableRequest(error: UsageError): Refusal {
  return new Refusal(422, 'unusable', 'this can’t be done as it was asked', { detail: error.message });
}

/** Options that the model does not take. */
export function httpUnfitOptions(error: UnfitOptions): Refusal {
  const errors = [{ path: 'options', message: error.message }];
  return new Refusal(400, 'options.unfit', 'the model does not take these options', { detail: error.message, errors });
}

/** Refuses a journal that cannot be written: another process holds it, it is damaged, or a newer drover wrote it. */
export function httpUnavailable({ failure }: DroverError): Refusal {
  return new Refusal(409, failure.kind, 'this can’t be written now', { detail: describe(failure) });
}

export function httpBug(): Refusal {
  return new Refusal(500, 'internal', 'an error in the server itself; its diagnostics say more');
}
