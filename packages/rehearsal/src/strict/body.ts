// Checks before a request is parsed: headers, size, and valid JSON.

import { isUtf8 } from 'node:buffer';
import type { Script } from '../script.ts';
import type { Api, Refusal } from '../wire/wire.ts';

const BODY_BYTES_MAX = 32 * 1024 * 1024;

export type Envelope = {
  readonly api: Api;
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
  readonly bytes: Buffer;
  readonly rawBody: string;
};

/** The API key, if it matters here. */
export function strictKeyProblem({ api, secrets }: Envelope, keys: readonly string[] | undefined): Refusal | undefined {
  if (keys === undefined) return undefined;
  const given = secrets.map((secret) => secret.replace(/^Bearer /, ''));
  if (given.some((key) => keys.includes(key))) return undefined;
  if (api === 'anthropic')
    return {
      status: 401,
      type: 'authentication_error',
      message: given.length === 0 ? 'x-api-key header is required' : 'invalid x-api-key',
    };
  if (given.length === 0)
    return { status: 401, type: 'invalid_request_error', message: "You didn't provide an API key." };
  return {
    status: 401,
    type: 'invalid_request_error',
    code: 'invalid_api_key',
    message: `Incorrect API key provided: …${given[0]?.slice(-4)}.`,
  };
}

export function strictSizeProblem({ bytes }: Envelope, script: Script): Refusal | undefined {
  if (bytes.length <= (script.bodyBytesMax ?? BODY_BYTES_MAX)) return undefined;
  return {
    status: 413,
    type: 'request_too_large',
    message: 'Request exceeds the maximum size',
    body: script.tooLargeAs ?? 'json',
  };
}

export function strictBytesProblem(envelope: Envelope): Refusal | undefined {
  const { api, bytes, rawBody, headers } = envelope;
  const what = isUtf8(bytes)
    ? (strictSyntaxProblem(rawBody) ?? strictSurrogateProblem(rawBody))
    : 'str is not valid UTF-8: surrogates not allowed: line 1 column 1 (char 0)';
  const refusal = { status: 400, type: 'invalid_request_error' } as const;
  if (what !== undefined)
    return {
      ...refusal,
      message:
        api === 'anthropic'
          ? `The request body is not valid JSON: ${what}`
          : `We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON: ${what})`,
    };
  if (api === 'anthropic' && headers['anthropic-version'] === undefined)
    return { ...refusal, message: 'anthropic-version: header is required' };
  return undefined;
}

function strictSyntaxProblem(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const [, line = '1', column = '1'] = /line (\d+) column (\d+)/.exec(error.message) ?? [];
    return `unexpected character: line ${line} column ${column}`;
  }
}

const HALF = /\\u(d[89a-f][0-9a-f]{2})/gi;

/** Half of a surrogate pair has no UTF-8, so it can appear in JSON only as an escape. */
function strictSurrogateProblem(text: string): string | undefined {
  if (!/\\u[dD]/.test(text)) return undefined;
  for (let match = HALF.exec(text); match !== null; match = HALF.exec(text)) {
    if (isEscapedInStrictBody(text, match.index)) continue;
    const isHigh = Number.parseInt(match[1] ?? '', 16) < 0xdc00;
    const low = /^\\u(d[c-f][0-9a-f]{2})/i.exec(text.slice(HALF.lastIndex, HALF.lastIndex + 6));
    if (isHigh && low !== null) {
      HALF.lastIndex += 6;
      continue;
    }
    const before = text.slice(0, match.index);
    const line = before.split('\n').length;
    const column = match.index - before.lastIndexOf('\n');
    HALF.lastIndex = 0;
    return `${isHigh ? 'no low surrogate in string' : 'no high surrogate in string'}: line ${line} column ${column} (char ${match.index})`;
  }
  return undefined;
}

/** True if the backslash is itself escaped, so that plain text follows. */
function isEscapedInStrictBody(text: string, index: number): boolean {
  let from = index;
  while (text[from - 1] === '\\') from -= 1;
  return (index - from) % 2 === 1;
}
