// The most tokens a prompt can have: proven where the estimate only guesses, so that a budget holds.
//
// What the provider has counted itself needs no bound: the last answer says how long its prompt was, and
// how long it is itself. Of what was said since, no tokenizer makes more tokens than there are bytes. So
// the bound is far too high only for a first request, and for what has just been read; it is tight for
// the long conversations that cost the money.
//
// It is no proof where the one who counted was another model, or had another system prompt or other
// tools: then it is as good as the two are alike.

import type { AssistantMessage, AssistantPart, ImagePart, Message } from '@drover/protocol/messages';
import { isCutOff } from '../model/partial-answer.ts';

/** What a provider adds of its own: how tools are to be used, where a message begins and ends. */
const FRAME_TOKENS = 1_000;
const MESSAGE_TOKENS = 16;
const IMAGE_TOKENS_MAX = 5_000;
const CUT_OFF_TOKENS = 200; // the note behind an answer that was cut off

/** `fixedBytes` are those of the system prompt and the tools. */
export function promptTokensMax(messages: readonly Message[], fixedBytes: number): number {
  const all = FRAME_TOKENS + fixedBytes + tokensMaxOf(messages);
  const at = messages.findLastIndex((message) => message.role === 'assistant' && countedIn(message) > 0);
  const last = messages[at];
  if (last?.role !== 'assistant') return all;
  return Math.min(all, countedIn(last) + tokensMaxOf(messages.slice(at)));
}

export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text);
}

/** The prompt and the answer together, or 0 where nobody counted. */
function countedIn({ usage }: AssistantMessage): number {
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  return usage.estimated === true || prompt === 0 ? 0 : prompt + usage.output;
}

function tokensMaxOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + MESSAGE_TOKENS + messageTokensMax(message), 0);
}

function messageTokensMax(message: Message): number {
  switch (message.role) {
    case 'user':
      return message.content.reduce((sum, part) => sum + inputTokensMax(part), 0);
    case 'assistant':
      return message.content.reduce(
        (sum, part) => sum + MESSAGE_TOKENS + partTokensMax(part),
        isCutOff(message) ? CUT_OFF_TOKENS : 0,
      );
    case 'tool':
      return message.results.reduce(
        (sum, { id, name, output, images = [] }) =>
          sum + MESSAGE_TOKENS + utf8Bytes(id + name + output) + images.length * IMAGE_TOKENS_MAX,
        0,
      );
  }
}

function inputTokensMax(part: { readonly type: 'text'; readonly text: string } | ImagePart): number {
  return part.type === 'text' ? utf8Bytes(part.text) : IMAGE_TOKENS_MAX;
}

function partTokensMax(part: AssistantPart): number {
  return part.type === 'tool_call' ? utf8Bytes(part.id + part.name + JSON.stringify(part.args)) : utf8Bytes(part.text);
}
