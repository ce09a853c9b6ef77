// An upper bound for the tokens of a prompt, so that a budget is never exceeded. The estimate is no such bound.
//
// The bound is the provider's count of the last prompt and answer, plus the bytes of all later messages: no
// tokenizer makes more tokens than bytes. It is far too high only for a first request and for text just read.
// It is tight for long conversations, which cost the most.
//
// The bound is not guaranteed if the last count came from another model, system prompt or set of tools.

import type { AssistantMessage, AssistantPart, ImagePart, Message } from '@drover/protocol/messages';
import { isModelAnswerCutOff } from '../model/partial-answer.ts';

/** Tokens that a provider adds: instructions for tools, and marks around messages. */
const FRAME_TOKENS = 1_000;
const MESSAGE_TOKENS = 16;
const IMAGE_TOKENS_MAX = 5_000;
const CUT_OFF_TOKENS = 200; // the note after an answer that was cut off

/** Returns the upper bound. `fixedBytes`: size of the system prompt and the tools. */
export function promptTokensMax(messages: readonly Message[], fixedBytes: number): number {
  const all = FRAME_TOKENS + fixedBytes + promptTokensMaxOf(messages);
  const at = messages.findLastIndex((message) => message.role === 'assistant' && promptTokensCountedIn(message) > 0);
  const last = messages[at];
  if (last?.role !== 'assistant') return all;
  return Math.min(all, promptTokensCountedIn(last) + promptTokensMaxOf(messages.slice(at)));
}

export function promptUtf8Bytes(text: string): number {
  return Buffer.byteLength(text);
}

/** Returns the provider's count of prompt and answer, or 0 if it reported none. */
function promptTokensCountedIn({ usage }: AssistantMessage): number {
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  return usage.estimated === true || prompt === 0 ? 0 : prompt + usage.output;
}

function promptTokensMaxOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + MESSAGE_TOKENS + promptMessageTokensMax(message), 0);
}

function promptMessageTokensMax(message: Message): number {
  switch (message.role) {
    case 'user':
      return message.content.reduce((sum, part) => sum + promptInputTokensMax(part), 0);
    case 'assistant':
      return message.content.reduce(
        (sum, part) => sum + MESSAGE_TOKENS + promptPartTokensMax(part),
        isModelAnswerCutOff(message) ? CUT_OFF_TOKENS : 0,
      );
    case 'tool':
      return message.results.reduce(
        (sum, { id, name, output, images = [] }) =>
          sum + MESSAGE_TOKENS + promptUtf8Bytes(id + name + output) + images.length * IMAGE_TOKENS_MAX,
        0,
      );
  }
}

function promptInputTokensMax(part: { readonly type: 'text'; readonly text: string } | ImagePart): number {
  return part.type === 'text' ? promptUtf8Bytes(part.text) : IMAGE_TOKENS_MAX;
}

function promptPartTokensMax(part: AssistantPart): number {
  return part.type === 'tool_call'
    ? promptUtf8Bytes(part.id + part.name + JSON.stringify(part.args))
    : promptUtf8Bytes(part.text);
}
