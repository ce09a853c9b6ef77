// Random conversations with aborts, discards, compactions, crashes, odd servers and changes of provider. Each of their
// requests goes to the strict server.

import {
  applyConversationCut,
  planConversationCut,
  planWishedConversationCut,
} from '@drover/core/conversation/compaction';
import { Conversation } from '@drover/core/conversation/conversation';
import type { Api } from '@drover/core/model/catalog';
import type { AssistantMessage, AssistantPart, ImagePart, Message, ToolResult } from '@drover/protocol/messages';
import type { Provider } from '@drover/core/model/provider';
import { buildModelRequest } from '@drover/core/model/request';
import type { Answer, Script } from '@drover/rehearsal/script';
import { APIS, never, providerOn, rehearsal } from '../agent.ts';

export type Random = {
  readonly below: (n: number) => number;
  readonly chance: (p: number) => boolean;
  readonly pick: <T>(list: readonly T[]) => T;
};

/** A seed makes the same conversation every time, so a failing one can be repeated. */
export function randomFrom(seed: number): Random {
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return { below, chance: (p) => next() < p, pick: (list) => list[below(list.length)] as (typeof list)[number] };
}

const TEXTS = [
  'hello',
  '',
  ' ',
  '\n\t',
  'a\ud800b',
  '\udc00',
  '😀 and more',
  '\u0085',
  '\u001c \u001d',
  'x'.repeat(5_000),
  '{"a": 1}',
  '﻿',
  '<tool_call>',
];
const NAMES = [
  'read',
  'shell',
  'functions.read',
  'no such tool',
  '',
  'ünïcode',
  'x'.repeat(200),
  'read<|channel|>json',
];
const IDS = [
  'call_0',
  'call_0',
  'toolu_1',
  '',
  'an id with spaces',
  'ü',
  'x'.repeat(300),
  'call.dots:colons',
  'fc_1|call_2',
];
const ARGS = [{}, { path: 'a' }, { path: '\ud800' }, [], 'text', 7, null, { deep: [{ '\udfff': 'x' }] }] as const;
const NO_USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

/** A model with arbitrary answers. */
export function anyAnswer(random: Random): Script {
  const part = (): NonNullable<Answer['parts']>[number] => {
    switch (random.below(5)) {
      case 0:
        return { thinking: `thinking ${random.below(1_000)}` };
      case 1:
        return { redactedThinking: `sealed ${random.below(1_000)}` };
      case 2:
        return { text: random.pick(['fine', 'two\nlines', '😀']) };
      default:
        return {
          call: {
            name: random.pick(['read', 'shell', 'unknown_tool']),
            args: { path: 'a' },
            ...(random.chance(0.3) && { id: random.pick(['call_0', 'toolu_1', 'x'.repeat(30)]) }),
          },
        };
    }
  };
  const answer = (): Answer => ({ parts: Array.from({ length: 1 + random.below(4) }, part) });
  return { answers: [() => answer()] };
}

/** Sends random histories until this many requests were made; returns those refused, with the reason. */
export async function refusedHistories(many: number): Promise<readonly string[]> {
  const server = await rehearsal(anyAnswer(randomFrom(1)));
  const providers = {
    anthropic: await providerOn(server, 'anthropic'),
    openai: await providerOn(server, 'openai'),
    'openai-chat': await providerOn(server, 'openai-chat'),
  };
  const refused: string[] = [];
  for (let seed = 1; seed <= many && server.requests.length < many; seed++) {
    const life = new Life(randomFrom(seed), providers);
    await life.live(4 + (seed % 12)).catch((error: Error) => refused.push(`seed ${seed}: ${error.message}`));
  }
  if (server.requests.length < many) refused.push('some lives asked for nothing');
  return server.rejections === 0 ? refused : [...refused, `${server.rejections} requests were refused`];
}

export class Life {
  readonly #random: Random;
  readonly #providers: Readonly<Record<Api, Provider>>;
  #api: Api;
  #model = 'model-a';
  #messages: Message[] = [];
  requests = 0;

  constructor(random: Random, providers: Readonly<Record<Api, Provider>>) {
    this.#random = random;
    this.#providers = providers;
    this.#api = random.pick(APIS);
  }

  get messages(): readonly Message[] {
    return this.#messages;
  }

  async live(events: number): Promise<void> {
    this.#messages.push({ role: 'user', content: [{ type: 'text', text: 'the task' }] });
    for (let n = 0; n < events; n++) await this.#liveOn();
    await this.#ask();
  }

  async #liveOn(): Promise<void> {
    const random = this.#random;
    switch (random.below(10)) {
      case 0:
      case 1:
        this.#messages.push({
          role: 'user',
          content: [{ type: 'text', text: random.pick(TEXTS) }, ...(random.chance(0.2) ? [image(random)] : [])],
        });
        return;
      case 2:
        if (random.chance(0.5)) this.#api = random.pick(APIS);
        else this.#model = random.pick(['model-a', 'model-b']);
        return;
      case 3: {
        const measure = new Conversation('', 4);
        const tokensOf = (messages: readonly Message[]): number => measure.expectedTokensWith(messages, 0);
        const limit = tokensOf(this.#messages) * random.pick([0.1, 0.5, 0.9]);
        const room = { tokensOf, limit, summaryTokens: 10 };
        const cut = random.chance(0.3)
          ? planWishedConversationCut(this.#messages)
          : planConversationCut(this.#messages, room, random.below(3));
        if (cut !== undefined) this.#messages = [...applyConversationCut(this.#messages, cut, 'what happened')];
        return;
      }
      case 4: // a crash: what was not yet written is gone
        this.#messages.splice(this.#messages.length - random.below(3));
        return;
      case 5:
        this.#messages.push(oddMessage(random, this.#api, this.#model));
        if (random.chance(0.7)) this.#addResults(this.#messages.at(-1));
        return;
      default: {
        const answer = await this.#ask();
        if (random.chance(0.1)) return; // discarded
        this.#messages.push(answer);
        this.#addResults(answer);
      }
    }
  }

  async #ask(): Promise<AssistantMessage> {
    const provider = this.#providers[this.#api];
    const request = buildModelRequest({
      provider,
      model: this.#model,
      system: 'You are tested.\ud800',
      tools: [
        {
          name: 'read',
          description: 'Read a file.',
          schema: { type: 'object', properties: { path: { type: 'string' } } },
        },
      ],
      messages: this.#messages,
      outputTokensMax: 1_000,
      cacheKey: 'life',
    });
    this.requests += 1;
    for await (const event of provider.stream(request, never)) if (event.type === 'finished') return event.message;
    throw new Error('no answer');
  }

  #addResults(message: Message | undefined): void {
    const random = this.#random;
    const calls = message?.role === 'assistant' ? message.content.filter((part) => part.type === 'tool_call') : [];
    const results: ToolResult[] = calls
      .filter(() => !random.chance(0.15)) // interrupted
      .map(({ id, name }) => ({
        id,
        name,
        output: random.pick(TEXTS),
        isError: random.chance(0.3),
        ...(random.chance(0.1) && { images: [image(random)] }),
      }));
    if (random.chance(0.1)) results.reverse();
    if (random.chance(0.1)) results.push({ id: 'nobody asked', name: 'read', output: 'x', isError: false });
    if (random.chance(0.1) && results[0] !== undefined) results.push(results[0]);
    if (random.chance(0.1)) this.#messages.push({ role: 'user', content: [{ type: 'text', text: 'meanwhile' }] });
    const half = random.chance(0.2) ? random.below(results.length + 1) : results.length;
    if (half > 0) this.#messages.push({ role: 'tool', results: results.slice(0, half) });
    if (half < results.length) this.#messages.push({ role: 'tool', results: results.slice(half) });
  }
}

function oddMessage(random: Random, provider: Api, model: string): AssistantMessage {
  const part = (): AssistantPart => {
    switch (random.below(4)) {
      case 0:
        return { type: 'text', text: random.pick(TEXTS) };
      case 1:
        return { type: 'thinking', text: random.pick(TEXTS) }; // unsigned
      default:
        return { type: 'tool_call', id: random.pick(IDS), name: random.pick(NAMES), args: random.pick(ARGS) };
    }
  };
  const content = Array.from({ length: random.below(4) }, part);
  const native = random.chance(0.2) && {
    native: { provider, model: `${model}-other`, items: [{ before: 0, payload: { type: 'unheard_of' } }] },
  };
  return {
    role: 'assistant',
    content,
    stop: random.pick(['stop', 'length', 'tool_calls', 'aborted', 'pause']),
    usage: NO_USAGE,
    ...native,
  };
}

/** The first bytes of a PNG whose size may exceed the limit. */
function image(random: Random): ImagePart {
  const bytes = Buffer.alloc(random.pick([64, 64, 6 * 1024 * 1024]));
  bytes.write('\x89PNG\r\n\x1a\n', 'latin1');
  bytes.writeUInt32BE(random.pick([10, 3_000, 9_000]), 16);
  bytes.writeUInt32BE(10, 20);
  return { type: 'image', mediaType: 'image/png', data: bytes.toString('base64') };
}
