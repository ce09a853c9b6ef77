// Rejections: turns every way in which a provider refuses a request into a Failure.
//
// A refusal can be an HTTP status, an error object in a body, or an error event in a stream. The failure decides
// whether to retry, to shorten the conversation or to give up.
//
// Guarantees
//   1. An error type is first mapped to its HTTP status, so one table decides.
//   2. A body that is not JSON is described, never shown. A key is never shown, even if the server quotes it.

import type { Failure } from '@drover/protocol/failures';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import type { ProviderOptions } from '../../provider.ts';
import { looseObject, looseObjects, looseTextOnOneLine, parseLooseJson, looseText } from '../loose.ts';
import { httpRetryAfterMs, type HeaderLookup } from './retry-after.ts';

/** The key and address of a provider, for requests and for advice in errors. */
export type Account = {
  readonly key: string;
  readonly keyName: string; // the environment variable that holds the key
  readonly address: string; // the base URL
  readonly shownAddress: string; // the base URL without user name and password
};

/** `usual`: the key variable and base URL that a format uses by default. */
export function httpAccountOf(
  options: ProviderOptions,
  usual: { readonly keyEnv: string; readonly baseUrl: string },
): Account {
  const { apiKey, keyEnv = usual.keyEnv, baseUrl = usual.baseUrl } = options;
  return { key: apiKey.trim(), keyName: keyEnv, address: baseUrl, shownAddress: httpAddressWithoutLogin(baseUrl) };
}

export type Rejection = {
  readonly status: number;
  readonly header: HeaderLookup;
  readonly body: string;
};

const MESSAGE_CHARS_MAX = 300;

// Each server describes a conversation that is too long in its own words.
const OVERFLOW = new RegExp(
  [
    'context_length_exceeded',
    'string_above_max_length',
    'prompt (?:is )?too long',
    'input is too long',
    'input token count.{0,40}exceeds the maximum',
    'maximum (?:prompt|context) length',
    'reduce the length of the (?:messages|prompt|input)',
    'exceeded model token limit',
    'exceeds? (?:the )?(?:available )?(?:model.s )?(?:maximum )?context (?:size|length|window|limit)',
    'greater than the context length',
    'context[_ ]window[_ ]exceeded',
  ].join('|'),
  'i',
);
// A rate limit, not an overflow: the same request may succeed a minute later.
const RATE = /(?:tokens|requests|input|output)[^.]{0,20} per[ -_]?(?:min|sec|hour|day)|perminute|perday/i;

const NO_MONEY =
  /insufficient_quota|billing_(?:error|not_active|hard_limit)|spend_limit|credit balance|out of credits?|insufficient (?:balance|credits?|funds)|payment required/i;
const QUOTA = /exceeded your current quota/i;
const COMES_BACK = /(?:try again|retry) in/i;

// Error types and codes of all three formats, mapped to their HTTP status.
const STATUS_OF: ReadonlyMap<string, number> = new Map(
  Object.entries({
    invalid_request_error: 400,
    invalid_prompt: 400,
    content_policy_violation: 400,
    authentication_error: 401,
    invalid_api_key: 401,
    billing_error: 402,
    insufficient_quota: 402,
    permission_error: 403,
    not_found_error: 404,
    model_not_found: 404,
    request_too_large: 413,
    rate_limit_error: 429,
    rate_limit_exceeded: 429,
    api_error: 500,
    server_error: 500,
    timeout_error: 504,
    overloaded_error: 529,
  }),
);
const SERVER_ERROR = 500;
const WORTH_RETRYING: ReadonlySet<number> = new Set([408, 409, 425, 499]);
const NOT_WORTH_RETRYING: ReadonlySet<number> = new Set([501, 505]);

/** The failure for a response that is not an answer. */
export function failureOfHttpResponse(rejection: Rejection, account: Account): Failure {
  const { status, header, body } = rejection;
  const error = errorInHttpBody(parseLooseJson(body));
  const said = error === undefined ? '' : messageOfHttpError(error);
  const message = said === '' ? `HTTP ${status} with ${kindOfHttpBody(body)}` : said;
  if (status === 413 && body.trim() === '') return { kind: 'context.overflow', message };
  const words = said === '' ? body.slice(0, MESSAGE_CHARS_MAX) : said;
  const meant = status < 300 ? httpStatusMeant(error ?? {}) : status;
  return httpRejectionFailure(
    { status: meant, words: `${codesOfHttpError(error ?? {})} ${words}`, message, header },
    account,
  );
}

/** The failure for an error object inside a stream that began with a success status. */
export function failureOfHttpError(error: JsonObject, account: Account): Failure {
  const said = messageOfHttpError(error);
  const codes = codesOfHttpError(error);
  const message = said === '' ? `an error in the stream: ${codes || 'no reason given'}` : said;
  return httpRejectionFailure(
    { status: httpStatusMeant(error), words: `${codes} ${said}`, message, header: () => undefined },
    account,
  );
}

/** Finds the error object in a body; undefined if there is none. */
export function errorInHttpBody(body: Json | undefined): JsonObject | undefined {
  const [whole] = looseObjects(Array.isArray(body) ? body : [body ?? '']);
  if (whole === undefined) return undefined;
  const { error, detail, message, errors } = whole;
  if (isJsonObject(error)) return error;
  if (typeof error === 'string' && error !== '') return { ...whole, message: looseText(message) || error };
  const [first] = [...looseObjects(errors), ...looseObjects(detail)];
  if (first !== undefined) return { ...first, message: looseText(first['message']) || looseText(first['msg']) };
  if (typeof detail === 'string') return { ...whole, message: detail };
  return whole['type'] === 'error' || typeof message === 'string' ? whole : undefined;
}

/** The failure for a connection that broke or never opened. */
export function failureOfHttpNetwork(error: unknown, account: Account): Failure {
  const code = httpNetworkCode(error);
  if (code.startsWith('Z_')) return { kind: 'provider.garbled', message: `the answer cannot be unpacked (${code})` };
  const host = hostOfHttpAddress(account.address);
  const message = code === 'ECONNREFUSED' ? `${host} refused the connection (${code})` : `${code} from ${host}`;
  return { kind: 'provider.unavailable', message };
}

/** Makes a message safe to show: one line, truncated, without the key or a login. */
export function presentableHttpMessage(message: string, account: Account): string {
  const shown = account.key.length < 8 ? message : message.replaceAll(account.key, '[key]');
  return looseTextOnOneLine(httpAddressWithoutLogin(shown), MESSAGE_CHARS_MAX);
}

function httpAddressWithoutLogin(text: string): string {
  return text.replace(/\/\/[^/@\s]+@/g, '//');
}

type Refused = {
  readonly status: number;
  readonly words: string; // text to classify
  readonly message: string; // text to show
  readonly header: HeaderLookup;
};

function httpRejectionFailure({ status, words, message: said, header }: Refused, account: Account): Failure {
  const message = presentableHttpMessage(said, account);
  if (status !== 429 && OVERFLOW.test(words) && !RATE.test(words)) return { kind: 'context.overflow', message };

  const waitMs = httpRetryAfterMs(header, said);
  const wait = waitMs === undefined ? {} : { retryAfterMs: waitMs };
  const word = header('x-should-retry');
  const isPaidUp = !NO_MONEY.test(words) && !(QUOTA.test(words) && !COMES_BACK.test(words) && !RATE.test(words));
  if (word === 'false' || (word !== 'true' && !isPaidUp))
    return failureOfHttpStatus({ status, message, isPaidUp }, account);
  if (status === 429) return { kind: 'provider.throttled', status, message, ...wait };
  if (word === 'true') return { kind: 'provider.unavailable', status, message, ...wait, shouldRetry: true };
  const isPassing = WORTH_RETRYING.has(status) || (status >= SERVER_ERROR && !NOT_WORTH_RETRYING.has(status));
  if (isPassing) return { kind: 'provider.unavailable', status, message, ...wait };
  return failureOfHttpStatus({ status, message, isPaidUp }, account);
}

type Rejected = Pick<Refused, 'status' | 'message'> & { readonly isPaidUp: boolean };

function failureOfHttpStatus({ status, message, isPaidUp }: Rejected, account: Account): Failure {
  const fix = fixForHttpStatus(isPaidUp ? status : 402, account);
  return { kind: 'provider.rejected', status, message, ...(fix !== undefined && { fix }) };
}

function fixForHttpStatus(status: number, { keyName, shownAddress }: Account): string | undefined {
  switch (status) {
    case 401:
      return `check the key in ${keyName}`;
    case 402:
      return `check the plan and the billing of the account behind ${keyName}`;
    case 403:
      return `check what the key in ${keyName} may be used for`;
    case 404:
      return `check the model's name, and the base URL ${shownAddress}`;
    case 413:
      return 'send less: fewer or smaller images and files';
    default:
      return undefined;
  }
}

function httpStatusMeant(error: JsonObject): number {
  const numbers = [error['status'], error['code'], error['http_code']].map(Number);
  const named = [error['code'], error['type']].map((name) => STATUS_OF.get(looseText(name)));
  return named.find((status) => status !== undefined) ?? numbers.find((n) => n >= 400 && n < 600) ?? SERVER_ERROR;
}

function codesOfHttpError(error: JsonObject): string {
  return [error['type'], error['code'], error['status']]
    .map(looseText)
    .filter((code) => code !== '')
    .join(' ');
}

function messageOfHttpError(error: JsonObject): string {
  const raw = looseObject(error['metadata'])?.['raw']; // set by a router that quotes the server behind it
  return [error['message'], raw]
    .map(looseText)
    .filter((text) => text !== '')
    .join(': ');
}

function kindOfHttpBody(body: string): string {
  const text = body.trimStart();
  if (text === '') return 'an empty body';
  if (text.startsWith('<')) return 'an HTML page';
  return parseLooseJson(text) === undefined ? 'a plain-text body' : 'a JSON body that gives no reason';
}

// fetch wraps errors, sometimes twice. A failed connection to several addresses is an AggregateError.
function httpNetworkCode(error: unknown): string {
  let found = 'connection failed';
  let inner = error;
  for (let depth = 0; depth < 5 && inner instanceof Error; depth++) {
    if ('code' in inner && typeof inner.code === 'string') found = inner.code;
    inner = inner instanceof AggregateError ? inner.errors[0] : inner.cause;
  }
  return found;
}

function hostOfHttpAddress(address: string): string {
  return URL.canParse(address) ? new URL(address).host : address;
}
