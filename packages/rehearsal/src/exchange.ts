// One request, from the moment it has arrived to its last byte.
//
//   a fault in place of an answer -> what the real API refuses -> the rate limits -> the script -> the answer
//
// Each stage may end the request. A fault comes first, because an overloaded server does not read the request.

import type { ServerResponse } from 'node:http';
import { meterRateLimits } from './meter/buckets.ts';
import { meterPromptCache, type Prompt } from './meter/cache.ts';
import { answerCastOfScript, type Chosen } from './answer/choose.ts';
import { factsOfFault, toFault, type Fault } from './faults/fault.ts';
import { faultRules } from './faults/rules.ts';
import { newWireMemory, type LearningMemory } from './wire/memory.ts';
import { isRehearsalObject, type Json, type JsonObject } from './json.ts';
import { replyOfAnswer } from './answer/reply.ts';
import {
  sendRehearsedFault,
  sendRehearsedRaw,
  sendRehearsedRefusal,
  sendRehearsedReply,
  type Sending,
} from './response.ts';
import type { Answer, RawResponse, Script } from './script.ts';
import { strictProblem } from './strict/strict.ts';
import { pauseRehearsal } from './transport.ts';
import { anthropic } from './wire/anthropic.ts';
import { openaiChat } from './wire/openai-chat.ts';
import { openaiResponses } from './wire/openai-responses.ts';
import type { Api, Refusal, RequestView, Wire } from './wire/wire.ts';

const CHARS_PER_TOKEN = 4;

const WIRES: Record<Api, Wire> = { anthropic, openai: openaiResponses, 'openai-chat': openaiChat };

/** A recorded request, which is updated as the exchange proceeds. */
export type Exchange = {
  readonly n: number;
  readonly api: Api | undefined;
  agent: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  rawBody: string;
  body: Json;
  readonly at: number;
  faults: readonly string[];
  status: number | undefined;
  refusal: string | undefined;
  aborted: boolean;
  closedAt: number | undefined;
};

/** Unrecorded parts: the keys, and the raw bytes. */
type Unrecorded = { readonly secrets: readonly string[]; readonly bytes: Buffer };

/** Answers in place of the script; undefined leaves the request to the script. */
export type RequestHook = (request: RequestView) => RawResponse | undefined | Promise<RawResponse | undefined>;

export type Counts = { rejections: number; inFlight: number };

export type Respond = (
  received: { readonly exchange: Exchange; readonly unrecorded: Unrecorded },
  response: ServerResponse,
  signal: AbortSignal,
) => Promise<void>;

export function rehearseExchanges(script: Script, counts: Counts, hook: RequestHook | undefined): Respond {
  const cast = answerCastOfScript(script);
  const cache = meterPromptCache(script.cache ?? {});
  const limits = meterRateLimits(script.limits ?? {});
  const struck = faultRules(script.faults ?? [], script.seed ?? 1);
  const memory = newWireMemory();

  return async ({ exchange, unrecorded }, response, signal) => {
    const { n, api, headers } = exchange;
    if (api === undefined) return sendRehearsedRaw(exchange, response, NO_SUCH_PATH);
    const wire = WIRES[api];
    const body = isRehearsalObject(exchange.body) ? exchange.body : {};
    const view = cast.view({ n, api, outline: wire.outline(body), body, headers });
    exchange.agent = view.agent;
    const sending: Sending = {
      exchange,
      response,
      wire,
      view,
      requestId: `req_${n}`,
      headers: () => limits.headers(api),
      signal,
    };

    const hooked = await hook?.(view);
    if (hooked !== undefined) return sendRehearsedRaw(exchange, response, hooked);
    const faults = struck(api, view.agent);
    exchange.faults = faults.map(({ fault }) => fault);
    const instead = faults.find(({ fault }) => factsOfFault(fault).level === 'instead');
    if (instead !== undefined) return sendRehearsedFault(instead, sending);

    const prompt = cache(api, body);
    const rejection =
      script.strict === false
        ? undefined
        : strictProblem({ ...exchange, ...unrecorded, api }, { script, body, prompt, memory });
    if (rejection !== undefined) counts.rejections += 1;
    const refusal = rejection ?? limits.admit(api, prompt, counts.inFlight);
    if (refusal !== undefined) return sendRehearsedRefusal(refusal, sending);
    const chosen = cast.choose(view);
    if (chosen === undefined) return sendRehearsedRefusal(rehearsalExhausted(view), sending);
    if (faults.some(({ fault }) => factsOfFault(fault).spoils)) chosen.putBack();

    const outputTokens = await answerRehearsalWith(chosen, {
      sending,
      bytes: unrecorded.bytes,
      script,
      prompt,
      faults,
      body,
      memory,
    });
    limits.spend(outputTokens);
  };
}

type Answering = {
  readonly sending: Sending;
  readonly bytes: Buffer;
  readonly script: Script;
  readonly prompt: Prompt;
  readonly faults: readonly Fault[];
  readonly body: JsonObject;
  readonly memory: LearningMemory;
};

/** Returns the number of tokens of the answer. */
async function answerRehearsalWith(
  { answer, fill }: Chosen,
  { sending, bytes, script, prompt, faults, body, memory }: Answering,
): Promise<number> {
  const { exchange, response, view, signal } = sending;
  const all = [...faults, ...ownFaultsOfRehearsal(answer)].filter(({ fault }) =>
    factsOfFault(fault).apis.includes(view.api),
  );
  exchange.faults = all.map(({ fault }) => fault);
  if (answer.delayMs !== undefined) await pauseRehearsal(answer.delayMs, signal);
  const instead = all.find(({ fault }) => factsOfFault(fault).level === 'instead');
  if (instead !== undefined) {
    sendRehearsedFault(instead, sending);
    return 0;
  }
  prompt.begin();
  if (answer.raw !== undefined) {
    sendRehearsedRaw(exchange, response, answer.raw);
    return 0;
  }
  const reply = replyOfAnswer({
    answer,
    fill,
    view,
    rawBody: bytes,
    prompt: prompt.counts,
    // At a token rate, every piece is one token.
    chunkChars: answer.tokensPerSecond === undefined ? script.chunkChars : CHARS_PER_TOKEN,
  });
  const sent = await sendRehearsedReply(reply, {
    ...sending,
    body,
    faults: all,
    tokensPerSecond: answer.tokensPerSecond,
  });
  memory.learn(view.api, sent, body);
  return reply.usage.output;
}

function ownFaultsOfRehearsal({ fault }: Answer): readonly Fault[] {
  if (fault === undefined) return [];
  return (typeof fault === 'object' && 'length' in fault ? fault : [fault]).map(toFault);
}

const NO_SUCH_PATH: RawResponse = {
  status: 404,
  body: 'no such path; rehearsed are /v1/messages, /v1/chat/completions and /v1/responses\n',
};

function rehearsalExhausted(view: RequestView): Refusal {
  return {
    status: 400,
    type: 'rehearsal_script_exhausted',
    message: `the script has no answer for request ${view.n} (agent ${view.agent}, turn ${view.turn}, step ${view.step}); add one, or give \`loop\` or \`otherwise\``,
  };
}
