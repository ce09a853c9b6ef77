// One request, from the moment it has arrived to its last byte.

import type { ServerResponse } from 'node:http';
import { castOf } from './choose.ts';
import type { Json } from './json.ts';
import { isObject } from './json.ts';
import { replyOf } from './reply.ts';
import type { RawResponse, Script } from './script.ts';
import { pause, writeSteps, type Manner } from './transport.ts';
import { anthropic } from './wire/anthropic.ts';
import { openaiChat } from './wire/openai-chat.ts';
import { openaiResponses } from './wire/openai-responses.ts';
import type { Api, Refusal, RequestView, Wire } from './wire/wire.ts';

const WIRES: Record<Api, Wire> = { anthropic, openai: openaiResponses, 'openai-chat': openaiChat };

/** A request as it is recorded; the server writes down what becomes of it. */
export type Exchange = {
  readonly n: number;
  readonly api: Api | undefined;
  agent: string;
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
  readonly bytes: Buffer;
  readonly rawBody: string;
  readonly body: Json;
  readonly at: number;
  status: number | undefined;
  refusal: string | undefined;
  aborted: boolean;
  closedAt: number | undefined;
};

/** Answers in place of the script, or leaves it to the script. */
export type RequestHook = (request: RequestView) => RawResponse | undefined | Promise<RawResponse | undefined>;

export type Counts = { rejections: number; inFlight: number };

export type Respond = (exchange: Exchange, response: ServerResponse, signal: AbortSignal) => Promise<void>;

export function exchanges(script: Script, counts: Counts, hook: RequestHook | undefined): Respond {
  const cast = castOf(script);

  return async (exchange, response, signal) => {
    const { n, api, bytes, headers } = exchange;
    if (api === undefined)
      return plainly(exchange, response, {
        status: 404,
        body: 'no such path: rehearsed are /v1/messages, /v1/chat/completions and /v1/responses\n',
      });
    const wire = WIRES[api];
    const requestId = `req_${n}`;
    const refuse = (refusal: Refusal): void => {
      exchange.refusal = refusal.message;
      sendRefusal(exchange, response, { wire, refusal, requestId });
    };
    const body = isObject(exchange.body) ? exchange.body : {};
    const view = cast.view({ n, api, outline: wire.outline(body), body, headers });
    exchange.agent = view.agent;

    const hooked = await hook?.(view);
    if (hooked !== undefined) return plainly(exchange, response, hooked);
    const chosen = cast.choose(view);
    if (chosen === undefined) return refuse(exhausted(view));
    const { answer, fill } = chosen;
    if (answer.raw !== undefined) return plainly(exchange, response, answer.raw);
    if (answer.delayMs !== undefined) await pause(answer.delayMs, signal);

    const reply = replyOf({
      answer,
      fill,
      view,
      rawBody: bytes,
      prompt: { input: 0, cacheRead: 0, cacheWrite: 0 },
      chunkChars: script.chunkChars,
    });
    const shared = { [wire.requestIdHeader]: requestId };
    exchange.status = 200;
    if (!view.stream) {
      response.writeHead(200, { ...shared, 'content-type': 'application/json' });
      response.end(JSON.stringify(wire.whole(reply, body)));
      return;
    }
    const manner: Manner = new Set();
    response.writeHead(200, {
      ...shared,
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
    });
    response.flushHeaders();
    await writeSteps(response, wire.frames(reply, body), manner, signal);
  };
}

function exhausted(view: RequestView): Refusal {
  return {
    status: 400,
    type: 'rehearsal_script_exhausted',
    message: `the script has no answer for request ${view.n} (agent ${view.agent}, turn ${view.turn}, step ${view.step}); add one, or give \`loop\` or \`otherwise\``,
  };
}

function plainly(
  exchange: Exchange,
  response: ServerResponse,
  { status = 200, contentType = 'text/plain', headers = {}, body }: RawResponse,
): void {
  exchange.status = status;
  response.writeHead(status, { 'content-type': contentType, ...headers });
  response.end(body);
}

type Refusing = { readonly wire: Wire; readonly refusal: Refusal; readonly requestId: string };

function sendRefusal(exchange: Exchange, response: ServerResponse, { wire, refusal, requestId }: Refusing): void {
  exchange.status = refusal.status;
  response.writeHead(refusal.status, {
    [wire.requestIdHeader]: requestId,
    'content-type': 'application/json',
    ...refusal.headers,
  });
  response.end(JSON.stringify(wire.errorBody(refusal, requestId)));
}
